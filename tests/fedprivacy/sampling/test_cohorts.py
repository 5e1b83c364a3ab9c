"""The draw that the accountant assumes is the draw that the code makes.

False-alarm rate of each statistical test: below 1e-6, with fixed seeds.
"""

from __future__ import annotations

import dp_accounting
import numpy as np
import pytest
from scipy import stats

from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling, FixedSampling, PoissonSampling

RELEASE = dp_accounting.GaussianDpEvent(1.0)
DRAWS, POPULATION = 400, 200


def cohorts(sampler, rounds: int = DRAWS) -> np.ndarray:
    """Who was drawn, one row a round."""
    drawn = np.zeros((rounds, POPULATION), dtype=bool)
    for number in range(rounds):
        ids = sampler.draw(POPULATION, Streams(3).stream("cohort", round=number))
        assert (np.diff(ids) > 0).all()
        drawn[number, ids] = True
    return drawn


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_poisson_draws_at_the_rate_that_its_event_states(rate: float) -> None:
    sampler = PoissonSampling(rate)
    drawn = cohorts(sampler)
    stated = sampler.event(RELEASE, POPULATION).sampling_probability
    assert stats.binomtest(int(drawn.sum()), drawn.size, stated).pvalue > 1e-6


def test_poisson_cohort_sizes_are_binomial_and_clients_independent() -> None:
    drawn = cohorts(PoissonSampling(0.3))
    variance = drawn.sum(axis=1).var(ddof=1) / (POPULATION * 0.3 * 0.7)
    # A fixed cohort size would have variance 0, a shared coin POPULATION times as much.
    assert stats.chi2.sf(variance * (DRAWS - 1), DRAWS - 1) > 1e-6
    assert stats.chi2.cdf(variance * (DRAWS - 1), DRAWS - 1) > 1e-6


def test_fixed_draws_without_replacement_every_client_alike() -> None:
    sampler = FixedSampling(20)
    drawn = cohorts(sampler)
    assert (drawn.sum(axis=1) == 20).all()
    per_client = drawn.sum(axis=0)
    expected = DRAWS * 20 / POPULATION
    statistic = ((per_client - expected) ** 2).sum() / (expected * (1 - 20 / POPULATION))
    assert stats.chi2.sf(statistic, POPULATION - 1) > 1e-6
    event = sampler.event(RELEASE, POPULATION)
    assert (event.source_dataset_size, event.sample_size) == (POPULATION, 20)


def test_a_fixed_cohort_of_everybody_is_no_sampling() -> None:
    assert FixedSampling(POPULATION).event(RELEASE, POPULATION) == RELEASE


def test_all_draws_everybody() -> None:
    assert cohorts(AllSampling(), 2).all()
    assert AllSampling().event(RELEASE, POPULATION) == RELEASE


def test_the_denominator_is_the_mean_cohort() -> None:
    for sampler in (PoissonSampling(0.3), FixedSampling(20), AllSampling()):
        drawn = cohorts(sampler).sum(axis=1)
        assert drawn.mean() == pytest.approx(sampler.expected_cohort(POPULATION), rel=0.03)


@pytest.mark.parametrize("population", [0, 1, 65_536, 200_001])
def test_coins_drawn_in_blocks_are_those_drawn_at_once(population: int) -> None:
    at_once = np.flatnonzero(Streams(1).stream("cohort").random(population) < 0.3)
    drawn = PoissonSampling(0.3).draw(population, Streams(1).stream("cohort"))
    assert drawn.dtype == np.int64
    assert np.array_equal(drawn, at_once)
