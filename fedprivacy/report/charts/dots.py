"""Dots with intervals: a row for each name, a mark for each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedprivacy.report import svg
from fedprivacy.report.blocks import Table
from fedprivacy.report.charts import panel, strokes
from fedprivacy.report.charts.axis import Axis
from fedprivacy.report.charts.label import LINE, SMALL, Label, cut, width, wrapped
from fedprivacy.report.charts.looks import mark
from fedprivacy.report.charts.panel import GAP, LARGE, Box
from fedprivacy.report.charts.scales import Scale
from fedprivacy.report.charts.series import Key, Point, Reference, Series
from fedprivacy.report.charts.spots import Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, DENSE, SEVERAL = 26.0, 19.0, 12.0  # pixels of a row, of one among many, of each further dot in it
MANY, FEW = 20, 24  # rows; with at most so many, names may be above their rows
NOTED, HEADING = 42.0, 32.0  # pixels of a row with a note, and of the heading of rows
NAMES = 0.31  # the most of a panel's width that names beside rows may take
SPOKEN = 6  # rows that a sentence names
UPRIGHT = "|"  # the marker that is an upright line through its row


@dataclass(frozen=True)
class Row:
    """A row, or the heading of those below it.

    Args:
        label: Its name.
        note: More about it, where there is room.
        heading: Whether it heads rows and has no marks.
        says: Its name in sentences and tables, where it is longer there.
        value: The text at its right end in place of its value.
    """

    label: str
    note: str = ""
    heading: bool = False
    says: str = ""
    value: str = ""


@dataclass(frozen=True)
class Dots:
    """Series over rows: of their points x is the value, y the number of the row.

    Args:
        x: The axis of values.
        rows: From the top down.
        series: Those with the marker `UPRIGHT` are lines through their rows.
        heading: The quantity, as a heading above the panel.
        references: Upright lines through all rows.
        values: Whether the value of each row is written at its right end.
        joined: Whether a line leads from the least mark of a row to the largest.
        missing: The text in sentences for a series without a point.
        title: The name of the panel.
        color: Of the title.
    """

    x: Axis
    rows: tuple[Row, ...]
    series: tuple[Series, ...]
    heading: str = ""
    references: tuple[Reference, ...] = ()
    values: bool = False
    joined: bool = False
    missing: str = "no figure"
    title: str = ""
    color: str = svg.INK

    @property
    def x_ends(self) -> tuple[float, float]:
        """The ends of the axis."""
        points = [point for series in self.series for point in series.points]
        values = [value for p in points for value in (p.x, *(p.interval or ()))]
        return self.x.ends([*values, *(line.at for line in self.references)], 0.06)

    def keys(self, room: float) -> list[Key]:
        """The legend of the marks, where there are several."""
        entries = {series.label: _key(series) for series in self.series if series.label and series.points}
        return list(entries.values()) if len(entries) > 1 else []

    def sides(self, room: float) -> tuple[float, float]:
        """Names on the left where they fit there, values on the right."""
        right = max((width(text, bold=True) for text, _ in self._values().values()), default=0.0)
        names = 0.0
        if not self._above(room):
            names = max((self._wide(row, room) for row in self.rows), default=0.0)
        # A name that is cut takes all the room.
        names = min(names, NAMES * room)
        least = names + GAP if names else GAP, right + 2 * GAP if right else GAP
        return panel.sides(self.x, self.x_ends, room, least)

    def height(self, inner: float, room: float) -> float:
        """All rows."""
        return sum(self._heights(room))

    def below(self, inner: float) -> float:
        """The names of the ticks, and the label."""
        return panel.foot(self.x, panel.across(self.x, self.x_ends, inner), inner)

    def labels(self, box: Box) -> list[Label]:
        """Names, values, and the axis below."""
        names = panel.across(self.x, self.x_ends, box.width)
        labels = panel.below(self.x, names, box)
        values, room = self._values(), box.room
        left = box.start
        plain = not any(row.heading or row.note for row in self.rows)
        top, heights = box.top, self._heights(room)
        # Beside a taller panel the axes are stretched, and the names with them.
        stretch = box.height / sum(heights) if heights else 1.0
        for number, (row, plain_tall) in enumerate(zip(self.rows, heights, strict=True)):
            tall = stretch * plain_tall
            middle = top + tall * self._middle(room)
            if row.heading:
                lines = self._heading(row, room)
                first = top + tall - GAP - LINE * (len(lines) - 0.5)
                labels += [
                    Label(text, left, first + LINE * at, color=svg.INK, bold=True)
                    for at, text in enumerate(lines)
                ]
            elif self._above(room):
                labels.append(Label(cut(row.label, room), left, top + 0.28 * tall, color=svg.INK))
            elif row.note and self._noted(room):
                name = cut(row.label, NAMES * room, bold=True)
                labels.append(Label(name, left, middle - LINE / 2, color=svg.INK, bold=True))
                labels.append(Label(cut(row.note, NAMES * room, SMALL), left, middle + LINE / 2, size=SMALL))
            elif row.label:
                at, align, color = (box.left - GAP, "right", svg.MUTED) if plain else (left, "left", svg.INK)
                labels.append(Label(cut(row.label, NAMES * room), at, middle, align, color))
            if number in values:
                text, color = values[number]
                labels.append(Label(text, box.right + GAP, middle, color=color, bold=True))
            top += tall
        return labels

    def paint(self, axes: Axes, box: Box) -> None:
        """The marks; the vertical axis counts pixels from the top."""
        heights, above, share = self._heights(box.room), self._above(box.room), self._middle(box.room)
        tops = [sum(heights[:number]) for number in range(len(heights))]
        axes.set_xlim(*self.x_ends)
        axes.set_ylim(sum(heights), 0)
        axes.set_xticks([at for at, _ in self.x.marks(self.x_ends, panel.columns(box.width))])
        axes.set_yticks([])
        axes.grid(visible=not above, axis="x")
        for number, (row, top, tall) in enumerate(zip(self.rows, tops, heights, strict=True)):
            if row.heading:
                continue
            for line in self.references:
                ends = [top + tall * (0.42 if above else 0.0), top + tall]
                axes.plot([line.at] * 2, ends, color=line.look[0], linewidth=line.width, zorder=1)
            self._row(axes, number, top + share * tall, tall)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The axis of values."""
        return (Scale(self.x, self.x_ends, self.heading or self.title, upright=False),)

    def spots(self, box: Box) -> list[Spot]:
        """Every mark."""
        heights, share = self._heights(box.room), self._middle(box.room)
        low, high = self.x_ends
        spots = []
        for number, tall in enumerate(heights):
            dots, middle = self._dots(number), box.top + sum(heights[:number]) + share * tall
            for at, series in enumerate(self.series):
                aside = SEVERAL * (dots.index(at) - (len(dots) - 1) / 2) if at in dots else 0.0
                for point in (point for point in series.points if point.y == number):
                    across = (self.x.place(point.x) - low) / (high - low)
                    text = f"{series.label}, {self._name(point)}".strip(", ")
                    text += f": {self.x.text(point.x)}"
                    text += f" ({self.x.interval(point.interval)})" if point.interval else ""
                    spots.append(Spot(box.left + box.width * across, middle + aside, text))
        return spots

    def sentence(self) -> str:
        """The first rows of each series."""
        parts = []
        for series in self.series:
            each = [
                f"{self._name(point)} {self.x.text(point.x)}".strip()
                + (f" ({self.x.interval(point.interval)})" if point.interval else "")
                for point in series.points[:SPOKEN]
            ]
            more = len(series.points) - SPOKEN
            parts.append(
                f"{series.label}: {', '.join(each) or self.missing}"
                + (f" and {more:,} more" if more > 0 else "")
            )
        text = "; ".join(parts)
        return f"{self.heading}. {text}." if self.heading else f"{text}."

    def table(self, caption: str) -> Table:
        """A row for each row, a column for each series."""
        rows = []
        for number, row in enumerate(self.rows):
            if row.heading:
                continue
            cells = ([p for p in series.points if p.y == number] for series in self.series)
            rows.append((row.says or row.label, *(self._cell(points) for points in cells)))
        head = ("", *(series.label for series in self.series))
        return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))

    # --- words

    def _name(self, point: Point) -> str:
        row = self.rows[round(point.y)]
        return row.says or row.label

    def _cell(self, points: Sequence[Point]) -> str:
        if not points:
            return "—"
        ends = f"\n{self.x.interval(points[0].interval)}" if points[0].interval else ""
        return self.x.text(points[0].x) + ends

    def _values(self) -> dict[int, tuple[str, str]]:
        """The text at the right end of each row, with its colour."""
        if not self.values:
            return {}
        return {
            (row := round(point.y)): (self.rows[row].value or self.x.text(point.x), series.look[0])
            for series in reversed(self.series)
            if series.look[1] != UPRIGHT
            for point in series.points
        }

    # --- layout

    def _noted(self, room: float) -> bool:
        """Whether there are notes, and room for all of them."""
        notes = [width(row.note, SMALL) for row in self.rows if row.note]
        return 0.0 < max(notes, default=0.0) <= NAMES * room

    def _wide(self, row: Row, room: float) -> float:
        if row.heading:
            return 0.0
        if row.note and self._noted(room):
            return max(width(row.label, bold=True), width(row.note, SMALL))
        return width(row.label)

    def _above(self, room: float) -> bool:
        """Whether names are above their rows: on a phone, where one does not fit beside few rows."""
        if room >= LARGE or len(self.rows) > FEW:
            return False
        return any(width(row.label) > NAMES * room for row in self.rows if not row.heading)

    def _middle(self, room: float) -> float:
        """Where the marks of a row are, as a share of its height."""
        return 0.7 if self._above(room) else 0.5

    def _heading(self, row: Row, room: float) -> list[str]:
        """Beside the axes in a window, above the rows on a phone."""
        return wrapped(row.label, NAMES * room if room >= LARGE else room, bold=True, most=3)

    def _dots(self, number: int) -> list[int]:
        """Which series have a dot in a row."""
        return [
            at
            for at, series in enumerate(self.series)
            if series.look[1] != UPRIGHT and any(point.y == number for point in series.points)
        ]

    def _heights(self, room: float) -> list[float]:
        dots = max((len(self._dots(number)) for number in range(len(self.rows))), default=1)
        tall = (ROW if len(self.rows) <= MANY else DENSE) + SEVERAL * max(0, dots - 1)
        if self._above(room):
            tall += LINE
        elif self._noted(room):
            tall = max(tall, NOTED)
        return [
            HEADING + LINE * (len(self._heading(row, room)) - 1) if row.heading else tall for row in self.rows
        ]

    # --- marks

    def _row(self, axes: Axes, number: int, middle: float, tall: float) -> None:
        dots = self._dots(number)
        known = [p.x for series in self.series for p in series.points if p.y == number]
        if self.joined and len(known) > 1:
            axes.plot([min(known), max(known)], [middle] * 2, color=svg.GRID, linewidth=5, zorder=1)
        for at, series in enumerate(self.series):
            color, marker = mark(series.look)
            for point in (point for point in series.points if point.y == number):
                if marker == UPRIGHT:
                    half = 0.42 * min(tall, ROW)
                    strokes.upright(axes, color, point.x, (middle - half, middle + half))
                else:
                    aside = SEVERAL * (dots.index(at) - (len(dots) - 1) / 2)
                    strokes.dot(axes, (color, marker), point, middle + aside)


def _key(series: Series) -> Key:
    """Its mark without a line."""
    color, marker = mark(series.look)
    return Key(series.label, (color, marker, ""))
