"""Some of many items, evenly spaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def spaced(items: Sequence[T], most: int) -> list[T]:
    """The first, the last and evenly spaced ones between, at most so many.

    >>> spaced([1, 2, 3, 4, 5], 3)
    [1, 3, 5]
    """
    if len(items) <= most:
        return list(items)
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]
