"""Lines with intervals: the commonest kind of panel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Group, Table, Value
from fedprivacy.report.charts import legend, panel, strokes
from fedprivacy.report.charts.axis import Axis
from fedprivacy.report.charts.label import LINE, Label, width
from fedprivacy.report.charts.panel import GAP, LARGE, Box
from fedprivacy.report.charts.scales import Scale
from fedprivacy.report.charts.series import Band, Key, Point, Reference, Series
from fedprivacy.report.charts.spacing import spaced
from fedprivacy.report.charts.spots import Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ASIDE = 7.0  # pixels between the points of two series at one place
SPOTS = 25  # points of a series whose values are shown; of more evenly spaced ones
SPOKEN = 8  # points of a series that a sentence names; of more the first and the last
SQUARE = 330.0  # pixels of the side of square axes at most
ENDS = 0.27  # the most of a panel's width that labels at the ends of lines may take
TALL, LOW = 320.0, 216.0  # pixels of the axes, large and beside others


@dataclass(frozen=True)
class Lines:
    """Series over one axis, with intervals, reference lines and bands.

    Args:
        x: The horizontal axis.
        y: The vertical axis; its label is above it.
        series: The series, the first drawn below the others.
        references: Lines across.
        bands: Shaded parts of the horizontal axis.
        title: The name of the panel.
        color: Of the title.
        flat: How tall it is beside others of its width: 0.5 is half as tall.
        legend: Whether labels go into a legend even where the ends of lines have room.
        square: Whether its axes are as tall as wide, with a grid in both directions.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    references: tuple[Reference, ...] = ()
    bands: tuple[Band, ...] = field(default=())
    title: str = ""
    color: str = svg.INK
    flat: float = 1.0
    square: bool = False
    legend: bool = False

    @property
    def heading(self) -> str:
        """The label of the vertical axis."""
        return self.y.title

    @property
    def x_ends(self) -> tuple[float, float]:
        """The ends of the horizontal axis."""
        every = [x for series in self.series for p in series.points for x in (p.x, p.since) if x is not None]
        return self.x.ends([*every, *(line.at for line in self.references if line.upright)], 0.04)

    @property
    def y_ends(self) -> tuple[float, float]:
        """The ends of the vertical axis; on a logarithmic one intervals may leave it below."""
        values = [line.at for line in self.references if not line.upright]
        values += [end for line in self.references for end in line.interval or ()]
        for point in (point for series in self.series for point in series.points):
            values += [point.y, *((point.interval or ())[1 if self.y.log else 0 :])]
        return self.y.ends(values)

    def keys(self, room: float) -> list[Key]:
        """The series and lines whose label is not at their end."""
        if not any(series.end for series in self.series) and self._at_ends(room):
            return []
        return [entry.key for entry in self._labelled]

    def sides(self, room: float) -> tuple[float, float]:
        """The names of the ticks on the left, labels at the ends of lines on the right."""
        height = self._tall(room)
        names = self.y.marks(self.y_ends, panel.rows(height))
        left = max((width(name) for _, name in names), default=0.0) + GAP
        ends = [label.box[2] for _, lines in self._ends(room) for label in lines]
        spare = room - left - SQUARE if self.square else 0.0
        right = max(max(ends) + 2 * GAP if ends else 0.0, GAP, spare)
        return panel.sides(self.x, self.x_ends, room, (left, right))

    def height(self, inner: float, room: float) -> float:
        """As tall as its width suggests, and as the labels at the ends of its lines need."""
        labels = sum(self._label_height(lines) for _, lines in self._ends(room))
        return max(inner if self.square else self._tall(room), labels)

    def below(self, inner: float) -> float:
        """The names of the ticks, and the label."""
        return panel.foot(self.x, panel.across(self.x, self.x_ends, inner), inner)

    def labels(self, box: Box) -> list[Label]:
        """The names of all ticks, and labels at the ends of lines."""
        names = panel.across(self.x, self.x_ends, box.width)
        return [
            *panel.below(self.x, names, box),
            *panel.beside(self.y, self.y_ends, box, panel.rows(box.height)),
            *self._end_labels(box),
        ]

    def paint(self, axes: Axes, box: Box) -> None:
        """Bands, reference lines and series; intervals at the same place are drawn a little apart."""
        axes.set_xlim(*self.x_ends)
        axes.set_ylim(*self.y_ends)
        axes.set_xticks([at for at, _ in self.x.marks(self.x_ends, panel.columns(box.width))], minor=False)
        axes.set_yticks([at for at, _ in self.y.marks(self.y_ends, panel.rows(box.height))], minor=False)
        axes.grid(visible=self.square, axis="x")
        for band in self.bands:
            low, high = self.x.place(band.low), self.x.place(band.high)
            axes.axvspan(low, high, color=band.color, alpha=band.opacity, linewidth=0, zorder=0)
        for line in self.references:
            strokes.reference(axes, line, self.x if line.upright else self.y)
        for series, shift in zip(self.series, self._shifts(box), strict=True):
            strokes.series(axes, series, self.x, self.y, box, shift, inside=self.square)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Both axes; the horizontal one measures nothing that begins at 0."""
        return (
            Scale(self.y, self.y_ends, self.title, measured=not self.square),
            Scale(self.x, self.x_ends, upright=False, measured=False),
        )

    def spots(self, box: Box) -> list[Spot]:
        """The points of each series, of many some, and the labelled lines across."""
        low = self.y_ends[0]
        spots = []
        for line in (line for line in self.references if line.label and not line.upright):
            text = f"{_called(line)}: {self.y.text(line.at)}"
            text += f" ({self.y.interval(line.interval)})" if line.interval else ""
            spots.append(Spot(box.left + box.width / 2, self._down(line.at, box), text))
        for series, shift in zip(self.series, self._shifts(box), strict=True):
            if series.width < 1:
                continue
            for point in spaced(series.points, SPOTS):
                y = max(self.y.place(point.y), low)
                if math.isfinite(self.x.place(point.x)) and math.isfinite(y):
                    at = self._over(point.x, box) + shift, self._down(point.y, box)
                    spots.append(Spot(*at, self._value(series, point)))
        return spots

    def _value(self, series: Series, point: Point) -> str:
        """A point in words: its series, its value with interval, and where it lies."""
        text = f"{self.y.text(point.y)} {self.x.spoken(point.x)}"
        text += f" ({self.y.interval(point.interval)})" if point.interval else ""
        name = series.label or self.title
        return f"{name}: {text}" if name else text

    def sentence(self) -> str:
        """The points of each series; of many the first and the last."""
        parts = [self._spoken(series) for series in self.series if series.width >= 1]
        for line in (line for line in self.references if line.label):
            value = self.y.text(line.at)
            parts.append(_called(line) if value in line.label else f"{_called(line)}: {value}")
        heading = ": ".join(filter(None, [self.title, self.y.label]))
        return f"{heading}. {'; '.join(parts)}." if heading else f"{'; '.join(parts)}."

    def table(self, caption: str) -> Table:
        """A row for each point, the series below each other."""
        rows: list[Sequence[Value] | Group] = []
        for series in self.series:
            rows += [Group(series.label, series.note)] if series.label else []
            rows += [(self._where(p), self.y.text(p.y), self.y.interval(p.interval)) for p in series.points]
        for line in self.references:
            rows += [Group(line.label, self.y.text(line.at))] if line.label else []
        head = (words.capital(self.x.label), self.y.label or "Value", "Interval")
        return Table(caption, head, rows, numeric=frozenset({1, 2}))

    # --- words

    def _where(self, point: Point) -> str:
        return self.x.ticks.get(point.x) or self.x.text(point.x)

    def _spoken(self, series: Series) -> str:
        points = series.points if len(series.points) <= SPOKEN else (series.points[0], series.points[-1])
        each = [
            f"{self.y.text(p.y)} {self.x.spoken(p.x)}"
            + (f" ({self.y.interval(p.interval)})" if p.interval else "")
            for p in points
        ]
        return f"{_called(series)}: {', '.join(each)}" if series.label else ", ".join(each)

    # --- layout

    @property
    def _labelled(self) -> list[Series | Reference]:
        entries: list[Series | Reference] = [*self.series, *self.references]
        return [entry for entry in entries if entry.label]

    def _tall(self, room: float) -> float:
        return self.flat * (TALL if room >= LARGE else LOW)

    def _at_ends(self, room: float) -> bool:
        """Whether the labels are at the ends of the lines: where they take a small part of the width."""
        entries = [] if self.legend else self._labelled
        if room >= LARGE:
            return bool(entries)
        longest = max((width(entry.label, bold=True) for entry in entries), default=math.inf)
        return longest <= ENDS * room and not any(entry.note for entry in entries)

    def _ends(self, room: float) -> list[tuple[Series | Reference, list[Label]]]:
        """The text lines of the labels at the ends of lines."""
        if any(series.end for series in self.series):
            return [
                (series, legend.lines(series.end, "", series.look[0], ENDS * room, bold=True))
                for series in self.series
                if series.end
            ]
        if not self._at_ends(room):
            return []
        return [
            (entry, legend.lines(entry.label, entry.note, entry.look[0], ENDS * room, bold=True))
            for entry in self._labelled
        ]

    @staticmethod
    def _label_height(lines: Sequence[Label]) -> float:
        return LINE * len(lines) + (6.0 if len(lines) > 1 else 1.0)

    def _end_labels(self, box: Box) -> list[Label]:
        ends = self._ends(box.room)
        if not ends:
            return []
        wanted = []
        for entry, lines in ends:
            value = entry.at if isinstance(entry, Reference) else entry.points[-1].y
            wanted.append((self._down(value, box), self._label_height(lines)))
        x = box.right + 2 * GAP - 2
        if len(self.series) == 1 and self.series[0].end:
            x = self._over(self.series[0].points[-1].x, box) + GAP
        tops = legend.spread(wanted, box.top - LINE / 2, box.bottom + LINE / 2)
        return [
            label.moved(x, top + LINE / 2)
            for (_, lines), top in zip(ends, tops, strict=True)
            for label in lines
        ]

    def _down(self, value: float, box: Box) -> float:
        low, high = self.y_ends
        place = min(max(self.y.place(value), low), high)
        return box.bottom - box.height * (place - low) / (high - low)

    def _over(self, value: float, box: Box) -> float:
        low, high = self.x_ends
        return box.left + box.width * (self.x.place(value) - low) / (high - low)

    def _shifts(self, box: Box) -> list[float]:
        """The offset of each series in pixels, for those with intervals that share a place, in order."""
        shifts = [0.0] * len(self.series)
        groups: list[tuple[set[float], list[int]]] = []
        for index, series in enumerate(self.series):
            places = {point.x for point in series.points}
            if not any(point.interval for point in series.points):
                continue
            touching = [group for group in groups if group[0] & places]
            groups = [group for group in groups if group not in touching]
            groups.append(
                (places.union(*(g[0] for g in touching)), [*(at for g in touching for at in g[1]), index])
            )
        for places, members in groups:
            pixels = sorted(self._over(x, box) for x in places)
            gap = min((b - a for a, b in pairwise(pixels)), default=box.width)
            step = min(ASIDE, 0.5 * gap / len(members))
            for place, index in enumerate(sorted(members)):
                shifts[index] = step * (place - (len(members) - 1) / 2)
        return shifts


def _called(entry: Series | Reference) -> str:
    """Its label with its note."""
    return f"{entry.label} ({entry.note})" if entry.note else entry.label
