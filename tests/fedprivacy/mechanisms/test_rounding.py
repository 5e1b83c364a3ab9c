"""Rounded vectors keep to their bound in exact arithmetic, and are nearly unbiased. Fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims.checks import FALSE_ALARM
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedprivacy.mechanisms.rounding import largest_squared_norm, round_within, squared_norm
from fedprivacy.randomness.streams import Streams


@given(st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=1, max_size=50))
def test_norms_are_exact(values: list[int]) -> None:
    assert squared_norm(np.array(values)) == sum(value * value for value in values)


def test_the_norm_of_a_million_large_integers_does_not_overflow() -> None:
    assert squared_norm(np.full(2**20, -(2**31) + 1)) == 2**20 * (2**31 - 1) ** 2


def test_bounds_are_those_of_the_paper() -> None:
    """By hand, at beta = e^-1/2; the first of both bounds holds for every rounding."""
    assert largest_squared_norm(80.0, 256) == math.floor(80**2 + 64 + 80 + 8)
    assert largest_squared_norm(0.1, 1) == math.floor(0.01 + 0.25 + 0.1 + 0.5)
    assert largest_squared_norm(1.0, 1) == math.floor(1 + 0.25 + 1 + 0.5)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("norm", "dimension"), [(0.5, 4), (3.0, 64), (80.0, 256), (30.0, 4096), (1e6, 256)])
def test_a_rounding_keeps_to_its_bound_as_often_as_stated(norm: float, dimension: int) -> None:
    """With probability 1 - beta = 0.39 at least, also of the worst vectors; false-alarm rate 1e-6."""
    stream = Streams(1).stream("rounding")
    spread = stream.standard_normal(dimension)
    flat = np.full(dimension, 1.0)
    largest = largest_squared_norm(norm, dimension)
    for direction in (spread, flat):
        vector = direction * (norm / np.linalg.norm(direction))
        down = np.floor(vector)
        rounded = (down + (stream.random((2000, dimension)) < vector - down)).astype(np.int64)
        within = sum(squared_norm(each) <= largest for each in rounded)
        assert stats.binomtest(within, 2000, 1 - math.exp(-0.5), alternative="less").pvalue > FALSE_ALARM


def test_results_keep_to_the_bound_and_lie_beside_their_numbers() -> None:
    """Of numbers that end in a half one rounding in 50 exceeds the bound."""
    stream, largest = Streams(2).stream("rounding"), largest_squared_norm(4.0, 64)
    spread = stream.standard_normal(64)
    exceeded = 0
    for vector in (np.full(64, 0.5), spread * (4 / np.linalg.norm(spread))):
        for _ in range(1000):
            rounded = round_within(vector, largest, stream)
            assert rounded.dtype == np.int64
            assert squared_norm(rounded) <= largest
            assert (np.abs(rounded - vector) < 1).all()
            exceeded += squared_norm((stream.random(64) < vector).astype(np.int64)) > largest
    assert exceeded > 5


def test_whole_numbers_and_zero_stay_as_they_are() -> None:
    stream = Streams(3).stream("rounding")
    for vector in (np.zeros(8), np.array([3.0, -4.0])):
        assert np.array_equal(round_within(vector, 25, stream), vector)


def test_a_vector_that_no_rounding_shortens_is_rounded_towards_zero_or_becomes_zero() -> None:
    """Never an exception, which would reveal it."""
    stream = Streams(4).stream("rounding")
    nearly = np.full(4, 1 - 1e-12)
    assert np.array_equal(round_within(nearly, 0, stream), np.zeros(4))
    for vector, largest in (
        (np.full(4, 2.5), 15),
        (np.array([2.0**31 - 0.5, 0.0]), 2**63),
        (np.array([-(2.0**40), 0.0]), 2**63),
        (np.array([math.nan, 1.0]), 10),
        (np.array([math.inf, 1.0]), 10),
    ):
        assert np.array_equal(round_within(vector, largest, stream), np.zeros(len(vector)))
    nearly_too_large = np.array([2.0**31 - 1.5, 1 - 2.0**31])
    assert squared_norm(round_within(nearly_too_large, 2**63, stream)) > 2**62


def test_conditioning_on_the_norm_shortens_the_mean_by_half_a_percent() -> None:
    """Measured on numbers that end in a half, where rounding varies most: norm 4, 64 dimensions.

    Of 40,000 roundings the mean's part along the vector has a standard error of 0.06 %.
    """
    vector = np.where(np.arange(64) % 2, 0.5, -0.5)
    stream, largest = Streams(5).stream("rounding"), largest_squared_norm(4.0, 64)
    mean = np.mean([round_within(vector, largest, stream) for _ in range(40_000)], axis=0)
    assert 1 - (mean @ vector) / 16 == pytest.approx(0.005, abs=0.001)
