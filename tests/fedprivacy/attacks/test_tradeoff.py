"""Trade-off curves against the exact Gaussian one, known mechanisms, brute force and group privacy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy.optimize import brentq
from scipy.stats import laplace, norm

from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_epsilon
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.attacks.tradeoff import GaussianCurve, PolygonCurve, from_event, from_pairs
from fedprivacy.errors import InputError

FPR = np.unique(np.concatenate([np.geomspace(1e-6, 1, 400), np.linspace(0, 1, 301)]))


def lines(pairs, fpr):
    """TPR <= min over pairs of e^eps FPR + delta and its mirror, point by point."""
    least = np.ones_like(fpr)
    for eps, delta in pairs:
        least = np.minimum(least, math.exp(eps) * fpr + delta)
        least = np.minimum(least, 1 - math.exp(-eps) * (1 - delta - fpr))
    return least


@pytest.mark.parametrize(
    "pairs",
    [
        [(1.0, 1e-5)],
        [(0.0, 0.3)],
        [(0.0, 0.0)],
        [(0.0, 1.0)],
        [(8.0, 0.0), (2.0, 0.01), (0.1, 0.4), (0.1, 0.5), (5.0, 0.9)],
        [(gaussian_epsilon(d, 1.3), d) for d in np.geomspace(1e-8, 0.48, 40)],
    ],
)
def test_the_polygon_is_the_least_of_its_lines(pairs) -> None:
    curve = from_pairs(pairs, "test")
    assert np.allclose(curve.tpr(FPR), lines(pairs, FPR), atol=1e-12)
    assert curve.advantage == pytest.approx((lines(pairs, FPR) - FPR).max(), abs=5e-3)
    assert curve.auc == pytest.approx(np.trapezoid(curve.tpr(FPR), FPR), abs=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "advantage", "balanced", "auc", "tpr"),
    [
        (1, 0.462, 0.553, 0.575, 0.020),
        (2, 0.762, 0.599, 0.639, 0.034),
        (4, 0.964, 0.678, 0.743, 0.081),
        (8, 0.9993, 0.798, 0.881, 0.255),
    ],
)
def test_the_figures_of_an_independent_computation(epsilon, advantage, balanced, auc, tpr) -> None:
    """At delta 1e-5: the advantage of the pair alone, the rest by Gaussian differential privacy."""
    pair = from_pairs([(epsilon, 1e-5)], "pair")
    assert pair.advantage == pytest.approx(advantage, abs=5e-4)
    assert pair.advantage == pytest.approx((math.expm1(epsilon) + 2e-5) / (math.exp(epsilon) + 1))
    gaussian = GaussianCurve(brentq(lambda mu: gaussian_epsilon(1e-5, mu) - epsilon, 0.01, 10))
    assert (1 + gaussian.advantage) / 2 == pytest.approx(balanced, abs=5.1e-4)
    assert gaussian.auc == pytest.approx(auc, abs=5.1e-4)
    assert float(gaussian.tpr(0.01)) == pytest.approx(tpr, abs=5.1e-4)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_unsampled_gaussian_noise_has_its_exact_curve(adjacency: str) -> None:
    event = dp.ComposedDpEvent([dp.SelfComposedDpEvent(dp.GaussianDpEvent(4.0), 3), dp.GaussianDpEvent(2.0)])
    mu = (2 if adjacency == "replace-one" else 1) * math.sqrt(3 / 16 + 1 / 4)
    curve = from_event(event, adjacency)
    assert curve == GaussianCurve(pytest.approx(mu))
    # The test that is most powerful: the likelihood ratio of N(mu, 1) and N(0, 1), a threshold.
    assert np.allclose(curve.tpr([0.001, 0.1, 0.5]), norm.sf(norm.isf([0.001, 0.1, 0.5]) - mu))
    assert curve.advantage == pytest.approx(gaussian_delta(0.0, mu))
    assert from_event(dp.NoOpDpEvent(), adjacency) == GaussianCurve(0.0)


@pytest.mark.parametrize("mu", [0.03, 0.5, 1.7, 4.0])
def test_the_polygon_hardly_lies_above_the_curve_that_its_lines_touch(mu: float) -> None:
    """Poisson sampling at a rate of nearly 1 goes by pairs, and costs nearly what no sampling does."""
    sampled = from_event(dp.PoissonSampledDpEvent(1 - 1e-9, dp.GaussianDpEvent(1 / mu)), "add-remove")
    assert isinstance(sampled, PolygonCurve)
    above = sampled.tpr(FPR) - GaussianCurve(mu).tpr(FPR)
    assert above.min() > -1e-9
    assert above.max() < 6e-3
    assert 20 < len(sampled.fpr) < 200


def test_known_mechanisms_that_no_gaussian_curve_may_stand_for() -> None:
    laplaced = from_event(dp.LaplaceDpEvent(1.0), "add-remove")
    # Most powerful against 0 or 1 plus Laplace noise: thresholds, exact here.
    fpr = laplace.sf(np.linspace(-3, 6, 50))
    assert np.allclose(laplaced.tpr(fpr), laplace.sf(np.linspace(-3, 6, 50) - 1), atol=2e-3)
    bit = from_event(PureDpEvent(1.0), "replace-one")
    assert bit.advantage == pytest.approx(math.tanh(0.5), rel=1e-6)
    sampled = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2.248)), 100)
    curve = from_event(sampled, "add-remove")
    assert (curve.tpr(FPR) <= lines([(2.0005, 1e-5)], FPR) + 1e-3).all()  # it costs epsilon 2 there
    assert curve.advantage < GaussianCurve(10 / 2.248).advantage / 4  # and sampling helps


def test_nothing_is_guaranteed_without_noise() -> None:
    assert from_event(dp.NonPrivateDpEvent(), "replace-one") is None
    assert from_event(dp.LaplaceDpEvent(0.0), "replace-one") is None


def test_an_epsilon_without_a_number_says_nothing() -> None:
    assert from_pairs([(800.0, 0.0), (math.inf, 0.0)], "test").advantage == 1.0


def test_two_steps_are_group_privacy() -> None:
    gaussian = GaussianCurve(0.7)
    assert np.allclose(gaussian.twice().tpr(FPR), gaussian.tpr(gaussian.tpr(FPR)))
    eps, delta = 0.8, 1e-3
    twice = from_pairs([(eps, delta)], "pair").twice()
    group = from_pairs([(2 * eps, (1 + math.exp(eps)) * delta)], "group")
    assert (twice.tpr(FPR) <= group.tpr(FPR) + 1e-12).all()
    assert np.allclose(twice.tpr(FPR[FPR < 0.05]), group.tpr(FPR[FPR < 0.05]))
    many = from_pairs([(gaussian_epsilon(d, 0.7), d) for d in np.geomspace(1e-8, 0.27, 60)], "many")
    assert np.allclose(many.twice().tpr(FPR), many.tpr(many.tpr(FPR)), atol=1e-12)


@pytest.mark.parametrize("pair", [(-0.1, 0.0), (1.0, 1.1), (1.0, -1e-9), (math.nan, 0.0)])
def test_pairs_out_of_range_are_refused(pair) -> None:
    with pytest.raises(InputError, match="epsilon must be at least 0"):
        from_pairs([pair], "test")
