"""What one record can change: found by changing one, and told."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.sensitivity import count_sensitivity, histogram_sensitivity

ADJACENCIES = ("replace-one", "add-remove", "zero-out")


def neighbours(records: tuple[int, ...], values: range, adjacency: str) -> list[tuple[int, ...]]:
    """All data sets in which the first record is another, or is gone (a zeroed record adds nothing)."""
    if adjacency == "replace-one":
        return [(value, *records[1:]) for value in values]
    return [records[1:]]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sensitivities_are_the_largest_changes_over_all_small_data_sets(adjacency: str) -> None:
    def largest(answer) -> float:
        return max(
            np.abs(np.subtract(answer(records), answer(other))).sum()
            for records in itertools.product(range(4), repeat=3)
            for other in neighbours(records, range(4), adjacency)
        )

    assert largest(lambda records: np.bincount(records, minlength=4)) == histogram_sensitivity(adjacency)
    assert largest(lambda records: sum(record >= 2 for record in records)) == count_sensitivity(adjacency)


def test_an_unknown_adjacency_is_refused() -> None:
    for call in (count_sensitivity, histogram_sensitivity):
        with pytest.raises(InputError, match=r"'swap'.*replace-one, add-remove, zero-out"):
            call("swap")
