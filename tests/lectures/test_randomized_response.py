"""Randomised response: the statements of the lectures, each with its numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.randomness.streams import Streams


def test_telling_the_truth_three_times_in_four_is_ln_3_private() -> None:
    """gamma = 1/4: two coins, of which the first decides whether to tell the truth or the second coin."""
    mechanism = RandomizedResponse.from_gamma(0.25)
    assert mechanism.epsilon == pytest.approx(math.log(3))
    assert epsilon(mechanism.event(), 0.0, "replace-one").epsilon == pytest.approx(math.log(3))


@pytest.mark.parametrize("gamma", [0.05, 0.25, 0.4])
def test_the_variance_is_at_most_one_over_16_gamma_squared_n(gamma: float) -> None:
    """Var <= 1/(16 gamma^2 n), hence an error of O(1/(gamma sqrt n)); measured over 20,000 surveys, to 5 %."""
    mechanism, clients = RandomizedResponse.from_gamma(gamma), 100
    bits = np.arange(clients) < 30
    told = mechanism.draw(np.tile(bits, (20_000, 1)), Streams(1).stream("lectures"))
    estimates = (told.mean(axis=1) - (0.5 - gamma)) / (2 * gamma)
    assert estimates.mean() == pytest.approx(0.3, abs=5 * math.sqrt(1 / (16 * gamma**2 * clients * 20_000)))
    assert estimates.var() == pytest.approx((0.25 - gamma**2) / (4 * gamma**2 * clients), rel=0.05)
    assert mechanism.given_variance(clients) <= mechanism.variance(clients)
    assert mechanism.variance(clients) == pytest.approx(1 / (16 * gamma**2 * clients))


def test_n_is_at_least_c_over_epsilon_squared_alpha_squared() -> None:
    """With c = 2 ln(2/beta) as epsilon -> 0; half the error or half the budget take four times the people."""
    beta = 0.05
    for budget, alpha in ((0.1, 0.01), (0.05, 0.01), (0.1, 0.005)):
        needed = RandomizedResponse(budget).clients_needed(alpha, 1 - beta)
        assert needed == pytest.approx(2 * math.log(2 / beta) / (budget * alpha) ** 2, rel=2e-3)


def test_with_so_many_people_the_error_is_hardly_ever_larger() -> None:
    """Hoeffding's bound at 95 %: of 2000 surveys of as many people as needed, fewer than 100 miss."""
    mechanism, alpha = RandomizedResponse(1.0), 0.1
    clients = mechanism.clients_needed(alpha)
    bits = np.arange(clients) < clients // 2
    told = mechanism.draw(np.tile(bits, (2000, 1)), Streams(2).stream("lectures"))
    estimates = np.array([mechanism.estimate(int(ones), clients) for ones in told.sum(axis=1)])
    assert (np.abs(estimates - bits.mean()) > alpha).sum() < 100
