"""The minimum is where scipy and scikit-learn find it, and the certificate holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression, Ridge

from fedprivacy.erm import HuberSVM, Logistic, Loss, Objective, Squared, minimise, minimise_within
from fedprivacy.errors import InputError, RunError
from fedprivacy.seeds import Streams

LOSSES = (Logistic(), HuberSVM(0.5), HuberSVM(0.01), Squared(0.5), Squared.within(3.0))


def people(loss: Loss, n: int = 300, d: int = 4, member: int = 0) -> tuple[np.ndarray, np.ndarray]:
    stream = Streams(5).stream("people", member=member)
    x = stream.normal(size=(n, d))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    score = x @ np.array([3.0, -2.0, 0.5, 0.0])[:d] + stream.logistic(size=n)
    return x, np.where(score > 0, 1.0, -1.0) if loss.signs else np.clip(score / 3, -1, 1)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("strength", [1e-5, 0.01, 3.0])
def test_it_is_the_minimum_that_scipy_finds(loss: Loss, strength: float) -> None:
    x, y = people(loss)
    objective = Objective(loss, strength, 300, 4)
    theta = minimise(objective, x, y, 1e-8)
    theirs = optimize.minimize(
        objective.value,
        np.zeros(4),
        args=(x, y),
        jac=objective.gradient,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert objective.value(theta, x, y) <= theirs.fun + 1e-12
    assert (
        np.linalg.norm(theta - theirs.x)
        <= 2 * np.linalg.norm(objective.gradient(theirs.x, x, y)) / strength + 1e-8
    )
    assert np.linalg.norm(objective.gradient(theta, x, y)) <= strength * 1e-8


def test_it_is_the_minimum_of_scikit_learn() -> None:
    x, y = people(Logistic())
    theirs = LogisticRegression(C=1 / (300 * 0.01), fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y)
    assert np.allclose(minimise(Objective(Logistic(), 0.01, 300, 4), x, y, 1e-9), theirs.coef_[0], atol=1e-6)
    x, y = people(Squared(1.0))
    ridge = Ridge(alpha=300 * 0.01, fit_intercept=False).fit(x, y)
    assert np.allclose(
        minimise(Objective(Squared.within(9.0), 0.01, 300, 4), x, y, 1e-9), ridge.coef_, atol=1e-9
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_it_stops_no_further_than_the_tolerance(loss: Loss) -> None:
    x, y = people(loss)
    objective = Objective(loss, 0.01, 300, 4)
    exact = minimise(objective, x, y, 1e-10)
    for tolerance in (1.0, 0.1, 1e-3):
        assert np.linalg.norm(minimise(objective, x, y, tolerance) - exact) <= tolerance


def test_a_linear_term_moves_the_minimum() -> None:
    x, y = people(Logistic())
    objective, tilt = Objective(Logistic(), 0.01, 300, 4), np.array([0.1, -0.2, 0.0, 0.3])
    theta = minimise(objective, x, y, 1e-9, tilt)
    assert np.allclose(objective.gradient(theta, x, y), -tilt, atol=1e-10)


def test_nobody_has_the_minimum_zero() -> None:
    assert (minimise(Objective(Logistic(), 0.1, 10, 3), np.zeros((0, 3)), np.zeros(0), 1e-9) == 0).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("strength", [0.0, 0.01])
def test_in_a_ball_it_is_the_minimum_that_scipy_finds(loss: Loss, strength: float) -> None:
    x, y = people(loss)
    objective = Objective(loss, strength, 300, 4)
    for radius in (0.1, 1.0):
        theta = minimise_within(objective, x, y, radius)
        theirs = optimize.minimize(
            objective.value,
            np.full(4, 0.01),
            args=(x, y),
            jac=objective.gradient,
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda t, r=radius: r**2 - t @ t, "jac": lambda t: -2 * t},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert np.linalg.norm(theta) <= radius * (1 + 1e-8)
        assert objective.value(theta, x, y) <= theirs.fun + 2e-6 * radius**2


def test_what_cannot_be_solved_releases_nothing() -> None:
    x, y = people(Logistic())
    with pytest.raises(InputError, match="strong convexity"):
        minimise(Objective(Logistic(), 0.0, 300, 4), x, y, 1e-6)
    with pytest.raises(RunError, match="nothing is released"):
        minimise(Objective(Logistic(), 1e-9, 300, 4), x, y, 1e-11)
