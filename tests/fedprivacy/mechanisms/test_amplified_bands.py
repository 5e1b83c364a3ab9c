"""Correlated noise with cyclic Poisson cohorts: what a client costs, by brute force over its participations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.strategy_matrix import Strategy, best_strategy
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import CyclicPoissonSampling, PoissonSampling
from tests.fedprivacy.mechanisms.test_banded import squared_error


def plan(rounds: int, bands: int, rate: float, z: float, adjacency: str = "zero-out", delta=1e-5) -> Plan:
    mechanism = BandedGaussian(1.0, z, bands, rounds)
    sampler = CyclicPoissonSampling(rate, bands)
    return Plan("central", "client", adjacency, 100, rounds, sampler, mechanism, delta)


@pytest.mark.parametrize(("rounds", "bands"), [(7, 3), (6, 3), (5, 1), (5, 5), (8, 2), (3, 4)])
def test_each_participation_moves_the_sums_by_a_block_of_norm_1_that_no_other_touches(rounds, bands) -> None:
    matrix = best_strategy(rounds, bands).matrix()
    most = 0
    for group in range(bands):
        mine = range(group, rounds, bands)
        most = max(most, len(mine))
        for count in range(1, len(mine) + 1):
            for rounds_of_client in itertools.combinations(mine, count):
                columns = matrix[:, rounds_of_client]
                assert np.allclose(columns.T @ columns, np.eye(count), atol=1e-12)
                assert ((columns != 0).sum(axis=1) <= 1).all()  # no row has two of them
                for signs in itertools.product((1, -1), repeat=count):
                    assert np.linalg.norm(columns @ signs) == pytest.approx(math.sqrt(count))
    assert most == math.ceil(rounds / bands) == plan(rounds, bands, 0.1, 1.0).charged(rounds)


def whole_run(matrix: np.ndarray, rounds: list[int], rate: float, z: float, epsilon: float) -> float:
    """The hockey-stick divergence of a run with a client against one without it, both ways, on a grid.

    Every set of the rounds in which the client may come is a shift of the noise; all shifts lie in the plane of
    its (two) columns, so that the densities in this plane are all that tells the runs apart.
    """
    columns = matrix[:, rounds]
    basis, _ = np.linalg.qr(columns)
    line = np.linspace(-8 * z, 8 * z + 1.5, 801)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1)
    cell = (line[1] - line[0]) ** 2

    def density(shift: np.ndarray) -> np.ndarray:
        return stats.norm.pdf(points, loc=basis.T @ shift, scale=z).prod(axis=-1)

    absent, present = density(np.zeros(len(matrix))), 0.0
    for coins in itertools.product((0, 1), repeat=2):
        chance = math.prod(rate if coin else 1 - rate for coin in coins)
        present = present + chance * density(columns @ np.array(coins))
    grown = math.exp(epsilon)
    return cell * max(
        float(np.maximum(one - grown * other, 0).sum())
        for one, other in ((present, absent), (absent, present))
    )


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("group", "rate", "z"), [(0, 0.3, 1.2), (2, 0.6, 1.0), (1, 1.0, 1.5)])
def test_a_whole_run_is_told_apart_as_the_sampled_gaussian_releases_of_the_event(group, rate, z) -> None:
    """All rounds and all participations at once, against dp_accounting's composition of two releases."""
    matrix = best_strategy(6, 3).matrix()
    stated = pld.from_gaussian_mechanism(z, sampling_prob=rate, value_discretization_interval=1e-4)
    stated = stated.self_compose(2)
    for epsilon in (0.2, 0.8, 1.5):
        exact = whole_run(matrix, [group, group + 3], rate, z, epsilon)
        claimed = stated.get_delta_for_epsilon(epsilon)
        assert exact == pytest.approx(claimed, rel=1e-4)  # the error of the grid, on either side


@pytest.mark.exhaustive
def test_without_columns_of_norm_1_or_with_a_narrower_cycle_the_event_is_broken() -> None:
    """The brute force above has teeth."""
    stated = pld.from_gaussian_mechanism(1.2, sampling_prob=0.3).self_compose(2)
    claimed = stated.get_delta_for_epsilon(0.8)
    matrix = best_strategy(6, 3).matrix()
    assert whole_run(1.1 * matrix, [0, 3], 0.3, 1.2, 0.8) > 1.05 * claimed
    assert whole_run(matrix, [0, 1], 0.3, 1.2, 0.8) > 1.05 * claimed  # columns that share rows


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize(("rounds", "bands", "rate"), [(80, 4, 0.125), (30, 7, 0.05), (80, 8, 0.125)])
def test_the_plan_costs_what_dp_accounting_has_for_its_releases(adjacency, rounds, bands, rate) -> None:
    planned = plan(rounds, bands, rate, 2.5, adjacency)
    times, within = math.ceil(rounds / bands), min(1.0, rate * bands)
    release = dp.PoissonSampledDpEvent(within, dp.GaussianDpEvent(2.5))
    assert planned.event() == dp.SelfComposedDpEvent(release, times)
    if adjacency == "zero-out":
        theirs = pld.from_gaussian_mechanism(2.5, sampling_prob=within).self_compose(times)
        assert planned.spent().epsilon == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=2e-3)


def test_replace_one_has_its_own_doubled_sensitivity() -> None:
    zero, replaced = (plan(80, 8, 0.125, 4.0, adjacency) for adjacency in ("zero-out", "replace-one"))
    twice = plan(80, 8, 0.125, 2.0)
    assert replaced.spent().epsilon == pytest.approx(twice.spent().epsilon, rel=1e-9)
    assert replaced.spent().epsilon > 1.9 * zero.spent().epsilon


def test_one_band_is_dp_fedavg_with_poisson_cohorts() -> None:
    one = plan(80, 1, 0.125, 2.0)
    poisson = Plan("central", "client", "zero-out", 100, 80, PoissonSampling(0.125), Gaussian(1.0, 2.0), 1e-5)
    assert one.event() == poisson.event()
    assert one.banded.error(1) * 80 == pytest.approx(4.0 * 80 * 81 / 2)


@pytest.mark.parametrize(
    ("rounds", "bands", "momentum"), [(1, 1, 0.0), (5, 9, 0.0), (12, 4, 0.9), (60, 8, 0.5)]
)
def test_the_squared_error_is_that_of_dense_matrices(rounds, bands, momentum) -> None:
    for strategy in (best_strategy(rounds, bands, momentum), Strategy(np.array([1.0, -0.3]), rounds + 1)):
        dense = squared_error(strategy.matrix(), momentum)
        assert strategy.squared_error(momentum) == pytest.approx(dense, rel=1e-12)
