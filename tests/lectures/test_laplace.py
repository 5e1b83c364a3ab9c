"""The lectures on the Laplace mechanism, statement by statement; simulations with fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.mechanisms.laplace import Laplace
from fedprivacy.randomness.streams import Streams

NAMES = 10_000


def test_laplace_noise_exceeds_t_scales_with_probability_e_to_the_minus_t() -> None:
    mechanism = Laplace(0.5, 1.0)
    noise = np.abs(mechanism.draw(np.zeros(1_000_000), Streams(1).stream("tails")))
    for t in (0.5, 1.0, 2.0, 5.0):
        assert mechanism.tail(t * mechanism.scale) == pytest.approx(math.exp(-t))
        share = float((noise > t * mechanism.scale).mean())
        assert abs(share - math.exp(-t)) < 5 * math.sqrt(math.exp(-t) / len(noise))  # false alarm: 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_a_mean_within_alpha_takes_c_over_epsilon_alpha_people(epsilon: float, alpha: float) -> None:
    """The mean of n bits has noise of scale 1/(epsilon n): n >= c/(epsilon alpha), c = ln 20 for 95 in 100."""
    mechanism = Laplace.count(epsilon, "replace-one")
    people = mechanism.clients_needed(alpha, confidence=0.95)
    assert people == math.ceil(math.log(20) / (epsilon * alpha) - 1e-9)
    errors = np.abs(mechanism.draw(np.zeros(100_000), Streams(1).stream("mean"))) / people
    assert float((errors <= alpha).mean()) == pytest.approx(0.95, abs=0.004)
    # Half of alpha, or of epsilon, takes twice as many; where each person answers for herself, four times.
    twice = Laplace.count(epsilon / 2, "replace-one").clients_needed(alpha)
    assert twice == pytest.approx(2 * people, abs=1)
    assert mechanism.clients_needed(alpha / 2) == pytest.approx(2 * people, abs=1)


def chance_of_larger(bound: float, mechanism: Laplace) -> float:
    """That one of the names' counts is further off than the bound, in 1,000 simulated releases."""
    stream = Streams(1).stream("names")
    worst = [np.abs(mechanism.draw(np.zeros(NAMES), stream)).max() for _ in range(1000)]
    return float((np.array(worst) > bound).mean())


def test_first_names_are_counted_to_within_192_when_a_person_is_added_or_removed() -> None:
    """(10 + ln k)/epsilon with probability 1 - e^-10, for k = 10,000 and epsilon = 0.1."""
    mechanism = Laplace.histogram(0.1, "add-remove")
    assert mechanism.scale == pytest.approx(10)
    bound = mechanism.largest_error(NAMES, math.exp(-10))
    assert bound == pytest.approx((10 + math.log(NAMES)) / 0.1)
    assert bound == pytest.approx(192.1, abs=0.05)
    assert chance_of_larger(bound, mechanism) <= 0.002  # e^-10 is 4.5e-5


def test_first_names_are_counted_to_within_384_when_a_person_is_replaced() -> None:
    """The lecture means Lap(1/epsilon) and 192 (it rounds to 200): right under add-remove, not here.

    A changed name moves two counts: the noise is Lap(2/epsilon). One of 10,000 counts is then off by more
    than 200 with probability 1 - (1 - e^-10)^10000 = 0.365, and by more than 192 with 0.49.
    """
    mechanism = Laplace.histogram(0.1, "replace-one")
    assert mechanism.scale == pytest.approx(20)
    bound = mechanism.largest_error(NAMES, math.exp(-10))
    assert bound == pytest.approx(384.2, abs=0.05)
    assert chance_of_larger(bound, mechanism) <= 0.002
    for lectures, chance in ((200.0, 0.365), (192.1, 0.490)):
        assert -math.expm1(NAMES * math.log1p(-mechanism.tail(lectures))) == pytest.approx(chance, abs=1e-3)
        assert chance_of_larger(lectures, mechanism) == pytest.approx(chance, abs=0.07)


def test_among_300_million_people_an_error_of_384_is_about_a_millionth() -> None:
    mechanism = Laplace.histogram(0.1, "replace-one")
    assert mechanism.largest_error(NAMES, math.exp(-10)) / 300e6 == pytest.approx(1.28e-6, rel=1e-2)
