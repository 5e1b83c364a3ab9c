"""What all approaches have in common: their promise, their words, and the same numbers from the same stream."""

from __future__ import annotations

from dataclasses import replace

import dp_accounting
import numpy as np
import pytest

from fedprivacy import erm
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.erm import (
    APPROACHES,
    Approach,
    GradientPerturbation,
    GridExponential,
    Logistic,
    Objective,
    ObjectivePerturbation,
    OutputPerturbation,
    Squared,
    SufficientStatistics,
    regular_grid,
)
from fedprivacy.randomness.streams import Streams

OBJECTIVE = Objective(Squared.within(1.0), 0.1, 50, 2)
GRID = regular_grid(1.0, 5, 2)
ALL: tuple[Approach, ...] = (
    OutputPerturbation(OBJECTIVE, 1.0),
    OutputPerturbation(OBJECTIVE, 1.0, 1e-3, radius=0.5),
    ObjectivePerturbation(OBJECTIVE, 1.0),
    ObjectivePerturbation(OBJECTIVE, 1.0, 1e-3, radius=0.5),
    GradientPerturbation(OBJECTIVE, 1.0, 1e-3),
    GradientPerturbation(OBJECTIVE, 1.0, 1e-3, rate=0.5, radius=0.5),
    SufficientStatistics(OBJECTIVE, 1.0),
    SufficientStatistics(OBJECTIVE, 1.0, 1e-3, radius=0.5),
    GridExponential(OBJECTIVE, 1.0, candidates=GRID, public=True),
)


def people() -> tuple[np.ndarray, np.ndarray]:
    stream = Streams(2).stream("people")
    x = stream.uniform(-0.7, 0.7, (50, 2))
    return x, np.clip(x @ [0.5, -0.4] + stream.normal(0, 0.1, 50), -1, 1)


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("approach", ALL, ids=lambda a: f"{a.name}-{a.delta}")
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_an_estimate_has_its_promise(approach: Approach, adjacency: str) -> None:
    approach = replace(approach, adjacency=adjacency)
    found = approach.fit(*people(), Streams(2).noise("estimate"))
    promise = found.guarantee
    assert found.theta.shape == (2,)
    assert found.theta.dtype == np.float64
    assert np.isfinite(found.theta).all()
    assert (found.approach, promise.unit, promise.adjacency) == (approach.name, "example", adjacency)
    assert promise.epsilon is not None
    assert 0.95 < promise.epsilon <= 1 + 1e-9
    assert promise.delta == approach.delta
    assert promise.words.startswith(
        "Against an outsider, who sees the published estimate: at most epsilon = 1 "
    )
    assert "one record" in promise.words
    assert "client" not in promise.words
    assert ("public guess" in promise.words) == (adjacency == "add-remove")
    if found.event is None:
        assert approach.name == "objective-perturbation"
    else:  # what the ledger keeps costs what is claimed
        stored = from_json(to_json(found.event))
        assert epsilon(stored, approach.delta, adjacency).epsilon == pytest.approx(promise.epsilon)
    if radius := getattr(approach, "radius", None):
        assert np.linalg.norm(found.theta) <= radius * (1 + 1e-12)


@pytest.mark.parametrize("approach", ALL, ids=lambda a: f"{a.name}-{a.delta}")
def test_the_same_stream_gives_the_same_estimate_and_another_another(approach: Approach) -> None:
    def fit(member: int) -> np.ndarray:
        return approach.fit(*people(), Streams(2).noise("estimate", member=member)).theta

    assert (fit(0) == fit(0)).all()
    assert any((fit(0) != fit(member)).any() for member in (1, 2, 3))


def test_all_names_are_known() -> None:
    assert set(APPROACHES) == {approach.name for approach in ALL}
    assert all(hasattr(erm, name) for name in erm.__all__)


def test_little_noise_leaves_the_truth() -> None:
    """With much of a budget each approach finds what there is to find."""
    x, y = people()
    best = erm.minimise(OBJECTIVE, x, y, 1e-9)
    for approach in ALL:
        if getattr(approach, "rate", 1) < 1 or getattr(approach, "radius", None) == 0.5:
            continue
        rich = replace(approach, epsilon=1e4)
        if isinstance(rich, GradientPerturbation):
            rich = replace(rich, epsilon=1e3, steps=4000)
        theta = rich.fit(x, y, Streams(2).noise("rich")).theta
        assert OBJECTIVE.value(theta, x, y) - OBJECTIVE.value(best, x, y) < 2e-2


