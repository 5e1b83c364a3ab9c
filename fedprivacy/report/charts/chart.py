"""A chart: panels with one caption, laid out for a window and for a phone, in words and in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Picture, Table
from fedprivacy.report.charts import legend, panel, scales, spots
from fedprivacy.report.charts.label import LINE, Label, cut
from fedprivacy.report.charts.legend import Sample
from fedprivacy.report.charts.panel import GAP, PAD, Box, Panel
from fedprivacy.report.charts.series import Key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = {False: 920.0, True: 360.0}  # pixels, for a window and for a phone
ABOVE = 10.0  # pixels between the texts above the axes and the axes
BETWEEN = 16.0  # pixels between two panels


@dataclass(frozen=True)
class Placed:
    """A panel with the box of its axes."""

    panel: Panel
    box: Box


@dataclass(frozen=True)
class Layout:
    """Where everything is, in pixels.

    Args:
        width: Of the picture.
        height: Of the picture.
        panels: Each with its box.
        labels: All texts.
        samples: The marks of legends.
    """

    width: float
    height: float
    panels: tuple[Placed, ...]
    labels: tuple[Label, ...]
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Chart:
    """Panels with a caption; all else follows from them.

    Args:
        name: Unique on the page; every id of the drawing begins with it.
        title: The kind of picture, and its subject.
        caption: A description, with the terms of its epsilons.
        panels: At least one.
        heading: The heading above all panels.
        stacked: Whether the panels are one below the other in a wide window too.
        terms: The terms of its epsilons, before the sentences that contain them.
        tables: The same figures with more beside them, in place of those of the panels.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    heading: str = ""
    stacked: bool = False
    terms: str = ""
    tables: tuple[Table, ...] = ()

    @property
    def picture(self) -> Picture:
        """The block of a page, drawn only when the page is printed."""
        caption = " ".join([self.caption, *self.notes])
        return Picture(self, caption, self.tables or self.derived_tables)

    @property
    def notes(self) -> list[str]:
        """Which axes are cut or logarithmic, in sentences."""
        return scales.sentences(scale for each in self.panels for scale in each.scales)

    @property
    def derived_tables(self) -> tuple[Table, ...]:
        """A table for each panel; the first has the caption."""
        captions = [self.caption, *(each.title or each.heading for each in self.panels[1:])]
        return tuple(each.table(caption) for each, caption in zip(self.panels, captions, strict=True))

    @property
    def alt(self) -> str:
        """A description for readers who cannot see the picture."""
        sentences = (words.capital(each.sentence()) for each in self.panels)
        return " ".join(
            filter(None, [self.heading and f"{self.heading}.", self.terms, *sentences, *self.notes])
        )

    def draw(self, *, narrow: bool) -> str:
        """Inline SVG."""
        return self._inline(narrow=True) if narrow else self._wide

    def saved(self, kind: str) -> bytes:
        """Returns the wide picture as a file in the light colours of the page: "svg", "png" or "pdf"."""
        if kind == "svg":
            return svg.alone(self._wide).encode()
        with svg.style():
            return svg.saved(self._figure(self.layout(narrow=False)), kind, self.title)

    @cached_property
    def _wide(self) -> str:
        """Drawn once, for the page and for the file in it: that takes most of the time of a page."""
        return self._inline(narrow=False)

    def _inline(self, *, narrow: bool) -> str:
        with svg.style():
            layout = self.layout(narrow=narrow)
            marks = [spot for placed in layout.panels for spot in placed.panel.spots(placed.box)]
            over = spots.overlay(marks, layout.width, layout.height)
            name = f"{self.name}-{'narrow' if narrow else 'wide'}"
            return svg.write(self._figure(layout), name, self.title, self.alt, over)

    @staticmethod
    def _figure(layout: Layout) -> Figure:
        """The drawing, made within `svg.style()`."""
        drawn = svg.figure(layout.width, layout.height)
        for placed in layout.panels:
            box = placed.box
            right, bottom = layout.width - box.right, layout.height - box.bottom
            axes = svg.place(drawn, box.left, box.top, right, bottom)
            axes.tick_params(labelbottom=False, labelleft=False)
            placed.panel.paint(axes, box)
            for scale in placed.panel.scales:
                scales.paint(drawn, scale, box.left, box.bottom)
        for sample in layout.samples:
            legend.paint(drawn, sample)
        for label in layout.labels:
            drawn.text(
                label.x / layout.width, 1 - label.y / layout.height, label.text,
                ha=label.align, va="center_baseline", color=label.color, fontsize=label.size,
                fontweight="bold" if label.bold else "normal",
            )  # fmt: skip
        return drawn

    def layout(self, *, narrow: bool) -> Layout:
        """The layout: the panels in rows, with a legend of their marks above them."""
        width = WIDTH[narrow]
        columns = self._columns(narrow=narrow)
        room = (width - BETWEEN * (columns - 1)) / columns
        labels: list[Label] = []
        samples: list[Sample] = []
        top = PAD
        if self.heading:
            labels.append(
                Label(cut(self.heading, width, bold=True), 0.0, top + LINE / 2, color=svg.INK, bold=True)
            )
            top += LINE + 6.0
        shared = self._shared(room)
        if shared:
            written, marks, tall = legend.legend(shared, width)
            labels += [label.moved(0.0, top) for label in written]
            samples += [replace(mark, y=mark.y + top) for mark in marks]
            top += tall + 8.0
        sides = [each.sides(room) for each in self.panels]
        placed: list[Placed] = []
        for start in range(0, len(self.panels), columns):
            row = self.panels[start : start + columns]
            left = [max(side[0] for side in sides[at::columns]) for at in range(len(row))]
            right = [max(side[1] for side in sides[at::columns]) for at in range(len(row))]
            inner = [room - a - b for a, b in zip(left, right, strict=True)]
            heads = [self._head(each, room, apart=not shared) for each in row]
            above = max(tall for _, _, tall in heads)
            height = max(each.height(wide, room) for each, wide in zip(row, inner, strict=True))
            for at, each in enumerate(row):
                x = at * (room + BETWEEN)
                box = Box(x + left[at], top + above, inner[at], height, room, x)
                written, marks, tall = heads[at]
                down = top + above - tall
                labels += [label.moved(x, down) for label in written]
                samples += [replace(mark, x=mark.x + x, y=mark.y + down) for mark in marks]
                labels += each.labels(box)
                placed.append(Placed(each, box))
            top += above + height + max(each.below(wide) for each, wide in zip(row, inner, strict=True))
            top += BETWEEN if start + columns < len(self.panels) else PAD
        return Layout(width, top, tuple(placed), tuple(labels), tuple(samples))

    def _columns(self, *, narrow: bool) -> int:
        """The number of panels in a row, which leaves no hole where possible."""
        if narrow or self.stacked:
            return 1
        return 2 if len(self.panels) == 4 else min(3, len(self.panels))

    def _shared(self, room: float) -> list[Key]:
        """The legend of the whole picture, where panels share entries and no look means two things."""
        every = [key for each in self.panels for key in each.keys(room)]
        labels = [label for each in self.panels for label in {key.label for key in each.keys(room)}]
        meanings: dict[str, set[str]] = {}
        for key in every:
            meanings.setdefault(str(key.look), set()).add(key.label)
        shared = len(labels) > len(set(labels)) and all(len(meant) == 1 for meant in meanings.values())
        return every if shared else []

    @staticmethod
    def _head(each: Panel, room: float, *, apart: bool) -> tuple[list[Label], list[Sample], float]:
        """The head of a panel: its title, its legend where it has one, and the label of its axis."""
        labels: list[Label] = []
        samples: Sequence[Sample] = []
        top = 0.0
        lines = panel.head(each, room)
        for text, bold, color in lines:
            if bold:
                labels.append(Label(text, 0.0, top + LINE / 2, color=color, bold=True))
                top += LINE
        keys = each.keys(room) if apart else []
        if keys:
            written, marks, tall = legend.legend(keys, room)
            labels += [label.moved(0.0, top + 2.0) for label in written]
            samples = [replace(mark, y=mark.y + top + 2.0) for mark in marks]
            top += tall + 6.0
        for text, bold, color in lines:
            if not bold:
                labels.append(Label(text, 0.0, top + LINE / 2, color=color))
                top += LINE
        return labels, list(samples), top + (ABOVE if top else GAP)
