"""The minimum is where scipy and scikit-learn find it, and the certificate holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression, Ridge

from fedprivacy.erm import (
    HuberSVM,
    Logistic,
    Loss,
    Objective,
    ObjectivePerturbation,
    OutputPerturbation,
    Squared,
    minimise,
    minimise_within,
)
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.solver import _forward, _Tilted, check_reachable, rounding
from fedprivacy.errors import InputError, RunError
from fedprivacy.randomness.streams import Streams

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
    theta = minimise(objective, x, y, 1e-7)
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
        <= 2 * np.linalg.norm(objective.gradient(theirs.x, x, y)) / strength + 1e-7
    )
    assert np.linalg.norm(objective.gradient(theta, x, y)) <= strength * 1e-7


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


def test_a_minimum_to_compare_with_that_cannot_be_found_is_refused_at_once() -> None:
    x, y = people(Logistic())
    with pytest.raises(
        InputError, match=r"with smoothness 5e\+11 and regularisation 0.01. Choose a wider kink"
    ):
        minimise_within(Objective(HuberSVM(1e-12), 0.01, 300, 4), x, y, 1.0)
    with pytest.raises(InputError, match=r"radius = 1e-07: .* at least 4e-06 is needed"):
        minimise_within(Objective(Logistic(), 0.01, 300, 4), x, y, 1e-7)


def test_hardly_any_regularisation_is_found_as_none() -> None:
    """Below 1e-6 the minimum is that of a little more: within 1e-6 R^2 of the least value."""
    x, y = people(Logistic())
    for strength in (1e-12, 1e-9):
        objective = Objective(Logistic(), strength, 300, 4)
        theta = minimise_within(objective, x, y, 30.0)
        flat = minimise_within(replace(objective, regularisation=0.0), x, y, 30.0)
        assert objective.value(theta, x, y) == pytest.approx(objective.value(flat, x, y), abs=1e-6)


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
        minimise(Objective(Logistic(), 0.01, 300, 4), x, y, 1e-16)


def test_where_newton_goes_to_and_fro_the_minimum_is_found_too() -> None:
    """Five records of one label, on which whole steps lead from 0 to 37.5 and back; of two labels they do not."""
    objective = Objective(HuberSVM(0.5), 0.01, 5, 1)
    x = np.linspace(0.5, 1, 5)[:, None]
    for y in (np.ones(5), np.array([-1.0, 1, 1, 1, 1])):
        theta = minimise(objective, x, y, 1e-6)
        assert np.linalg.norm(objective.gradient(theta, x, y)) <= 1e-8


@pytest.mark.parametrize("loss", [HuberSVM(0.5), HuberSVM(0.01), Squared(1.5), Logistic()], ids=repr)
def test_it_depends_on_no_record_whether_the_minimum_is_found(loss: Loss) -> None:
    """Records of all kinds, and tolerances as small as may be asked for."""
    stream, found = Streams(6).stream("wild"), 0
    for _ in range(150):
        n, d = int(stream.integers(3, 100)), int(stream.integers(1, 5))
        strength = 10.0 ** stream.uniform(-5, 1)
        x = stream.normal(size=(n, d)) * 10.0 ** stream.uniform(-3, 1)
        x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
        y = np.where(stream.random(n) < stream.choice([0.0, 0.1, 0.5]), -1.0, 1.0)
        objective = Objective(loss, strength, n, d)
        tilt = stream.normal(size=d) * 10.0 ** stream.uniform(-4, 1)
        distance = 1e-6 * objective.solution_sensitivity("zero-out")
        try:
            check_reachable(objective, distance, float(np.linalg.norm(tilt)))
        except InputError:
            continue
        theta = minimise(objective, x, y, distance, tilt)
        assert np.linalg.norm(objective.gradient(theta, x, y) + tilt) <= 1.01 * distance * strength
        found += 1
    assert found > 70


def test_the_certificate_covers_its_own_rounding() -> None:
    """Held against a gradient in more digits."""
    stream = Streams(7).stream("many")
    x = stream.normal(size=(20_000, 3))
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    y = np.sort(np.where(stream.random(20_000) < 0.5, -1.0, 1.0))
    objective, theta = Objective(Logistic(), 1e-3, 20_000, 3), np.array([300.0, -200.0, 100.0])
    more = np.longdouble(1) * x
    slopes = -y / (1 + np.exp(y * (more @ theta)))
    exact = (slopes[:, None] * more).sum(axis=0) / 20_000 + np.longdouble(1e-3) * theta
    length = float(np.linalg.norm(exact.astype(float)))
    allowed = rounding(objective, float(np.linalg.norm(theta)), 0.0)
    risk = _Tilted(objective, x, y, np.zeros(3))
    gradient = risk.gradient(theta)
    assert risk.certified(theta, gradient, length + 2 * allowed)
    assert not risk.certified(theta, gradient, length)
    assert not risk.certified(theta, gradient, length - 2 * allowed)


@pytest.mark.parametrize("loss", [HuberSVM(0.5), Squared(0.5)], ids=repr)
def test_a_million_records_that_are_alike_are_no_reason_to_refuse(loss: Loss) -> None:
    """Added one to the next they round to one side, by more than the tolerance: their refusal told of them."""
    objective = Objective(loss, 0.1, 1_000_000, 3)
    distance = OutputPerturbation(objective, 1.0).distance
    theta = minimise(objective, np.full((1_000_000, 3), 0.1), np.ones(1_000_000), distance)
    slope = loss.slope(np.array([0.1 * theta.sum()]), np.ones(1))[0]  # of each of them
    assert np.abs(0.1 * slope + 0.1 * theta).max() <= 2 * 0.1 * distance


def test_newton_comes_there_in_few_steps_where_whole_steps_zigzag_between_kinks() -> None:
    """Hardly any regularisation and narrow kinks; where it stops short, the descent takes millions of steps."""
    stream, most = Streams(6).stream("zigzag"), 0
    for case in range(150):
        n, d = int(stream.integers(2, 30)), int(stream.integers(1, 5))
        loss: Loss = (HuberSVM if case % 2 else Squared)(10.0 ** stream.uniform(-2, -0.5))
        objective = Objective(loss, 10.0 ** stream.uniform(-8, -5), n, d)
        x = stream.normal(size=(n, d))
        if case % 3 == 0:
            x = np.round(x, 1)
        x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
        risk = _Tilted(objective, x, stream.choice([-1.0, 1.0], n), 0.1 * stream.normal(size=d))
        enough = 0.05 * loss.lipschitz / n
        theta, steps = np.zeros(d), 0
        while not risk.certified(theta, gradient := risk.gradient(theta), enough):
            there = _forward(risk, theta, gradient)
            assert there is not None
            theta, steps = there, steps + 1
            assert steps < 60
        most = max(most, steps)
    assert most > 3


@pytest.mark.parametrize("kind", ["alike", "scaled", "on axes"])
def test_four_times_the_guessed_number_of_records_have_a_minimum_that_is_found(kind: str) -> None:
    """At the least tolerance that is let through."""
    stream = Streams(6).stream("crowd")
    for loss in (Logistic(), HuberSVM(0.1), Squared(0.5)):
        objective = Objective(loss, 1e-6, 10, 3)
        norm = loss.lipschitz / 1e-6
        distance = 64.001 * rounding(objective, norm, 0.0) / 1e-6
        check_reachable(objective, distance)
        x = np.full((40, 3), 0.57)
        if kind != "alike":
            x = np.eye(3)[stream.integers(3, size=40)] if kind == "on axes" else x * stream.random((40, 1))
        theta = minimise(objective, x, np.ones(40), distance)
        assert np.linalg.norm(objective.gradient(theta, x, np.ones(40))) <= 1.01e-6 * distance


def test_more_records_than_that_are_refused_and_the_guarantee_says_so() -> None:
    x, y = people(Logistic(), n=41, d=2)
    for kind in (OutputPerturbation, ObjectivePerturbation):
        approach = kind(Objective(Logistic(), 1.0, 10, 2), 1.0, adjacency="add-remove")
        assert (
            ErmAssumption.CROWDED
            in approach.fit(x[:40], y[:40], Streams(1).stream("noise")).guarantee.assumptions
        )
        with pytest.raises(InputError, match=r"41 records, and the objective is for 10.*up to 4 times"):
            approach.fit(x, y, Streams(1).stream("noise"))
        public = kind(Objective(Logistic(), 1.0, 40, 2), 1.0)
        assert ErmAssumption.CROWDED not in public.guarantee.assumptions


def test_a_tolerance_that_rounding_forbids_is_refused_before_any_record_is_seen() -> None:
    with pytest.raises(InputError, match=r"cannot be certified with 400,000,000 records.*times as large"):
        OutputPerturbation(Objective(Logistic(), 1e-4, 400_000_000, 3), 1.0)
    with pytest.raises(InputError, match="smoothness 5e"):
        OutputPerturbation(Objective(HuberSVM(1e-11), 0.01, 300, 4), 1.0)
    OutputPerturbation(Objective(Logistic(), 0.01, 100_000, 3), 1.0)
