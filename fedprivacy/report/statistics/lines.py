"""Draws lines over clients or epsilon: a panel per query, logarithmic except for shares."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import ScaledTranslation

from fedprivacy.report import marks, plots, svg, words

WIDE, NARROW = 32, 46  # characters of a label's line
HEIGHT, PHONE = 300.0, 250.0  # pixels of a panel's axes at least
TOP, BOTTOM, GAP = 44.0, 58.0, 8.0  # pixels above and below them, and between labels
APART = 6.0  # pixels between the points of two lines that stand aside
# Line styles of the several epsilons of one arm, which has one colour and one marker.
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


@dataclass(frozen=True)
class Point:
    """A figure of one cell, with its interval where it is drawn."""

    x: float
    y: float
    interval: tuple[float, float] | None = None

    @property
    def extent(self) -> list[float]:
        """What must be seen of it; a bar may leave the picture below, where an axis has no 0."""
        return [self.y, *([self.interval[1]] if self.interval and self.interval[1] > 0 else [])]


@dataclass(frozen=True)
class Line:
    """One arm, at one epsilon where the line runs over the number of clients."""

    look: plots.Look
    label: str
    points: tuple[Point, ...]

    def text(self, width: int) -> list[str]:
        """Its label in lines."""
        return textwrap.wrap(self.label, width) or [""]


@dataclass(frozen=True)
class Panel:
    """One query.

    Args:
        heading: What the vertical axis shows.
        lines: At least one, each with a point at least.
        share: Whether the vertical axis is a share in percent, from 0 to 100; else it is logarithmic, and
            all figures are above 0.
        aside: Whether lines stand a little aside of each other.
    """

    heading: str
    lines: tuple[Line, ...]
    share: bool = False
    aside: bool = False

    def labels(self, width: int) -> float:
        """The height of all labels below each other, in pixels."""
        return sum(plots.LINE * len(line.text(width)) + GAP for line in self.lines)


def draw(
    panels: Sequence[Panel], x_label: str, name: str, title: str, alt: str, *, narrow: bool = False
) -> str:
    """The panels below each other, on one horizontal axis each.

    Args:
        panels: At least one.
        x_label: What the horizontal axes show.
        name: Unique on the page.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone (labels above the lines instead of at their ends).

    Returns:
        Inline SVG.
    """
    titles = [marks.title(panel.heading, narrow=narrow) for panel in panels]
    legends = [panel.labels(NARROW) if narrow else 0.0 for panel in panels]
    tall = [PHONE if narrow else max(HEIGHT, panel.labels(WIDE)) for panel in panels]
    above = [TOP + plots.LINE * (len(title) - 1) for title in titles]
    whole = sum(legends) + sum(tall) + sum(above) + BOTTOM * len(panels)
    with svg.style():
        drawn = svg.figure(360.0 if narrow else 920.0, whole)
        top = 0.0
        for panel, title_lines, legend, height, head in zip(
            panels, titles, legends, tall, above, strict=True
        ):
            begin = top + head + legend
            axes = svg.place(drawn, 64, begin, 14 if narrow else 256, whole - begin - height)
            _panel(axes, panel, x_label, narrow=narrow)
            marks.write_title(drawn, title_lines, top + 8)
            if narrow:
                _legend(drawn, panel, top + head - 18)
            else:
                _direct_labels(axes, panel)
            top = begin + height + BOTTOM
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, alt)


def _panel(axes: Axes, panel: Panel, x_label: str, *, narrow: bool) -> None:
    every = sorted({point.x for line in panel.lines for point in line.points})
    _x_axis(axes, every, 5 if narrow else 9)
    axes.set_xlabel(textwrap.fill(x_label, 46) if narrow else x_label, labelpad=6)
    if panel.share:
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.3g} %"))
    else:
        _log_axis(axes, [y for line in panel.lines for p in line.points for y in p.extent])
    for place, line in enumerate(panel.lines):
        _line(axes, line, panel, (place - (len(panel.lines) - 1) / 2) * APART if panel.aside else 0.0)


def _line(axes: Axes, line: Line, panel: Panel, shift: float) -> None:
    """A line with its points and bars, so many pixels aside: no bar hides another at the same place."""
    low, high = axes.get_ylim()
    color, marker = marks.mark(line.look)
    figure = axes.get_figure(root=True)
    assert figure is not None
    aside = axes.transData + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)
    for point in line.points:
        if point.interval:
            ends = [min(max(_at(end, panel.share, low), low), high) for end in point.interval]
            at = [math.log10(point.x)] * 2
            axes.plot(at, ends, color=color, linewidth=1.5, transform=aside)
            capped = [
                end for end in ends if low < end < high
            ]  # what goes on beyond the axis has no end there
            axes.plot(
                at[: len(capped)],
                capped,
                color=color,
                linestyle="",
                marker="_",
                markersize=9,
                transform=aside,
            )
    axes.plot(
        [math.log10(point.x) for point in line.points],
        [_at(point.y, panel.share, low) for point in line.points],
        color=color, linestyle=line.look[2], marker=marker, markeredgecolor=svg.PAPER,
        markeredgewidth=1.0, linewidth=1.75, clip_on=False, transform=aside,
    )  # fmt: skip


def _at(value: float, share: bool, low: float) -> float:
    """Where a figure stands on the vertical axis; on a logarithmic one nothing at or below 0 does."""
    if share:
        return value
    return math.log10(value) if value > 0 else low


def _x_axis(axes: Axes, every: Sequence[float], labels: int) -> None:
    """Ticks where the data is; labels that would touch are left out."""
    at = [math.log10(x) for x in every]
    pad = 0.04 * (at[-1] - at[0]) or 0.3
    axes.set_xlim(at[0] - pad, at[-1] + pad)
    gap = (at[-1] - at[0]) / labels
    shown: list[float] = []
    for place in at:
        if not shown or place - shown[-1] >= gap:
            shown.append(place)
    axes.xaxis.set_major_locator(FixedLocator(at))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: words.number(round(10**x, 9)) if x in shown else "")
    )


def _log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Decades; of fewer than two the steps between them too. The axis holds their logarithms."""
    low, high = math.log10(min(values)), math.log10(max(values))
    pad = 0.05 * (high - low) + 0.05
    low, high = low - pad, high + pad
    axes.set_ylim(low, high)
    steps = (1, 2, 5) if high - low < 2 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    every = 1 + (len(decades) - 1) // 8
    ticks = [decade + math.log10(step) for decade in decades for step in steps if decade % every == 0]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(float(f"{10**y:.3g}"))))


