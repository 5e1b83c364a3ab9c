"""The draw that the accountant assumes is the draw that the code makes.

False-alarm rate of each statistical test: below 1e-6, with fixed seeds.
"""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from scipy import stats

from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import (
    AllSampling,
    CyclicPoissonSampling,
    FixedSampling,
    PoissonSampling,
)
from fedprivacy.sampling.group_limit import most_groups

RELEASE = dp_accounting.GaussianDpEvent(1.0)
DRAWS, POPULATION = 400, 200


def cohorts(sampler, rounds: int = DRAWS) -> np.ndarray:
    """Who was drawn, one row a round."""
    drawn = np.zeros((rounds, POPULATION), dtype=bool)
    for number in range(rounds):
        ids = sampler.draw(POPULATION, Streams(3).stream("cohort", round=number), number)
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


CYCLIC = CyclicPoissonSampling(0.1, 3)


def test_cyclic_sampling_draws_within_the_group_of_the_round_at_the_rate_of_its_event() -> None:
    drawn = cohorts(CYCLIC, 600)
    stated = CYCLIC.event(RELEASE, POPULATION).sampling_probability
    assert stated == pytest.approx(0.3)
    for turn in range(3):
        members = CYCLIC.members(POPULATION, turn)
        rounds = drawn[turn::3]
        assert not np.delete(rounds, members, axis=1).any()
        inside = rounds[:, members]
        assert stats.binomtest(int(inside.sum()), inside.size, stated).pvalue > 1e-6
        # Coins of different clients are independent: sizes are binomial, and so are those of each client.
        for counts, trials in ((inside.sum(axis=1), len(members)), (inside.sum(axis=0), 200)):
            variance = counts.var(ddof=1) / (trials * stated * (1 - stated))
            assert stats.chi2.sf(variance * (len(counts) - 1), len(counts) - 1) > 1e-7
            assert stats.chi2.cdf(variance * (len(counts) - 1), len(counts) - 1) > 1e-7
    assert drawn.mean() * POPULATION == pytest.approx(CYCLIC.expected_cohort(POPULATION), rel=0.03)


def test_groups_are_dealt_evenly_by_a_draw_that_depends_on_the_number_of_clients_alone() -> None:
    dealt = [CYCLIC.members(POPULATION, turn) for turn in range(3)]
    assert np.sort(np.concatenate(dealt)).tolist() == list(range(POPULATION))
    assert {len(group) for group in dealt} == {66, 67}
    assert np.array_equal(CYCLIC.members(POPULATION, 7), dealt[1])
    # Neither the rate nor the data decide, and the order of clients shows no group.
    again = CyclicPoissonSampling(0.2, 3)
    assert np.array_equal(again.members(POPULATION, 0), dealt[0])
    of_client = np.empty(POPULATION)
    for number, group in enumerate(dealt):
        of_client[group] = number
    same = int((np.diff(of_client) == 0).sum())
    assert stats.binomtest(same, POPULATION - 1, 1 / 3).pvalue > 1e-6
    assert same > 0  # as it would be for turns


def test_one_group_is_poisson_sampling_coin_for_coin() -> None:
    for number in range(5):
        stream = lambda: Streams(3).stream("cohort", round=number)  # noqa: B023, E731
        one = CyclicPoissonSampling(0.3, 1).draw(POPULATION, stream(), number)
        assert np.array_equal(one, PoissonSampling(0.3).draw(POPULATION, stream(), number))
    event = CyclicPoissonSampling(0.3, 1).event(RELEASE, POPULATION)
    assert event == PoissonSampling(0.3).event(RELEASE, POPULATION)


@pytest.mark.parametrize(("rate", "groups"), [(0.3, 4), (0.0, 2), (-0.1, 1), (0.1, 0), (float("nan"), 1)])
def test_groups_too_small_for_the_rate_are_refused(rate: float, groups: int) -> None:
    with pytest.raises(InputError, match="rate x groups"):
        CyclicPoissonSampling(rate, groups)


def test_rounding_makes_no_group_too_small() -> None:
    for groups in range(1, 200):
        assert CyclicPoissonSampling(1 / groups, groups).rate_in_group <= 1


@pytest.mark.parametrize("rate", [0.16666666667, 0.3333333334, 1 / 3, 1 / 6, 1 / 49, 0.02, 1.0, 5e-324])
def test_as_many_groups_as_the_rules_allow_are_sampled_and_one_more_is_refused(rate: float) -> None:
    most = most_groups(rate)
    assert CyclicPoissonSampling(rate, most).rate_in_group <= 1
    assert most >= math.floor(min(0.999999 / rate, 1e15))
    with pytest.raises(InputError, match="rate x groups"):
        CyclicPoissonSampling(rate, most + 1)
