"""Learning curves: accuracy and loss of one run, and the arms of a comparison beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fedprivacy.report import plots, svg, words

# dash pattern and marker of the lines within one panel, told apart in grey too
LINES: tuple[tuple[Any, str], ...] = (
    ("-", "o"),
    ((0, (6, 2)), "s"),
    ((0, (1, 1.5)), "D"),
    ((0, (6, 2, 1, 2)), "^"),
)
MARKS = 8  # marks on a line of many rounds
ACROSS = 3  # panels beside each other, where no hole is left


@dataclass(frozen=True)
class Curve:
    """One measure by round; a share is shown in percent."""

    label: str
    rounds: tuple[int, ...]
    values: tuple[float, ...]
    share: bool = False

    def printed(self, value: float) -> str:
        """One of its values in words."""
        return words.accuracy(value) if self.share else words.number(value, 3)


@dataclass(frozen=True)
class Panel:
    """The accuracy curves of one arm, each with a short label for its end."""

    look: plots.Look
    label: str
    curves: tuple[Curve, ...]


def learning(
    curves: Sequence[Curve],
    look: plots.Look,
    planned: int | None,
    title: str,
    alt: str,
    *,
    narrow: bool = False,
) -> str:
    """A panel for each measure of a run by round; rounds that were planned but not run stay empty.

    Returns:
        Inline SVG.
    """
    with svg.style():
        count = len(curves)
        drawn = svg.figure(360, 270 * count) if narrow else svg.figure(920, 320)
        for index, curve in enumerate(curves):
            if narrow:
                axes = svg.place(drawn, 46, 270 * index + 40, 58, 270 * (count - index - 1) + 52)
            else:
                step = 920 / count
                axes = svg.place(drawn, 50 + step * index, 40, 920 - step * (index + 1) + 66, 52)
            _measure(axes, curve, look[0], "-" if index == 0 else "--", planned)
        return svg.write(drawn, "learning-narrow" if narrow else "learning-wide", title, alt)


def compared(panels: Sequence[Panel], title: str, alt: str, *, narrow: bool = False) -> str:
    """A panel for each arm, on one accuracy axis; a line for each epsilon, named at its end.

    Args:
        panels: Each with at most `len(LINES)` curves.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone (the panels below each other).

    Returns:
        Inline SVG.
    """
    across = 1 if narrow else 2 if len(panels) == 4 else min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    width, height = (360.0, 240.0) if narrow else (920.0 / across, 300.0)
    shown = plots.accuracy_range([v for panel in panels for curve in panel.curves for v in curve.values])
    with svg.style():
        drawn = svg.figure(width * across, height * down)
        for index, panel in enumerate(panels):
            row, column = divmod(index, across)
            right = width * (across - column - 1) + 98
            axes = svg.place(
                drawn, width * column + 48, height * row + 42, right, height * (down - row - 1) + 50
            )
            _panel(axes, panel, shown)
        return svg.write(drawn, "curves-narrow" if narrow else "curves-wide", title, alt)


def _panel(axes: Axes, panel: Panel, shown: tuple[float, float]) -> None:
    color = panel.look[0]
    plots.accuracy_axis(axes, shown)
    _round_axis(axes, max(curve.rounds[-1] for curve in panel.curves))
    plots.heading(axes, panel.label, shift=-42, color=color, bold=True)
    for curve, (dashes, marker) in zip(panel.curves, LINES, strict=False):
        axes.plot(
            curve.rounds, curve.values, color=color, linestyle=dashes, marker=marker, markersize=6,
            markevery=max(1, len(curve.rounds) // MARKS), markeredgecolor=svg.PAPER, linewidth=1.75,
            clip_on=False,
        )  # fmt: skip
    # "No noise" as the panel's heading is enough.
    named = [curve for curve in panel.curves if curve.label.lower() != panel.label.lower()]
    ends = [(curve.values[-1], curve.label) for curve in named]
    for y, _, text in plots.spread(axes, [(value, plots.LINE, label) for value, label in ends]):
        axes.annotate(
            text, xy=(1, 0), xycoords="axes fraction", xytext=(12, y), textcoords="offset pixels",
            va="center_baseline", annotation_clip=False, color=svg.INK, fontsize=13,
        )  # fmt: skip


def _measure(axes: Axes, curve: Curve, color: str, line: str, planned: int | None) -> None:
    done = curve.rounds[-1]
    plots.heading(axes, curve.label, shift=-44)
    marker = "o" if len(curve.rounds) <= 25 else ""
    axes.plot(
        curve.rounds, curve.values, color=color, linestyle=line, marker=marker, markersize=5, clip_on=False
    )
    _round_axis(axes, max(planned or 0, done))
    if curve.share:
        plots.accuracy_axis(axes, plots.accuracy_range(curve.values))
    else:
        axes.set_ylim(bottom=min(0.0, *curve.values))
        axes.yaxis.set_major_locator(MaxNLocator(5))
    last = curve.values[-1]
    axes.annotate(
        curve.printed(last), xy=(done, last), xytext=(8, 0), textcoords="offset pixels", va="center",
        color=svg.INK, fontweight="bold", annotation_clip=False,
    )  # fmt: skip
    if planned and done < planned:
        axes.axvline(done, color=svg.MUTED, linestyle=":", linewidth=1.25)


def _round_axis(axes: Axes, last: int) -> None:
    axes.set_xlim(0, max(last, 1))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("Round", labelpad=6)
