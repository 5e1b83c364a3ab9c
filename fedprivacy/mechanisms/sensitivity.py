"""The sensitivity of a count and a histogram to one record, under each adjacency."""

from __future__ import annotations

from fedprivacy.mechanisms.ranges import check_adjacency


def count_sensitivity(adjacency: str) -> int:
    """The sensitivity of a count to one record: 1 under every adjacency.

    Raises:
        InputError: The adjacency is none of the three.
    """
    check_adjacency(adjacency)
    # A replaced record may start or stop counting: there is no second number for it to change.
    return 1


def histogram_sensitivity(adjacency: str) -> int:
    """Returns a histogram's L1 sensitivity: 2 under replace-one, where a record changes cells, else 1.

    Raises:
        InputError: The adjacency is none of the three.
    """
    check_adjacency(adjacency)
    return 2 if adjacency == "replace-one" else 1
