"""Intervals for means of values in [0, 1], against exact ones of coins and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.intervals import mean_high, mean_low, proportion_high, proportion_low


@pytest.mark.parametrize("count", [20, 100])
@pytest.mark.parametrize("error", [0.025, 0.01])
def test_of_equal_values_the_ends_are_those_of_coins(count: int, error: float) -> None:
    assert mean_high(0.0, count, error) == pytest.approx(proportion_high(0, count, error))
    assert mean_low(1.0, count, error) == pytest.approx(proportion_low(count, count, error))
    assert mean_high(1.0, count, error) == 1.0
    assert mean_low(0.0, count, error) == 0.0


@pytest.mark.parametrize("hits", [1, 5, 10, 19])
def test_the_ends_are_beyond_those_of_coins(hits: int) -> None:
    assert mean_high(hits / 20, 20, 0.025) >= proportion_high(hits, 20, 0.025)
    assert mean_low(hits / 20, 20, 0.025) <= proportion_low(hits, 20, 0.025)
    assert mean_low(hits / 20, 20, 0.025) < hits / 20 < mean_high(hits / 20, 20, 0.025)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("values", [(0.0, 1.0), (0.2, 0.4), (0.0, 0.05, 1.0)])
def test_the_true_mean_lies_above_an_end_no_more_often_than_stated(values) -> None:
    """4,000 samples of 20: an error of .025 may show as .033 at 4 sigma of .0025 or less."""
    draws = np.random.default_rng(0).choice(values, (4000, 20)).mean(axis=1)
    highs = np.array([mean_high(float(mean), 20, 0.025) for mean in draws])
    assert np.mean(highs < np.mean(values)) <= 0.035
