"""The losses are convex, and their slopes and bounds are what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.erm import LOSSES, HuberSVM, Logistic, Loss, Squared
from fedprivacy.errors import InputError

ALL: tuple[Loss, ...] = (Logistic(), HuberSVM(0.5), HuberSVM(0.05), Squared(2.0))
P = np.linspace(-6, 6, 24_001)


def targets(loss: Loss) -> tuple[float, ...]:
    return (-1.0, 1.0) if loss.signs else (-1.0, -0.3, 0.0, 0.8, 1.0)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_slope_and_curvature_are_the_derivatives_within_their_bounds(loss: Loss) -> None:
    for target in targets(loss):
        y = np.full(len(P), target)
        slope = loss.slope(P, y)
        assert np.abs(np.gradient(loss.value(P, y), P) - slope)[1:-1].max() < 2e-3 * max(1, loss.smoothness)
        rises = np.diff(slope) / np.diff(P)
        assert rises.min() >= -1e-9  # convex
        assert rises.max() <= loss.smoothness + 1e-6
        between = (loss.curvature(P, y)[1:] + loss.curvature(P, y)[:-1]) / 2
        assert np.mean(np.abs(rises - between) > 1e-3 * loss.smoothness) < 1e-3  # but at jumps
        assert np.abs(slope).max() <= loss.lipschitz + 1e-12
    far = np.array([-1e6, 1e6])
    steepest = max(np.abs(loss.slope(far, np.full(2, t))).max() for t in targets(loss))
    assert math.isclose(steepest, loss.lipschitz, rel_tol=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_the_span_of_the_loss_is_the_widest_of_any_target_over_all_predictions(loss: Loss) -> None:
    for reach in (0.5, 1.0, 4.0):
        inside = P[np.abs(P) <= reach]
        found = [np.ptp(loss.value(inside, np.full(len(inside), t))) for t in targets(loss)]
        assert loss.span(reach) == pytest.approx(max(found), abs=1e-3)
        assert loss.span(reach) >= max(found) - 1e-12


def test_published_values() -> None:
    one = np.ones(1)
    assert Logistic().value(0 * one, one) == pytest.approx(math.log(2))
    assert HuberSVM(0.5).value(one, one) == pytest.approx(0.125)  # h/4
    assert HuberSVM(0.5).value(-one, one) == pytest.approx(2)
    assert (HuberSVM(0.5).smoothness, Logistic().smoothness) == (1.0, 0.25)
    # The square for all theta in the ball, where the residual is at most R + 1.
    assert Squared.within(2.0).value(-2 * one, one) == pytest.approx(4.5)
    assert Squared.within(2.0).value(-3 * one, one) == pytest.approx(3 * (4 - 1.5))
    assert set(LOSSES) == {"logistic", "huber-svm", "squared"}


def test_logistic_loss_of_far_predictions_is_finite() -> None:
    far, y = np.array([-1e4, 1e4]), np.ones(2)
    assert Logistic().value(far, y).tolist() == [1e4, 0.0]
    assert Logistic().slope(far, y).tolist() == [-1.0, -0.0]


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-300, 1e300, math.inf, math.nan])
def test_mistakes_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="width"):
        HuberSVM(bad)
    with pytest.raises(InputError, match="Lipschitz"):
        Squared(bad)
