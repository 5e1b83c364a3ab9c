"""What one record can change in a count, a histogram and a sum, under each adjacency."""

from __future__ import annotations

import math

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.ranges import check_adjacency


def count_sensitivity(adjacency: str) -> int:
    """What one record can change in a count: 1 under every adjacency.

    Raises:
        InputError: The adjacency is none of the three.
    """
    check_adjacency(adjacency)
    return 1


def histogram_sensitivity(adjacency: str) -> int:
    """What one record can change in a histogram, in L1: 2 under replace-one, where it changes cells, else 1.

    Raises:
        InputError: The adjacency is none of the three.
    """
    check_adjacency(adjacency)
    return 2 if adjacency == "replace-one" else 1


def sum_sensitivity(low: float, high: float, adjacency: str) -> float:
    """What one record can change in a sum of one number a record, each cut to [low, high] before.

    Replacing a record changes the sum by high - low at most, adding, removing or zeroing one by
    max(|low|, |high|).

    Raises:
        InputError: `low` is not below `high`, or the adjacency is none of the three.
    """
    check_adjacency(adjacency)
    if not -math.inf < low < high < math.inf:
        raise InputError(f"low = {low}, high = {high}: low must be below high, and both finite.")
    return high - low if adjacency == "replace-one" else max(abs(low), abs(high))
