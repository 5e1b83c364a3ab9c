"""The norm mechanism: equal to Laplace in L1 and in one dimension, its marginals, and what is refused.

Its distribution, moments and privacy are among the claims. False-alarm rate of each test of draws: 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims import checks
from scipy import integrate, special, stats

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.laplace import Laplace
from fedprivacy.mechanisms.norm import NormMechanism


@pytest.mark.parametrize(("dimension", "order"), [(1, 1), (5, 1), (1, 2), (1, math.inf)])
def test_in_l1_and_in_one_dimension_it_is_the_laplace_mechanism(dimension: int, order: float) -> None:
    norm, laplace = NormMechanism(0.5, 3.0, dimension, order), Laplace(0.5, 3.0)
    values = np.arange(4.0 * dimension).reshape(4, dimension)
    assert (norm.draw(values, checks.stream("one")) == laplace.draw(values, checks.stream("one"))).all()
    assert norm.event("replace-one") == laplace.event("replace-one")
    assert norm.variance == pytest.approx(laplace.variance)


def test_in_l2_a_coordinate_of_two_has_the_density_of_a_bessel_function() -> None:
    """int c^2/(2 pi) exp(-c sqrt(x^2 + y^2)) dy = c^2 |x| K_1(c |x|)/pi, and its E|x| = 2 E||z|| / pi."""
    mechanism = NormMechanism(0.5, 1.0, 2, 2)
    c = 1 / mechanism.scale
    x = mechanism.draw(np.zeros((40_000, 2)), checks.stream("bessel"))[:, 0]
    grid = np.linspace(1e-9, 40 / c, 20_001)
    below = 0.5 + integrate.cumulative_simpson(
        c**2 * grid * special.k1(c * grid) / math.pi, x=grid, initial=0
    )
    checks.follows(
        x, lambda at: np.where(at < 0, 1 - np.interp(-at, grid, below), np.interp(at, grid, below))
    )
    assert np.abs(x).mean() == pytest.approx(2 / math.pi * mechanism.expected_norm, rel=0.03)


def test_in_l_infinity_a_coordinate_of_two_is_exponential_beyond_and_flat_within() -> None:
    """int (c/2)^2/2 exp(-c max(|x|, |y|)) dy: the density of |x| is (c/2)(1 + c |x|) exp(-c |x|)."""
    mechanism = NormMechanism(2.0, 3.0, 2, math.inf)
    c = 1 / mechanism.scale
    x = np.abs(mechanism.draw(np.zeros((40_000, 2)), checks.stream("square"))[:, 1])
    checks.follows(x, lambda at: 1 - np.exp(-c * at) * (1 + c * at / 2))


@pytest.mark.parametrize("order", [1, 2, math.inf])
def test_noise_of_every_order_has_mean_norm_d_over_epsilon_and_turns_with_the_axes(order: float) -> None:
    mechanism = NormMechanism(0.1, 2.0, 6, order)
    noise = mechanism.draw(np.zeros((3, 10_000, 6)), checks.stream("norms"))
    norms = np.linalg.norm(noise.reshape(-1, 6), ord=order, axis=1)
    assert norms.mean() == pytest.approx(mechanism.expected_norm, rel=6 / math.sqrt(6 * len(norms)))
    assert mechanism.expected_norm == pytest.approx(6 * 2.0 / 0.1)
    correlations = np.corrcoef(noise.reshape(-1, 6).T)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 8 / math.sqrt(len(norms))
    variances = noise.reshape(-1, 6).var(axis=0)
    assert variances == pytest.approx(np.full(6, mechanism.variance), rel=0.1)


def test_events_and_words() -> None:
    assert NormMechanism(0.5, 1.0, 4, 2).event("add-remove") == PureDpEvent(0.5)
    assert NormMechanism(0.5, 1.0, 4, math.inf).words == "noise of mean L-infinity norm 8"
    assert NormMechanism(0.5, 1.0, 4, 2).words == "noise of mean L2 norm 8"


def test_l_infinity_is_the_norm_to_take_when_all_coordinates_move_together() -> None:
    """A record that moves every coordinate by 1: per-coordinate variance of the three norms at one epsilon."""
    d = 10
    errors = {
        order: NormMechanism(1.0, d ** (0 if order == math.inf else 1 / order), d, order).variance
        for order in (1, 2, math.inf)
    }
    assert errors == pytest.approx({1: 2 * d**2, 2: d * (d + 1), math.inf: (d + 1) * (d + 2) / 3})
    assert errors[math.inf] < errors[2] < errors[1]


def test_mistakes_are_refused() -> None:
    stream = checks.stream("refused")
    for order in (0, 3, math.nan):
        with pytest.raises(InputError, match="must be 1, 2 or infinity"):
            NormMechanism(1.0, 1.0, 3, order)
    for dimension in (0, 2.5):
        with pytest.raises(InputError, match="dimension"):
            NormMechanism(1.0, 1.0, dimension)  # type: ignore[arg-type]
    for value in (np.zeros(2), np.zeros((3, 4)), 0.0):
        with pytest.raises(InputError, match="last axis must have length 3"):
            NormMechanism(1.0, 1.0, 3).draw(value, stream)
    for order in (1, 2, math.inf):
        with pytest.raises(InputError, match="finite"):
            NormMechanism(1.0, 1.0, 2, order).draw([0.0, math.nan], stream)
    with pytest.raises(InputError, match="epsilon"):
        NormMechanism(0.0, 1.0, 3)
    with pytest.raises(InputError, match="sensitivity"):
        NormMechanism(1.0, -1.0, 3)


def test_chi_square_tests_would_see_a_wrong_radius() -> None:
    """A test of the tests: the radius Gamma(d + 1) in L2, or Gamma(d) in L-infinity, is told apart."""
    for order, wrong in ((2, 7), (math.inf, 5)):
        norms = np.linalg.norm(
            NormMechanism(1.0, 1.0, 6, order).draw(np.zeros((20_000, 6)), checks.stream("radius")),
            ord=order,
            axis=1,
        )
        assert stats.kstest(norms, stats.gamma(6).cdf).pvalue > checks.FALSE_ALARM
        assert stats.kstest(norms, stats.gamma(wrong).cdf).pvalue < checks.FALSE_ALARM
