"""Randomised response, besides what `test_claims.py` holds every mechanism to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.randomness.streams import Streams

MECHANISM = RandomizedResponse(1.0)


def stream() -> np.random.Generator:
    return Streams(3).stream("bits")


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 8.0, 20.0])
def test_gamma_and_epsilon_say_the_same(epsilon: float) -> None:
    mechanism = RandomizedResponse(epsilon)
    assert math.log((1 + 2 * mechanism.gamma) / (1 - 2 * mechanism.gamma)) == pytest.approx(epsilon, rel=1e-6)
    assert RandomizedResponse.from_gamma(mechanism.gamma).epsilon == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 8.0, 25.0])
def test_no_answer_is_more_certain_than_epsilon_allows(epsilon: float) -> None:
    flip = RandomizedResponse(epsilon).flip
    assert math.log1p((1 - 2 * flip) / flip) <= epsilon * (1 + 1e-9)
    assert math.log1p((1 - 2 * flip) / flip) == pytest.approx(epsilon, rel=1e-6)
    # Numbers at the ends of their range are told with exactly the probabilities of bits.
    assert flip + (1 - 2 * flip) * 1.0 == 1 - flip


@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3, 5)])
@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64])
def test_answers_are_bytes_in_the_shape_of_the_bits(shape: tuple[int, ...], kind: type) -> None:
    bits = np.ones(shape, dtype=kind)
    for answers in (MECHANISM.draw(bits, stream()), MECHANISM.draw_numbers(bits, stream())):
        assert answers.shape == shape
        assert answers.dtype == np.uint8
        assert set(np.unique(answers)) <= {0, 1}


def test_the_bits_themselves_are_left_as_they_are() -> None:
    bits = np.zeros(100, dtype=np.uint8)
    MECHANISM.draw(bits, stream())
    assert not bits.any()


@pytest.mark.parametrize("bits", [[0, 2], [-1, 0], [0.0, 1.0], [256]])
def test_what_is_no_bit_is_refused(bits: list[float]) -> None:
    with pytest.raises(InputError, match="must all be 0 or 1"):
        MECHANISM.draw(bits, stream())


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf])
def test_a_number_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"in \[0, 1\]"):
        MECHANISM.draw_numbers([0.5, value], stream())


@pytest.mark.parametrize("gamma", [0.0, -0.1, 0.5, 1.0, math.nan])
def test_a_gamma_out_of_range_is_refused_with_the_reason(gamma: float) -> None:
    with pytest.raises(InputError, match=r"above 0 .* and below 1/2"):
        RandomizedResponse.from_gamma(gamma)


@pytest.mark.parametrize(("ones", "clients"), [(0, 0), (3, 2), (-1, 5)])
def test_impossible_counts_are_refused(ones: int, clients: int) -> None:
    for method in (MECHANISM.estimate, MECHANISM.estimated_variance):
        with pytest.raises(InputError, match="at least one answer"):
            method(ones, clients)


def test_other_arguments_out_of_range_are_refused() -> None:
    for call in (
        lambda: MECHANISM.variance(0),
        lambda: MECHANISM.variance(10, 1.5),
        lambda: MECHANISM.given_variance(0),
        lambda: MECHANISM.clients_needed(0.1, 1.0),
    ):
        with pytest.raises(InputError):
            call()
    for error in (0.0, -0.1, 1e-160, math.inf, math.nan):
        with pytest.raises(InputError, match=r"error = .*: must be a finite number of at least 2.72e-09"):
            RandomizedResponse(1e-6).clients_needed(error)
    assert RandomizedResponse(1e-6).clients_needed(2.72e-9) <= 1e30


def test_the_variances_stand_in_their_order() -> None:
    for mean in (0.0, 0.3, 0.5, 1.0):
        assert MECHANISM.given_variance(7) <= MECHANISM.variance(7, mean) <= MECHANISM.variance(7)
        # People drawn at random differ by mean (1 - mean) from each other, besides what is told of them.
        difference = MECHANISM.variance(7, mean) - MECHANISM.given_variance(7)
        assert difference == pytest.approx(mean * (1 - mean) / 7)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_intervals_from_the_answers_cover_the_mean(epsilon: float) -> None:
    """95 % intervals over 2000 surveys, of bits and of numbers: below 93 % in fewer than one of 10^4 seeds."""
    mechanism, clients, own = RandomizedResponse(epsilon), 2000, stream()
    for bits in (own.random(clients) < 0.2, own.random(clients)):
        draw = mechanism.draw if bits.dtype == bool else mechanism.draw_numbers
        covered = 0
        for _ in range(2000):
            ones = int(draw(bits, own).sum())
            width = 1.96 * math.sqrt(mechanism.estimated_variance(ones, clients))
            covered += abs(mechanism.estimate(ones, clients) - bits.mean()) <= width
        assert covered >= 0.93 * 2000