def test_gradient_perturbation_costs_what_the_steps_cost_together() -> None:
    approach = GradientPerturbation(OBJECTIVE, 2.0, 1e-3, "add-remove", steps=30, rate=0.3)
    step = dp_accounting.GaussianDpEvent(approach.mechanism.noise_multiplier)
    assert approach.event() == dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.3, step), 30
    )
    whole = GradientPerturbation(OBJECTIVE, 2.0, 1e-3, "add-remove", steps=30)
    assert approach.mechanism.noise_multiplier < whole.mechanism.noise_multiplier
    assert "30 releases" in approach.guarantee.words
    assert "Poisson sampling of records at rate 0.3" in approach.guarantee.words


def test_a_poisson_batch_is_divided_by_its_expected_size() -> None:
    """Over draws the noisy mean gradient is that of all records: the step at a budget without end."""
    x, y = people()
    approach = GradientPerturbation(OBJECTIVE, 1.0, 1e-3, rate=0.3)
    theta, stream = np.array([0.3, 0.2]), Streams(2).stream("batches")
    drawn = np.array([approach.noiseless(theta, x, y, stream) for _ in range(4000)]) / approach.batch
    mean = OBJECTIVE.gradient_sum(theta, x, y) / 50
    assert np.abs(drawn.mean(axis=0) - mean).max() < 5 * drawn.std() / np.sqrt(4000)


def test_noise_does_not_depend_on_the_records() -> None:
    x, y = people()
    for approach in ALL:
        one = approach.fit(x, y, Streams(2).noise("a"))
        other = approach.fit(x[::-1] / 2, -y, Streams(2).noise("b"))
        assert (one.noise, one.words, one.guarantee) == (other.noise, other.words, other.guarantee)


def test_the_same_statistics_serve_any_regularisation() -> None:
    x, y = people()
    approach = SufficientStatistics(OBJECTIVE, 1e4, 1e-3)
    told = approach.statistics(x, y, Streams(2).noise("told"))
    for strength in (0.0, 0.1, 10.0):
        again = SufficientStatistics(Objective(Squared.within(1.0), strength, 50, 2), 1.0)
        exact = np.linalg.solve(x.T @ x / 50 + strength * np.eye(2), x.T @ y / 50)
        assert np.allclose(again.solve(*told), exact, atol=0.05)
    assert (told[0] == told[0].T).all()


def test_rounding_and_a_wrong_sign_of_the_noise_leave_a_solution() -> None:
    """Statistics may come out indefinite, or zero: there is still a least point in the ball."""
    approach = SufficientStatistics(OBJECTIVE, 1.0)
    for a, c in (
        (np.diag([-5.0, -5.0]), np.zeros(2)),
        (np.diag([-5.0, 3.0]), np.array([0.0, 1.0])),
        (np.zeros((2, 2)), np.zeros(2)),
        (np.diag([-50.0, 3.0]), np.array([1e-12, 1.0])),
    ):
        theta = approach.solve(a, c)
        assert np.isfinite(theta).all()
        assert np.linalg.norm(theta) <= 1 + 1e-9
        angles = np.linspace(0, 2 * np.pi, 721)
        ball = np.concatenate(
            [r * np.stack([np.cos(angles), np.sin(angles)], 1) for r in np.linspace(0, 1, 101)]
        )
        curved = a / 50 + 0.1 * np.eye(2)
        values = np.einsum("ij,jk,ik->i", ball, curved, ball) / 2 - ball @ c / 50
        assert theta @ curved @ theta / 2 - theta @ c / 50 <= values.min() + 1e-9


def test_logistic_regression_without_a_budget_to_speak_of_is_the_minimum() -> None:
    x, y = people()
    signs = np.where(y > 0, 1.0, -1.0)
    objective = Objective(Logistic(), 0.05, 50, 2)
    exact = erm.minimise(objective, x, signs, 1e-9)
    for kind in (OutputPerturbation, ObjectivePerturbation):
        assert np.allclose(kind(objective, 1e4).fit(x, signs, Streams(2).noise("x")).theta, exact, atol=2e-3)
