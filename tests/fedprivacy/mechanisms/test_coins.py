"""Coins have exactly the probability that they were asked for. False-alarm rate 1e-6 each."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from claims.checks import FALSE_ALARM, fits
from scipy import stats

from fedprivacy.mechanisms.coins import coins, rounded_up
from fedprivacy.randomness.streams import Streams


@pytest.mark.parametrize("probability", [0.0, 1e-4, 1 / 256, 0.3, 0.5, 0.999, 1 - 2.0**-53])
def test_coins_show_heads_as_often_as_they_should(probability: float) -> None:
    heads = coins(2_000_000, rounded_up(probability), Streams(1).stream("coins"))
    assert stats.binomtest(int(heads.sum()), len(heads), probability).pvalue > FALSE_ALARM


def test_a_byte_and_a_number_make_up_the_probability_to_the_last_bit() -> None:
    """P(byte < whole) + P(byte = whole) P(number < rest), in fractions."""
    for probability in (rounded_up(1 / (1 + math.exp(each))) for each in (1e-6, 0.3, 1.0, 8.0, 25.0)):
        whole, rest = divmod(probability * 256, 1)
        assert Fraction(rest) * 2**53 % 1 == 0  # uniform numbers lie on that grid: P(number < rest) = rest
        assert (Fraction(whole) + Fraction(rest)) / 256 == Fraction(probability)


def test_coins_are_independent_whether_a_byte_or_a_number_decides() -> None:
    probability = rounded_up(1.5 / 256)  # a number decides in half of all heads
    pairs = coins((2_000_000, 2), probability, Streams(2).stream("coins")) @ (1, 2)
    each = np.array([1 - probability, probability])
    fits(np.bincount(pairs, minlength=4), np.outer(each, each).reshape(-1))


def test_probabilities_are_rounded_to_the_side_of_more_noise() -> None:
    for probability in (1e-30, 1e-11, 0.1, 1 / 3, 0.5):
        found = rounded_up(probability)
        assert 0 <= Fraction(found) - Fraction(probability) < Fraction(1, 2**53)
        assert Fraction(found) * 2**53 % 1 == 0


@pytest.mark.parametrize("shape", [(), (0,), 5, (2, 3, 4)])
def test_coins_come_in_any_shape(shape) -> None:
    assert coins(shape, 0.5, Streams(1).stream("coins")).shape == (
        shape if isinstance(shape, tuple) else (shape,)
    )
