"""Sums of many vectors against exact ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedprivacy.mechanisms.clipping import ROUNDING
from fedprivacy.mechanisms.summation import BLOCK, RunningSum, sum_of_rows


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK, 300_000])
@pytest.mark.parametrize("way", ["one by one", "rows"])
def test_the_error_stays_within_its_bound_and_below_that_of_a_plain_sum(count: int, way: str) -> None:
    values = np.full((count, 2), [0.1, 1.0 - 2.0**-53])  # the worst for a plain sum: all round the same way
    if way == "rows":
        found = sum_of_rows(torch.from_numpy(values)).numpy()
    else:
        running = RunningSum(2)
        for row in values:
            running.add(row)
        found = running.total
    for column, total in zip(values.T, found.tolist(), strict=True):
        exact, mass = math.fsum(column), math.fsum(abs(column))
        bound = (BLOCK + 2) * ROUNDING + 2 * (count * ROUNDING) ** 2
        assert abs(total - exact) <= bound * mass
        if count > 10 * BLOCK:  # what a plain sum makes worse
            assert abs(total - exact) <= abs(np.cumsum(column)[-1] - exact)


def test_what_cancels_between_blocks_is_not_lost() -> None:
    running = RunningSum(1)
    for value in (2.0**60, 1.0, -(2.0**60)):
        running.add(np.array([value]))
        assert running.total.tolist() == [{2.0**60: 2.0**60, 1.0: 2.0**60}.get(value, 1.0)]


def test_a_sum_may_be_asked_for_early_and_be_infinite() -> None:
    running = RunningSum(2)
    running.add(np.array([1.0, np.inf]))
    assert running.total.tolist() == [1.0, np.inf]
    running.add(np.array([2.0, 1.0]))
    assert running.total.tolist() == [3.0, np.inf]


def test_the_first_block_is_the_sum_that_zero_plus_it_is() -> None:
    """To the bit, also of negative zeros and of what is not finite; more blocks come on top of it."""
    values = np.array([-0.0, 5e-324, np.nan, np.inf, 0.1, -3.0])
    running = RunningSum(len(values))
    running.add(values)
    total = running.total
    assert total.tobytes() == (np.zeros(len(values)) + values).tobytes()
    running.add(values)
    assert running.total[4:].tolist() == [0.2, -6.0]
    assert total[4:].tolist() == [0.1, -3.0]
