"""The marks of a panel on matplotlib axes: points with intervals, lines, lines across."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedprivacy.report.charts.axis import Axis
from fedprivacy.report.charts.legend import edge
from fedprivacy.report.charts.panel import Box
from fedprivacy.report.charts.series import Point, Reference, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

SMALL, LARGE = 8.0, 12.0  # pixels of a mark
MARKED, SOME = 25, 8  # points of a line that each have their mark; of more about so many have
ROOM = 12.0  # pixels of a point without a line; of less it is drawn smaller


def reference(axes: Axes, line: Reference, axis: Axis) -> None:
    """A line across with its band."""
    color, _, dashes = line.look
    if line.interval:
        span = axes.axvspan if line.upright else axes.axhspan
        span(*map(axis.place, line.interval), color=color, alpha=0.14, linewidth=0)
    across = axes.axvline if line.upright else axes.axhline
    across(axis.place(line.at), color=color, linestyle=dashes, linewidth=line.width)


def series(
    axes: Axes, drawn: Series, x: Axis, y: Axis, box: Box, shift: float, *, inside: bool = False
) -> None:
    """A line with its marks and intervals.

    Args:
        axes: With its limits set.
        drawn: The series.
        x: The horizontal axis.
        y: The vertical axis.
        box: Of the axes.
        shift: The offset of the whole mark, in pixels.
        inside: Whether the line ends at the edges of the axes.
    """
    from matplotlib.transforms import ScaledTranslation

    color, marker, dashes = drawn.look
    low = axes.get_ylim()[0]
    figure = axes.get_figure(root=True)
    assert figure is not None
    aside = axes.transData + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)
    crowded = 1.0 if dashes else max(0.3, min(1.0, box.width / max(1, len(drawn.points)) / ROOM))

    def placed(points: list[Point]) -> tuple[list[float], list[float]]:
        return [x.place(p.x) for p in points], [max(y.place(p.y), low) for p in points]

    for point in drawn.points:
        if point.since is not None:
            ends = [x.place(point.since), x.place(point.x)]
            axes.plot(ends, [y.place(point.y)] * 2, color=color, linewidth=1.0, alpha=0.6)
        if point.interval:
            _interval(axes, x.place(point.x), [y.place(end) for end in point.interval], color, crowded, aside)
    axes.plot(
        *placed([point for point in drawn.points if point.joined]),
        color=color, linestyle=dashes or "", linewidth=drawn.width, transform=aside,
        drawstyle="steps-post" if drawn.steps else "default", clip_on=drawn.steps or inside,
    )  # fmt: skip
    often = 1 if len(drawn.points) <= MARKED or not dashes else len(drawn.points) // SOME
    for size, large in ((SMALL * crowded, False), (LARGE, True)):
        axes.plot(
            *placed([point for point in drawn.points if point.large is large]),
            color=color, linestyle="", marker=marker, markevery=often, clip_on=False, transform=aside,
            zorder=3, **edge(color, marker, size),
        )  # fmt: skip


def _interval(axes: Axes, x: float, ends: list[float], color: str, crowded: float, aside: Transform) -> None:
    """An upright bar; one that extends beyond the axis has no end there."""
    low, high = axes.get_ylim()
    axes.plot(
        [x, x],
        [min(max(end, low), high) for end in ends],
        color=color,
        linewidth=1.5 * crowded,
        transform=aside,
    )
    capped = [end for end in ends if low < end < high]
    axes.plot(
        [x] * len(capped), capped, color=color, linestyle="", marker="_", markersize=SMALL * crowded,
        transform=aside,
    )  # fmt: skip


def dot(axes: Axes, look: tuple[str, str], point: Point, down: float) -> None:
    """A mark in a row, so many pixels down, with its interval along the row."""
    color, marker = look
    if point.interval:
        axes.plot(
            point.interval, [down, down], color=color, linewidth=2.25, solid_capstyle="butt",
            marker="|", markersize=9, markeredgewidth=1.75, zorder=2,
        )  # fmt: skip
    axes.plot(
        [point.x], [down], color=color, linestyle="", marker=marker, clip_on=False, zorder=3,
        **edge(color, marker, 10.0),
    )  # fmt: skip


def upright(axes: Axes, color: str, at: float, ends: tuple[float, float]) -> None:
    """An upright line through a row, which no dot hides."""
    axes.plot([at, at], ends, color=color, linewidth=2.5, clip_on=False, zorder=1.5)
