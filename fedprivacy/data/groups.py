"""Groups of records by the values of one column: categories, or ranges of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.record_columns import MISSING, Column
from fedprivacy.errors import InputError

MOST = 50  # groups of one column; the figures of more are noise, and no picture has room for them
FEW_VALUES = 10  # a column of at most so many different numbers has a group for each


@dataclass(frozen=True)
class Grouping:
    """The group of each record.

    Args:
        column: The column.
        labels: The groups, in the order of their values.
        codes: The group of each record, an index into `labels`, shape (records,).
        edges: Of ranges of numbers, where one ends and the next begins; empty for categories.
    """

    column: str
    labels: tuple[str, ...]
    codes: NDArray[np.int64]
    edges: tuple[float, ...] = ()


def grouping(name: str, column: Column, edges: Sequence[float] = ()) -> Grouping:
    """Groups records by a column.

    Numbers become ranges: [edge, next edge). Without edges, few different numbers have a group each, and of
    more the quartiles of these records are the edges.

    Args:
        name: The column's name.
        column: Its values.
        edges: In rising order; only for numbers.

    Raises:
        InputError: there are too many groups, or edges for categories.
    """
    numbers = column.numbers
    if numbers is None:
        assert column.texts is not None
        if len(edges):
            raise InputError(f"{name}: has categories, not numbers. Remove its edges.")
        labels, codes = np.unique(column.texts.astype(str), return_inverse=True)
        return _bounded(Grouping(name, tuple(map(str, labels)), codes.astype(np.int64)))
    there = np.isfinite(numbers)
    values = np.unique(numbers[there])
    if not len(edges) and len(values) <= FEW_VALUES:
        names = [f"{value:g}" for value in values]
        codes = np.searchsorted(values, np.where(there, numbers, 0.0))
        return _with_missing(name, names, codes, there, ())
    cuts = tuple(map(float, edges)) or _quartiles(numbers[there])
    codes = np.searchsorted(np.array(cuts), np.where(there, numbers, 0.0), side="right")
    return _bounded(_with_missing(name, _ranges(cuts), codes, there, cuts))


def regrouped(name: str, column: Column, like: Grouping) -> Grouping:
    """Groups other records by the same column, into groups with the same labels and edges.

    Args:
        name: The column's name.
        column: The values of the other records.
        like: The grouping to follow; a value that none of its records has is in no group (-1).
    """
    place = {label: at for at, label in enumerate(like.labels)}
    if column.numbers is None:
        assert column.texts is not None
        labels = column.texts.astype(str).tolist()
    elif len(like.edges):
        grouped = grouping(name, column, like.edges)
        labels = [grouped.labels[code] for code in grouped.codes]
    else:  # each value is a group of its own, however many others these records have; or all are one group
        whole = _ranges(())[0] if like.labels[0] == _ranges(())[0] else None
        labels = [(whole or f"{value:g}") if np.isfinite(value) else MISSING for value in column.numbers]
    return Grouping(
        name, like.labels, np.array([place.get(label, -1) for label in labels], np.int64), like.edges
    )


def _with_missing(
    name: str, labels: list[str], codes: NDArray[np.int64], there: NDArray[np.bool_], edges: tuple[float, ...]
) -> Grouping:
    if there.all():
        return Grouping(name, tuple(labels), codes.astype(np.int64), edges)
    coded = np.where(there, codes, len(labels)).astype(np.int64)
    return Grouping(name, (*labels, MISSING), coded, edges)


def _quartiles(values: NDArray[np.float64]) -> tuple[float, ...]:
    """Three edges, or fewer where many values are the same; rounded to what a label shows."""
    edges = sorted({float(f"{edge:g}") for edge in np.quantile(values, [0.25, 0.5, 0.75])})
    return tuple(edge for edge in edges if edge > values.min())


def _ranges(edges: Sequence[float]) -> list[str]:
    """`below 30`, `30 to 45`, `45 and above`: each without its upper end."""
    if not len(edges):
        return ["all"]
    between = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    return [f"below {edges[0]:g}", *between, f"{edges[-1]:g} and above"]


def _bounded(grouped: Grouping) -> Grouping:
    if len(grouped.labels) > MOST:
        raise InputError(
            f"{grouped.column}: has {len(grouped.labels):,} different values, at most {MOST} become groups. "
            "Choose another column, or group its values first."
        )
    return grouped
