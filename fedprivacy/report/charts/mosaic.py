"""Rows of small pictures: pixel by pixel, as vector shapes, since a page holds no image files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from fedprivacy.report import svg
from fedprivacy.report.blocks import Table
from fedprivacy.report.charts.label import LINE, Label, cut, width
from fedprivacy.report.charts.panel import GAP, NAME, Box
from fedprivacy.report.charts.scales import Scale
from fedprivacy.report.charts.series import Key
from fedprivacy.report.charts.spots import Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.06  # of a picture's side, around it


@dataclass(frozen=True)
class Pixels:
    """A square picture.

    Args:
        side: The pixels of a side.
        channels: 1 or 3, those of a pixel being neighbours.
        digits: A hexadecimal digit for each channel of each pixel.
    """

    side: int
    channels: int
    digits: str

    def runs(self) -> dict[str, list[tuple[int, int, int]]]:
        """Pixels of one colour that are neighbours in a row: row, first column and length, by colour."""
        colours: dict[str, list[tuple[int, int, int]]] = {}
        for row in range(self.side):
            column = 0
            for colour, same in groupby(self._colour(row * self.side + at) for at in range(self.side)):
                length = len(list(same))
                colours.setdefault(colour, []).append((row, column, length))
                column += length
        return colours

    def _colour(self, pixel: int) -> str:
        digits = self.digits[pixel * self.channels : (pixel + 1) * self.channels]
        return "#" + "".join(2 * digit for digit in (digits * 3 if self.channels == 1 else digits))


@dataclass(frozen=True)
class Mosaic:
    """A row of pictures for each name.

    Args:
        title: In bold above it.
        rows: The names.
        pictures: Of each row, as many in each.
        notes: A line below each column; empty for none.
    """

    title: str
    rows: tuple[str, ...]
    pictures: tuple[tuple[Pixels, ...], ...]
    notes: tuple[tuple[str, ...], ...] = ()
    heading: str = ""
    color: str = svg.INK

    @property
    def columns(self) -> int:
        """The number of pictures in a row."""
        return len(self.pictures[0])

    def keys(self, room: float) -> list[Key]:
        """None: rows have names."""
        return []

    def sides(self, room: float) -> tuple[float, float]:
        """The names of rows on the left."""
        return max(width(self._name(name, room)) for name in self.rows) + GAP, GAP

    def height(self, inner: float, room: float) -> float:
        """Pictures are square."""
        return inner / self.columns * len(self.rows)

    def below(self, inner: float) -> float:
        """Nothing is below."""
        return 0.0

    def labels(self, box: Box) -> list[Label]:
        """The names of the rows."""
        each = box.height / len(self.rows)
        return [
            Label(self._name(name, box.room), box.left - GAP, box.top + each * (at + 0.5), "right")
            for at, name in enumerate(self.rows)
            if each >= LINE
        ]

    def paint(self, axes: Axes, box: Box) -> None:
        """Draws each colour of each picture as a single shape."""
        axes.set(xlim=(0, self.columns), ylim=(len(self.rows), 0))
        axes.set_axis_off()
        for row, pictures in enumerate(self.pictures):
            for column, picture in enumerate(pictures):
                _paint(axes, picture, column, row, box.width / self.columns)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """None: it measures nothing."""
        return ()

    def spots(self, box: Box) -> list[Spot]:
        """The note of each picture."""
        across, down = box.width / self.columns, box.height / len(self.rows)
        return [
            Spot(box.left + across * column, box.top + down * row, note, across, down)
            for row, notes in enumerate(self.notes)
            for column, note in enumerate(notes)
            if note
        ]

    def sentence(self) -> str:
        """The names of the rows, and the number of pictures."""
        return f"{self.columns} pictures in each row: {', '.join(self.rows)}."

    def table(self, caption: str) -> Table:
        """The notes of each picture."""
        rows: Sequence[tuple[str, ...]] = [
            (str(at + 1), *(notes[at] or "—" for notes in self.notes)) for at in range(self.columns)
        ]
        return Table(caption, ("Picture", *self.rows[: len(self.notes)]), rows)

    @staticmethod
    def _name(name: str, room: float) -> str:
        return cut(name, min(NAME, room / 4))


def _paint(axes: Axes, picture: Pixels, left: int, top: int, size: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    pixel = (1 - 2 * _MARGIN) / picture.side
    for colour, runs in sorted(picture.runs().items()):
        points, codes = [], []
        for row, column, length in runs:
            x, y = left + _MARGIN + column * pixel, top + _MARGIN + (row + 0.5) * pixel
            points += [(x, y), (x + length * pixel, y)]
            codes += [Path.MOVETO, Path.LINETO]
        # A stroke as wide as a pixel, and a little more, which closes the seams between rows.
        axes.add_patch(
            PathPatch(
                Path(points, codes), facecolor="none", edgecolor=colour, linewidth=1.05 * pixel * size,
                capstyle="butt",
            )
        )  # fmt: skip
