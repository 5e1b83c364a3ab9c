"""Guesses held against a whole trade-off curve: the largest probability that its inequalities leave."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from fedprivacy.attacks.curve_bound import curve_p_value
from fedprivacy.attacks.one_run_epsilon import Guesses, guess
from fedprivacy.attacks.tradeoff import GaussianCurve, from_pairs


def largest(m: int, r: int, v: int, lines: list[tuple[float, float]]) -> float:
    """The largest P[W >= v] that the inequalities allow, by a linear programme over the distribution of W."""
    j = np.arange(r + 1)
    rows, most = [], []
    for c in range(1, v + 1):
        for slope, intercept in lines:
            left = np.where(j >= c, j, 0) / m
            right = np.where(j >= c - 1, r - j, 0) / m
            rows.append(left - slope * right)
            most.append(intercept)
    found = linprog(-(j >= v).astype(float), rows, most, np.ones((1, r + 1)), [1.0])
    return float(-found.fun)


@pytest.mark.parametrize(("m", "r", "v"), [(6, 4, 4), (20, 10, 9), (20, 20, 15), (40, 12, 11)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.01)])
def test_it_is_what_a_linear_programme_finds(m: int, r: int, v: int, epsilon: float, delta: float) -> None:
    flat = np.exp(-epsilon)
    lines = [(np.exp(epsilon), delta), (flat, 1 - flat * (1 - delta)), (0.0, 1.0)]
    told = curve_p_value(Guesses(m, r, v), from_pairs([(epsilon, delta)], ""))
    truth = largest(m, r, v, lines)
    assert truth * (1 - 1e-6) <= told <= truth * 1.02 + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_stays_below_it(epsilon: float) -> None:
    """Each coin told rightly with probability q: of all that is epsilon-DP the easiest to guess."""
    q = 1 / (1 + np.exp(-epsilon))
    for right in (60, 75, 90, 97):
        truth = binom.sf(right - 1, 100, q)
        assert curve_p_value(Guesses(100, 100, right), from_pairs([(epsilon, 0.0)], "")) >= truth * (1 - 1e-6)


@pytest.mark.exhaustive
def test_gaussian_noise_as_claimed_is_seldom_refuted_and_half_of_it_always() -> None:
    """Of 60 games at 5 %: at most 3 alarms are expected, over 8 come in 0.3 % of cases."""
    stream = np.random.default_rng(3)
    alarms, found = 0, 0
    for _ in range(60):
        coins = stream.random(2000) < 0.5
        noise = stream.normal(size=2000)
        claimed, half = (guess(mu * coins + noise, coins, 200) for mu in (0.7, 1.4))
        alarms += curve_p_value(claimed, GaussianCurve(0.7)) <= 0.05
        found += curve_p_value(half, GaussianCurve(0.7)) <= 0.05
    assert alarms <= 8
    assert found == 60


def test_no_right_guess_and_no_limit_say_nothing() -> None:
    assert curve_p_value(Guesses(10, 4, 0), GaussianCurve(0.1)) == 1.0
    assert curve_p_value(Guesses(10, 4, 4), GaussianCurve(50.0)) == 1.0
