"""A surface over a plane, as lines of equal height, with a path over it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Table
from fedprivacy.report.charts.axis import Axis
from fedprivacy.report.charts.lines import Lines
from fedprivacy.report.charts.panel import Box
from fedprivacy.report.charts.scales import Scale
from fedprivacy.report.charts.series import Point, Series
from fedprivacy.report.charts.spots import Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = 12  # lines of equal height
ROOM = 0.25  # margin as a share of the drawn range, on each side

Place = Sequence[float]  # both coordinates


@dataclass(frozen=True)
class Surface(Lines):
    """Heights over a square grid; its series are a path, a minimum and an estimate.

    Args:
        grid: The values of both coordinates.
        heights: A row for each value of the second coordinate.
    """

    grid: tuple[float, ...] = ()
    heights: tuple[tuple[float, ...], ...] = ()

    def paint(self, axes: Axes, box: Box) -> None:
        """Lines of equal height by a constant factor above the minimum: it lies in a narrow valley."""
        grid, heights = np.array(self.grid), np.array(self.heights)
        rise = heights - heights.min()
        top = float(rise.max()) or 1.0
        levels = heights.min() + np.geomspace(top * 1e-3, top, LEVELS)
        axes.contour(
            grid, grid, heights, levels=levels, colors=svg.MUTED, linewidths=0.8, linestyles="solid", zorder=1
        )
        super().paint(axes, box)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Coordinates, which begin nowhere."""
        return ()

    def spots(self, box: Box) -> list[Spot]:
        """The marks without the path."""
        every = [(mark.label, mark.points[0]) for mark in self.series[1:]]
        return [
            Spot(self._over(p.x, box), self._down(p.y, box), f"{name}: {self._pair(p)}") for name, p in every
        ]

    def sentence(self) -> str:
        """Where the path begins, and where its marks lie."""
        path, *marks = self.series
        first = path.points[0]
        places = "; ".join(f"{mark.label}: {self._pair(mark.points[0])}" for mark in marks)
        ends = [(mark.points[0].x, mark.points[0].y) for mark in marks]
        apart = f", {words.number(math.dist(*ends), 3)} apart" if len(ends) == 2 else ""
        return (
            f"Lines of equal height over {self.x.label} and {self.y.label}, with a path from "
            f"{self._pair(first)}. {places}{apart}."
        )

    def table(self, caption: str) -> Table:
        """Both coordinates of the marks."""
        marks = self.series[1:]
        rows = [
            (self.x.label, *(words.number(mark.points[0].x) for mark in marks)),
            (self.y.label, *(words.number(mark.points[0].y) for mark in marks)),
        ]
        head = ("Coordinate", *(mark.label for mark in marks))
        return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))

    @staticmethod
    def _pair(point: Point) -> str:
        return f"({words.number(point.x, 3)}, {words.number(point.y, 3)})"


def surface(
    names: Sequence[str],
    grid: Sequence[float],
    heights: Sequence[Sequence[float]],
    path: Sequence[Place],
    minimum: Place,
    estimate: Place,
) -> Surface:
    """The panel of a descent: its iterates from 0, the minimum (a cross) and the estimate (a dot)."""
    steps = tuple(Point(place[0], place[1]) for place in path) or (Point(0.0, 0.0),)
    series = (
        Series((svg.CENTRAL, "", "-"), "Iterates", steps, width=1.0),
        Series((svg.INK, "x", ""), "Minimum", (Point(minimum[0], minimum[1], large=True),)),
        Series((svg.LOCAL, "o", ""), "Private estimate", (Point(estimate[0], estimate[1], large=True),)),
    )
    every = [(point.x, point.y) for line in series for point in line.points] + [(0.0, 0.0)]
    limits = []
    for values in zip(*every, strict=True):
        pad = ROOM * (max(values) - min(values)) or 0.5
        limits.append((max(min(values) - pad, grid[0]), min(max(values) + pad, grid[-1])))
    return Surface(
        Axis(names[0], limits=limits[0]),
        Axis(names[1], limits=limits[1]),
        series,
        flat=1.5,
        legend=True,
        grid=tuple(grid),
        heights=tuple(map(tuple, heights)),
    )
