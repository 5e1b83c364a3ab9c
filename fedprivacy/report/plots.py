"""What pictures have in common: looks and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedprivacy.report import svg
from fedprivacy.report.charts.looks import LOOKS, MORE, Look, accuracy_range, look

__all__ = ["LINE", "LOOKS", "MORE", "Look", "accuracy_axis", "accuracy_range", "heading", "look", "spread"]

LINE = 15.0  # pixels from a label's line to the next


def accuracy_axis(axes: Axes, shown: tuple[float, float]) -> None:
    """The vertical axis in percent, from the first share shown to the last."""
    axes.set_ylim(*shown)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.3g} %"))


def spread(axes: Axes, labels: Sequence[tuple[float, float, Any]]) -> list[tuple[float, float, Any]]:
    """Labels for the right end of lines, from the top down, pushed down where two would overlap.

    Args:
        axes: With its limits set.
        labels: For each the value that it belongs to, its height in pixels, and what to write.

    Returns:
        The same with the value replaced by pixels above the bottom of the axes.
    """
    bottom, top = axes.get_ylim()
    height = axes.get_window_extent().height
    ceiling = height + 10
    placed = []
    for value, tall, what in sorted(labels, key=lambda label: -label[0]):
        y = min(height * (value - bottom) / (top - bottom) + 4, ceiling)
        ceiling = y - tall
        placed.append((y, tall, what))
    # What was pushed below the axes makes the others move up.
    floor = 0.0
    for index in reversed(range(len(placed))):
        y, tall, what = placed[index]
        y = max(y, floor)
        placed[index], floor = (y, tall, what), y + (placed[index - 1][1] if index else 0.0)
    return placed


def heading(
    axes: Axes, text: str, shift: float, color: str = svg.MUTED, *, bold: bool = False, up: float = 0.0
) -> None:
    """What the vertical axis shows, set level above it; `up` pixels higher where another line is below."""
    axes.annotate(
        text, xy=(0, 1), xycoords="axes fraction", xytext=(shift, 16 + up), textcoords="offset pixels",
        color=color, fontsize=13, fontweight="bold" if bold else "normal", annotation_clip=False,
    )  # fmt: skip
