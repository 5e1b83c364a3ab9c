"""What one record can change in a count and a histogram, under each adjacency."""

from __future__ import annotations

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