def _direct_labels(axes: Axes, panel: Panel) -> None:
    """Each line's label at its right end."""
    low = axes.get_ylim()[0]
    ends = [
        (_at(line.points[-1].y, panel.share, low), plots.LINE * len(line.text(WIDE)) + GAP, line)
        for line in panel.lines
    ]
    for y, _, line in plots.spread(axes, ends):
        for index, text in enumerate(line.text(WIDE)):
            axes.annotate(
                text, xy=(1, 0), xycoords="axes fraction", xytext=(16, y - plots.LINE * index),
                textcoords="offset pixels", va="center_baseline", annotation_clip=False,
                color=marks.mark(line.look)[0], fontsize=13, fontweight="normal" if index else "bold",
            )  # fmt: skip


def _legend(drawn: Figure, panel: Panel, top: float) -> None:
    """Above the axes, where a phone has no room at the lines' ends."""
    width, height = drawn.get_size_inches() * 72
    y = top + 14
    for line in panel.lines:
        color, marker = marks.mark(line.look)
        drawn.add_artist(
            Line2D(
                [4 / width, 44 / width], [1 - y / height] * 2, color=color, linestyle=line.look[2],
                marker=marker, markevery=[1], markeredgecolor=svg.PAPER, linewidth=1.75,
            )
        )  # fmt: skip
        for index, text in enumerate(line.text(NARROW - 6)):
            place = 1 - (y + plots.LINE * index) / height
            drawn.text(56 / width, place, text, va="center", color=color, fontsize=13, fontweight="bold")
        y += plots.LINE * len(line.text(NARROW)) + GAP
