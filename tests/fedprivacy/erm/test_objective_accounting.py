"""The cost of a perturbed objective: its formula is the integral that it stands for, and holds on exact densities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from fedprivacy.erm import HuberSVM, Logistic, Objective, ObjectivePerturbation
from fedprivacy.erm.objective_accounting import tilted_delta, tilted_mu
from fedprivacy.erm.objective_perturbation import deviation
from fedprivacy.randomness.streams import Streams


@pytest.mark.exhaustive(beyond=3)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.0, 0.5), (0.1, 0.01), (1.0, 0.3), (1.0, 2.0), (5.0, 1.0), (0.2, 4.0)]
)
def test_delta_is_the_expectation_of_the_loss_beyond_epsilon(
    epsilon: float, mu: float, directions: int
) -> None:
    radius = stats.chi(directions)
    grid = np.linspace(0, 40, 2_000_001)
    inside = np.clip(-np.expm1(epsilon - mu * grid - mu**2 / 2), 0, None) * radius.pdf(grid)
    integral = integrate.simpson(inside, x=grid)
    assert tilted_delta(epsilon, mu, directions) == pytest.approx(integral, rel=1e-4, abs=1e-12)


def test_the_largest_mu_is_found_and_rounded_down() -> None:
    for directions in (1, 2):
        for epsilon in (1e-3, 0.5, 8.0, 200.0):
            for delta in (1e-2, 1e-6, 1e-12):
                mu = tilted_mu(epsilon, delta, directions)
                assert tilted_delta(epsilon, mu, directions) <= delta
                assert tilted_delta(epsilon, mu * (1 + 1e-6), directions) > delta


def test_more_directions_and_less_budget_ask_for_more_noise() -> None:
    assert (
        tilted_mu(1.0, 1e-5, 1) > tilted_mu(1.0, 1e-5, 2) > tilted_mu(0.9, 1e-5, 2) > tilted_mu(0.9, 1e-6, 2)
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_it_is_less_noise_than_was_published(epsilon: float, delta: float) -> None:
    """Kifer, Smith and Thakurta 2012: sigma = L sqrt(8 ln(2/delta) + 4 epsilon)/epsilon with Lambda = 2 beta/epsilon."""
    n = 100
    objective = Objective(Logistic(), 2 * 0.25 / epsilon / n, n, 5)
    ours = ObjectivePerturbation(objective, epsilon, delta, "add-remove").noise
    assert ours <= math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon


def test_pure_noise_is_less_than_was_published() -> None:
    """Chaudhuri et al. 2011: density exp(-epsilon' ||b||/2), epsilon' = epsilon - 2 ln(1 + c/(n lambda))."""
    objective = Objective(Logistic(), 0.01, 500, 5)
    theirs = 2 / (1.0 - 2 * math.log1p(0.25 / 5))
    assert ObjectivePerturbation(objective, 1.0).linear.scale <= theirs  # type: ignore[union-attr]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_no_data_set_in_two_dimensions_loses_more(adjacency: str, delta: float) -> None:
    """Densities of theta in the plane, by the formula and by nothing else: random neighbours keep the claim."""
    loss = HuberSVM(0.5)
    objective = Objective(loss, 0.7, 3, 2)
    approach = ObjectivePerturbation(objective, 1.5, delta, adjacency)
    stream = np.random.default_rng(4)
    side = np.linspace(-6, 6, 241) * (2 if delta else 1)
    theta = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    def density(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        margins = theta @ x.T
        b = -(3 * 0.7 * theta + loss.slope(margins, y) @ x)
        hessians = np.einsum("kn,ni,nj->kij", loss.curvature(margins, y), x, x) + 3 * 0.7 * np.eye(2)
        size = np.linalg.norm(b, axis=1)
        if delta:
            bell = np.exp(-((size / approach.noise) ** 2) / 2) / (2 * math.pi * approach.noise**2)
        else:
            scale = approach.linear.scale  # type: ignore[union-attr]
            bell = np.exp(-size / scale) / (2 * math.pi * scale**2)
        return np.asarray(bell * np.linalg.det(hessians))

    cell, largest = (side[1] - side[0]) ** 2, 0.0
    for _ in range(12):
        x = stream.normal(size=(4, 2))
        x /= np.linalg.norm(x, axis=1)[:, None]
        y = stream.choice([-1.0, 1.0], 4)
        one = density(x[:3], y[:3])
        other = density(x[1:], y[1:]) if adjacency == "replace-one" else density(x[1:3], y[1:3])
        if delta:
            for p, q in ((one, other), (other, one)):
                assert (np.maximum(0, p - math.exp(0.99 * 1.5) * q) * cell).sum() <= delta
        else:
            largest = max(largest, np.abs(np.log(one / other)).max())
            assert largest <= 0.99 * 1.5 + 1e-9
    assert delta or largest > 0.8 * 1.5


def test_the_noise_is_made_for_the_plane_of_two_records_or_the_line_of_one() -> None:
    for adjacency, d, change, directions in (
        ("replace-one", 5, 2.0, 2), ("replace-one", 1, 2.0, 1), ("add-remove", 5, 1.0, 1), ("zero-out", 5, 1.0, 1)
    ):  # fmt: skip
        approach = ObjectivePerturbation(Objective(Logistic(), 0.1, 50, d), 1.0, 1e-3, adjacency)
        left = 0.99 - math.log1p(0.25 / 5)
        assert approach.left == pytest.approx(left)
        assert approach.noise == pytest.approx(change / tilted_mu(left, 0.99e-3, directions))


@pytest.mark.exhaustive
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_noise_of_its_own_hides_where_the_solver_stopped(delta: float) -> None:
    """With a tolerance that is not small: where records say nothing theta is -b/(m lambda) and that noise."""
    objective = Objective(Logistic(), 0.5, 20, 2)
    approach = ObjectivePerturbation(objective, 4.0, delta, tolerance=0.5, solver_share=0.1)
    distance = 0.5 * 1 / (20 * 0.5)
    assert approach.distance == pytest.approx(distance)
    if not delta:
        assert approach.output.scale == pytest.approx(2 * distance / 0.4)  # type: ignore[union-attr]
    nothing, y = np.zeros((20, 2)), np.ones(20)
    told = [approach.fit(nothing, y, Streams(1).noise("told", member=i)).theta for i in range(3000)]
    expected = (approach.noise / (20 * 0.5)) ** 2 + deviation(approach.output) ** 2
    assert np.var(told) == pytest.approx(expected, rel=0.12)
    assert np.var(told) > 1.5 * (approach.noise / (20 * 0.5)) ** 2
