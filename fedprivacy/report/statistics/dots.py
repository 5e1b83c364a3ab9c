"""Answers as dots with their intervals: a row for each category or number, a mark for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from fedprivacy.documents.answers import Row
from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.statistics import figures

EXACT: plots.Look = (svg.NONE, "|", "")  # the true value: an upright line that no dot hides
NAME, NAME_NARROW = 16, 11  # characters of a category in the picture; the table has all
ROW, DENSE, SEVERAL = 26, 19, 12  # pixels of a row with one mark, of one among many, of each further mark
MANY = 20  # rows
TITLE, AXIS = 34, 44  # pixels above and below the rows of a panel


@dataclass(frozen=True)
class Column:
    """One mark in each row: an arm, or the true values."""

    look: plots.Look
    label: str
    rows: Mapping[int, Row]


@dataclass(frozen=True)
class Panel:
    """One query: its rows by place, with an axis of its own.

    Args:
        heading: What the axis shows.
        kind: The kind of query, which says how numbers are written.
        names: Place -> name of the row, in the order in which they are drawn.
        columns: The marks.
    """

    heading: str
    kind: str
    names: Mapping[int, str]
    columns: Sequence[Column]

    def above(self, *, narrow: bool) -> float:
        """The height of what stands above the rows, in pixels."""
        return TITLE + plots.LINE * (len(marks.title(self.heading, narrow=narrow)) - 1)

    def height(self, *, narrow: bool) -> float:
        """The height of all of it, in pixels."""
        return self.above(narrow=narrow) + self.row * len(self.names) + AXIS

    @property
    def row(self) -> float:
        """The height of a row in pixels: dots beside each other need room."""
        dots = sum(column.look[1] != "|" for column in self.columns)
        return (ROW if len(self.names) <= MANY else DENSE) + SEVERAL * max(0, dots - 1)


def draw(panels: Sequence[Panel], name: str, title: str, alt: str, *, narrow: bool) -> str:
    """The panels below each other.

    Args:
        panels: Each with at least one row.
        name: Unique on the page.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone.

    Returns:
        Inline SVG.
    """
    entries = list(dict.fromkeys((column.look, column.label) for each in panels for column in each.columns))
    head = 12.0 + marks.HEAD * marks.lines([label for _, label in entries], narrow=narrow)
    width, height = 360.0 if narrow else 920.0, head + sum(panel.height(narrow=narrow) for panel in panels)
    with svg.style():
        drawn = svg.figure(width, height)
        top = head
        for panel in panels:
            named = any(panel.names.values())
            left = (110 if narrow else 150) if named else 20
            end = top + panel.height(narrow=narrow)
            axes = svg.place(drawn, left, top + panel.above(narrow=narrow), 24, height - end + AXIS)
            _panel(axes, panel, narrow=narrow)
            marks.write_title(drawn, marks.title(panel.heading, narrow=narrow), top + 8)
            top = end
        marks.legend(drawn, entries, narrow=narrow)
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, alt)


def _panel(axes: Axes, panel: Panel, *, narrow: bool) -> None:
    places = list(panel.names)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.grid(visible=True, axis="x")
    axes.yaxis.set_major_locator(FixedLocator(range(len(places))))
    most = NAME_NARROW if narrow else NAME
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: marks.short(panel.names[places[round(y)]], most))
    )
    axes.xaxis.set_major_locator(MaxNLocator(4 if narrow else 8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: figures.value(panel.kind, x, digits=6)))
    dots = [column for column in panel.columns if column.look[1] != "|"]
    for column in panel.columns:
        shift = 0.0
        if column in dots:
            shift = (dots.index(column) - (len(dots) - 1) / 2) * min(0.3, 0.8 / len(dots))
        _column(axes, column, places, shift, tall=0.85 * panel.row)
    _room(axes, panel)


def _column(axes: Axes, column: Column, places: Sequence[int], shift: float, tall: float) -> None:
    color, marker = marks.mark(column.look)
    upright = marker == "|"
    for row, place in enumerate(places):
        drawn_row = column.rows.get(place)
        if drawn_row is None or drawn_row.estimate is None:
            continue
        y = row + shift
        if drawn_row.interval:
            axes.plot(
                drawn_row.interval, [y, y], color=color, linewidth=2.25, solid_capstyle="butt", zorder=2
            )
            axes.plot(
                drawn_row.interval, [y, y], linestyle="", marker="|", color=color, markersize=9,
                markeredgewidth=1.75, zorder=2,
            )  # fmt: skip
        axes.plot(
            [drawn_row.estimate], [y], linestyle="", color=color, marker=marker, clip_on=False,
            markersize=tall if upright else 10, zorder=1.5 if upright else 3,
            markeredgewidth=marks.thickness(marker), markeredgecolor=color if upright else svg.PAPER,
        )  # fmt: skip


def _room(axes: Axes, panel: Panel) -> None:
    """A little room on both sides of all that is drawn."""
    rows = [row for column in panel.columns for place, row in column.rows.items() if place in panel.names]
    ends = [end for row in rows if row.estimate is not None for end in (row.estimate, *(row.interval or ()))]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    # Where all marks stand on one spot, an axis as narrow as rounding would show steps that mean nothing.
    pad = max(0.06 * (high - low), 1e-6 * max(abs(low), abs(high)), 1e-12)
    axes.set_xlim(low - pad, high + pad)


def alt_text(panel: Panel, most: int = 3) -> str:
    """A panel in words: the first rows of each column."""
    parts = []
    for column in panel.columns:
        known = [
            (panel.names[place], row)
            for place in panel.names
            if (row := column.rows.get(place)) is not None and row.estimate is not None
        ]
        each = [
            f"{name} {figures.value(panel.kind, row.estimate)}".strip()
            + (f" ({figures.interval(panel.kind, row.interval)})" if row.interval else "")
            for name, row in known[:most]
        ]
        more = f" and {len(known) - most:,} more" if len(known) > most else ""
        parts.append(f"{column.label}: {', '.join(each) or figures.UNKNOWN}{more}")
    return f"{panel.heading}. {'; '.join(parts)}."


def spoken(panels: Sequence[Panel]) -> str:
    """All panels in words."""
    return words.capital(" ".join(map(alt_text, panels)))
