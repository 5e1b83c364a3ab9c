"""Answers as dots with their intervals: a row for each category or number, a mark for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedprivacy.documents.answers import Row
from fedprivacy.report import svg
from fedprivacy.report.charts import Axis, Dots, Point, Series
from fedprivacy.report.charts import Row as Named
from fedprivacy.report.charts.looks import Look
from fedprivacy.report.statistics import figures

EXACT: Look = (svg.INK, "|", "")  # the true value: an upright line that no dot hides


@dataclass(frozen=True)
class Column:
    """One mark in each row: an arm, or the true values."""

    look: Look
    label: str
    rows: Mapping[int, Row]


def panel(heading: str, kind: str, names: Mapping[int, str], columns: Sequence[Column]) -> Dots:
    """One query, on an axis of its own.

    Args:
        heading: The label of the axis.
        kind: The kind of query, which determines how numbers are written.
        names: Place -> name of the row, in the order in which they are drawn.
        columns: The marks.
    """
    series = []
    for column in columns:
        points = [
            Point(row.estimate, float(number), figures.cut(kind, row.interval))
            for number, place in enumerate(names)
            if (row := column.rows.get(place)) is not None and row.estimate is not None
        ]
        series.append(Series(column.look, column.label, tuple(points)))
    return Dots(
        Axis(
            text=lambda value: figures.value(kind, value),
            tick_text=lambda value: figures.value(kind, value, digits=6),
        ),
        tuple(Named(name) for name in names.values()),
        tuple(series),
        heading,
        missing=figures.UNKNOWN,
    )
