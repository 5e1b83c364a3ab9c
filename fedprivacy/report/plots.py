"""Accuracy against epsilon, and what all pictures of a report have in common: looks and axes.

Colours are Okabe and Ito's, which colour-blind eyes tell apart; each arm also has its own marker, line
style and label, so that a print in grey says the same.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from fedprivacy.documents.envelope import Arm
from fedprivacy.report import svg, words

Look = tuple[str, str, Any]  # colour, marker, line style
LOOKS: dict[str, Look] = {
    "none": (svg.NONE, "", "--"),
    "central": (svg.CENTRAL, "o", "-"),
    "local": (svg.LOCAL, "s", "-."),
    "distributed": (svg.DISTRIBUTED, "D", ":"),
}
# The second of several arms of one trust model, and those after it.
MORE: tuple[Look, ...] = (
    (svg.SECOND, "v", (0, (7, 2, 1.5, 2, 1.5, 2))),
    (svg.THIRD, "P", (0, (4, 1.5))),
    (svg.FOURTH, "X", (0, (2.5, 1))),
    (svg.FIFTH, "p", (0, (10, 3))),
)
WIDE, NARROW = 33, 44  # characters of a label's line
BOLD = 2  # fewer of them where it is bold
APART = 6.0  # pixels between the points of two arms at the same epsilon
ROOM = 5  # arms of which each has room to say against whom it holds
LINE = 15.0  # pixels from a label's line to the next


@dataclass(frozen=True)
class Point:
    """A mean over seeds at one epsilon (None: no privacy), with its interval where there is one."""

    epsilon: float | None
    mean: float
    interval: tuple[float, float] | None = None

    @property
    def extent(self) -> list[float]:
        """All that must be seen of it."""
        return [self.mean, *(self.interval or ())]


@dataclass(frozen=True)
class Series:
    """The points of one arm, with its label and against whom it holds."""

    look: Look
    label: str
    reach: str
    points: tuple[Point, ...]

    @property
    def end(self) -> Point:
        """The point at the right end of the line."""
        return self.private[-1] if self.private else self.points[-1]

    @property
    def private(self) -> tuple[Point, ...]:
        """The points that have an epsilon, from the strictest on."""
        return tuple(sorted((p for p in self.points if p.epsilon), key=lambda p: p.epsilon or 0.0))


def frontier(series: Sequence[Series], x_label: str, title: str, alt: str, *, narrow: bool = False) -> str:
    """Accuracy against epsilon, a line per arm; without privacy a level with its band.

    Args:
        series: One for each arm that has a result.
        x_label: What stands under the axis: epsilon with all that belongs to it.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone (the labels above instead of at the lines' ends).

    Returns:
        Inline SVG.
    """
    with svg.style():
        if narrow:
            legend = sum(_label_height(entry, NARROW) for entry in series)
            drawn = svg.figure(360, 366 + legend)
            axes = svg.place(drawn, left=46, top=legend + 40, right=10, bottom=70)
        else:
            drawn = svg.figure(920, 460)
            axes = svg.place(drawn, left=50, top=44, right=250, bottom=58)
        extents = [value for entry in series for p in entry.points for value in p.extent]
        accuracy_axis(axes, accuracy_range(extents))
        epsilons = sorted({p.epsilon for entry in series for p in entry.private if p.epsilon})
        _epsilon_axis(axes, epsilons, labels=6 if narrow else 10)
        axes.set_xlabel(x_label.replace("; ", "\n") if narrow else x_label.replace("; ", ", "), labelpad=8)
        heading(axes, "Accuracy (higher is better)", shift=-44)
        private = [entry for entry in series if entry.private]
        for entry in series:
            place = private.index(entry) - (len(private) - 1) / 2 if entry in private else 0.0
            _draw(drawn, axes, entry, place * APART)
        if narrow:
            _legend(drawn, series)
        else:
            _direct_labels(axes, series)
        return svg.write(drawn, "frontier-narrow" if narrow else "frontier-wide", title, alt)


def look(arm: Arm) -> Look:
    """The colour, marker and line style of an arm; beyond the last they begin again."""
    base = LOOKS.get(arm.trust, LOOKS["none"])
    return (base, *MORE)[arm.place % (1 + len(MORE))]


def accuracy_range(values: Sequence[float]) -> tuple[float, float]:
    """The accuracy axis: all of it, unless every value lies within a quarter of it."""
    low, high = min(values), max(values)
    if high - low > 0.25:
        return 0.0, 1.0
    pad = max(0.02, 0.15 * (high - low))
    return max(0.0, math.floor((low - pad) * 20) / 20), min(1.0, math.ceil((high + pad) * 20) / 20)


def accuracy_axis(axes: Axes, shown: tuple[float, float]) -> None:
    """The vertical axis in percent, from the first share shown to the last."""
    axes.set_ylim(*shown)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.3g} %"))


def _epsilon_axis(axes: Axes, epsilons: Sequence[float], labels: int) -> None:
    """Powers of two apart, with the ticks where the data is; labels that would touch are left out."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    if not epsilons:
        axes.set_xlim(0.5, 2)
        axes.xaxis.set_major_locator(NullLocator())
        return
    axes.set_xlim(epsilons[0] * 2**-0.35, epsilons[-1] * 2**0.2)
    gap = math.log2(epsilons[-1] / epsilons[0]) / labels
    shown: list[float] = []
    for value in epsilons:
        if not shown or math.log2(value / shown[-1]) >= gap:
            shown.append(value)
    axes.xaxis.set_major_locator(FixedLocator(list(epsilons)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: words.number(x) if x in shown else ""))


def _draw(drawn: Figure, axes: Axes, drawn_series: Series, shift: float) -> None:
    """A line with its points and bars, so many pixels aside: no bar hides another at the same epsilon."""
    color, marker, line = drawn_series.look
    for level in (p for p in drawn_series.points if not p.epsilon):
        if level.interval:
            axes.axhspan(*level.interval, color=color, alpha=0.14, linewidth=0)
        axes.axhline(level.mean, color=color, linestyle=line, linewidth=1.75)
    points = drawn_series.private
    if not points:
        return
    aside = axes.transData + ScaledTranslation(shift / 72, 0, drawn.dpi_scale_trans)
    for p in points:
        if p.epsilon and p.interval:
            axes.plot(
                [p.epsilon] * 2, p.interval,
                color=color, linewidth=1.5, marker="_", markersize=9, transform=aside,
            )  # fmt: skip
    axes.plot(
        [p.epsilon or 0.0 for p in points], [p.mean for p in points],
        color=color, linestyle=line, marker=marker, markeredgecolor=svg.PAPER, markeredgewidth=1.25,
        clip_on=False, transform=aside,
    )  # fmt: skip


def _label(drawn_series: Series, width: int) -> list[tuple[str, dict[str, Any]]]:
    """A label's lines with their fonts: the name, then against whom it holds."""
    name = {"color": drawn_series.look[0], "fontsize": 14, "fontweight": "bold"}
    reach = {"color": svg.MUTED, "fontsize": 12}
    lines = textwrap.wrap(drawn_series.label, width - BOLD) or [""]
    return [
        *((text, name) for text in lines),
        *((text, reach) for text in textwrap.wrap(drawn_series.reach, width)),
    ]


def _label_height(drawn_series: Series, width: int) -> float:
    return LINE * len(_label(drawn_series, width)) + 8


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


def _direct_labels(axes: Axes, series: Sequence[Series]) -> None:
    """Each line's name at its right end."""
    ends = [
        (drawn_series.end.mean, _label_height(drawn_series, WIDE), drawn_series) for drawn_series in series
    ]
    for y, _, drawn_series in spread(axes, ends):
        for index, (text, font) in enumerate(_label(drawn_series, WIDE)):
            axes.annotate(
                text, xy=(1, 0), xycoords="axes fraction", xytext=(14, y - LINE * index),
                textcoords="offset pixels", va="center_baseline", annotation_clip=False, **font,
            )  # fmt: skip


def _legend(drawn: Figure, series: Sequence[Series]) -> None:
    """Above the axes, where a phone has no room at the lines' ends."""
    width, height = drawn.get_size_inches() * 72
    y = 12.0
    for entry in series:
        color, marker, line = entry.look
        drawn.add_artist(
            Line2D(
                [4 / width, 44 / width], [1 - y / height] * 2, color=color, linestyle=line, marker=marker,
                markevery=[1], markeredgecolor=svg.PAPER,
            )
        )  # fmt: skip
        for index, (text, font) in enumerate(_label(entry, NARROW)):
            drawn.text(56 / width, 1 - (y + LINE * index) / height, text, va="center", **font)
        y += _label_height(entry, NARROW)


def heading(
    axes: Axes, text: str, shift: float, color: str = svg.MUTED, *, bold: bool = False, up: float = 0.0
) -> None:
    """What the vertical axis shows, set level above it; `up` pixels higher where another line is below."""
    axes.annotate(
        text, xy=(0, 1), xycoords="axes fraction", xytext=(shift, 16 + up), textcoords="offset pixels",
        color=color, fontsize=13, fontweight="bold" if bold else "normal", annotation_clip=False,
    )  # fmt: skip
