"""Limits of groups of clients; scenarios are read with them, so nothing heavy is imported."""

from __future__ import annotations

OTHERS = "others"  # the group of clients in no group
COLUMN = "privacy.groups"  # of accuracy by group: the groups of clients with budgets that differ
LEAST_RATE = 1e-9
MOST_GROUPS = 20  # besides the others
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"
NAME_WORDS = "letters, digits, hyphens and underscores, at most 40, the first a letter or a digit"


def least_weight(population: int) -> float:
    """The least weight of a group: rounding of a sum of so many clients stays below a quarter of its part.

    Args:
        population: The number of clients; `mechanisms.clipping.bounds_of_a_sum` bounds the rounding.
    """
    return max(1e-3, min(2.0**-4, population * 2.0**-27))
