"""The Renyi filter: its budget and costs against dp_accounting, and an adaptive adversary that it has to stop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.rdp import RdpAccountant
from scipy.stats import beta

from fedprivacy.account.filter import RenyiFilter
from fedprivacy.accounting.events import RELATIONS
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError

SAMPLED = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2.0))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-5), (50.0, 1e-3)])
def test_the_budget_converts_to_the_policy_and_no_more(epsilon: float, delta: float) -> None:
    chosen = RenyiFilter.of_policy(epsilon, delta)
    order, budget = chosen.order, chosen.budget
    accountant = RdpAccountant([order], RELATIONS["add-remove"])
    # A Gaussian release of this divergence: order / (2 z^2).
    at_budget = dp.GaussianDpEvent(math.sqrt(order / (2 * budget)) * (1 + 1e-12))
    accountant.compose(at_budget)
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-9)
    accountant.compose(dp.GaussianDpEvent(math.sqrt(order / (2e-6 * budget))))
    assert accountant.get_epsilon(delta) > epsilon


@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (dp.GaussianDpEvent(3.0), "add-remove"),
        (SAMPLED, "add-remove"),
        (SAMPLED, "zero-out"),
        (dp.SelfComposedDpEvent(SAMPLED, 100), "add-remove"),
        (dp.LaplaceDpEvent(5.0), "add-remove"),
        (dp.ComposedDpEvent([SAMPLED, dp.GaussianDpEvent(4.0)]), "zero-out"),
    ],
)
def test_costs_are_those_of_dp_accounting_at_the_order(event: dp.DpEvent, adjacency: str) -> None:
    chosen = RenyiFilter.of_policy(2.0, 1e-5)
    accountant = RdpAccountant([chosen.order], RELATIONS[adjacency])
    accountant.compose(event)
    expected = float(accountant.rdp[0])
    assert chosen.cost([event], adjacency) == pytest.approx(expected, rel=1e-9)
    assert chosen.cost([event], adjacency) >= expected


def test_replaced_records_move_a_sum_twice_as_far() -> None:
    chosen = RenyiFilter.of_policy(2.0, 1e-5)
    once = chosen.cost([dp.GaussianDpEvent(3.0)], "add-remove")
    assert chosen.cost([dp.GaussianDpEvent(3.0)], "replace-one") == pytest.approx(4 * once)


def test_the_dearest_of_several_events_counts() -> None:
    chosen = RenyiFilter.of_policy(2.0, 1e-5)
    cheap, dear = dp.GaussianDpEvent(9.0), dp.GaussianDpEvent(3.0)
    assert chosen.cost([cheap, dear], "add-remove") == chosen.cost([dear], "add-remove")
    assert chosen.cost([dp.NonPrivateDpEvent()], "add-remove") == math.inf


def test_pure_releases_count_as_randomised_response() -> None:
    chosen = RenyiFilter.of_policy(2.0, 1e-5)
    truth, lie, order = math.e**0.5 / (1 + math.e**0.5), 1 / (1 + math.e**0.5), chosen.order
    moment = truth**order * lie ** (1 - order) + lie**order * truth ** (1 - order)
    cost = chosen.cost([PureDpEvent(0.5)], "replace-one")
    assert cost == pytest.approx(math.log(moment) / (order - 1), rel=1e-9)
    assert chosen.cost([PureDpEvent(30.0)], "replace-one") <= 30.0


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0.0, 1e-5, None), "--epsilon 0"),
        ((math.nan, 1e-5, None), "--epsilon nan"),
        ((1.0, 0.0, None), "--delta 0: must be above 0"),
        ((1.0, 1.0, None), "--delta 1"),
        ((1.0, 1e-5, 1.05), "--order 1.05: not among"),
        ((1.0, 1e-5, math.inf), "--order inf: not among"),
        ((1.0, 1e-5, 2.0), "--order 2: at this order nothing fits"),
    ],
)
def test_policies_without_a_filter_are_refused(numbers, words: str) -> None:
    with pytest.raises(InputError, match=words):
        RenyiFilter.of_policy(*numbers)


# ------------------------------------------------------------------ an adaptive adversary

RUNS, ROUNDS = 200_000, 60
EPSILON, DELTA = 1.0, 1e-2
ALARM = 1e-6  # for each of the events that are looked at
NOISES = np.array([1.5, 3.0, 6.0, 12.0])


def total_losses(chosen: RenyiFilter, bit: int, costs: np.ndarray, stream: np.random.Generator) -> np.ndarray:
    """The privacy losses of many runs of an adversary that chooses each noise by the results so far.

    It looks at its loss, and where this has grown by luck it asks for less noise while the filter admits it.
    """
    loss, spent, live = np.zeros(RUNS), np.zeros(RUNS), np.ones(RUNS, dtype=bool)
    for _ in range(ROUNDS):
        wanted = np.where(loss > 0.3, 0, np.where(loss > 0, 1, np.where(loss > -0.5, 2, 3)))
        level = wanted
        for _ in range(len(NOISES)):
            level = np.where(
                spent + costs[level] <= chosen.budget, level, np.minimum(level + 1, len(NOISES) - 1)
            )
        live &= spent + costs[level] <= chosen.budget
        live &= loss < EPSILON + 0.5  # it has what it wants
        noise = NOISES[level]
        result = bit + noise * stream.standard_normal(RUNS)
        loss += np.where(live, (2 * result - 1) / (2 * noise**2), 0.0)
        spent += np.where(live, costs[level], 0.0)
    assert all(chosen.admits([each]) for each in spent[:100])
    return loss


def refuted(with_bit: np.ndarray, without: np.ndarray) -> bool:
    """Whether some event {loss > t} has P(S | 1) > e^epsilon P(S | 0) + delta beyond chance (`ALARM`)."""
    for threshold in np.linspace(0.0, 3.0, 31):
        hits, others = int((with_bit > threshold).sum()), int((without > threshold).sum())
        least = beta.ppf(ALARM, hits, RUNS - hits + 1) if hits else 0.0
        most = beta.ppf(1 - ALARM, others + 1, RUNS - others) if others < RUNS else 1.0
        if least > math.exp(EPSILON) * most + DELTA:
            return True
    return False


def test_an_adaptive_adversary_does_not_exceed_the_policy() -> None:
    """False alarms: at most 31 events, two bounds each at 1e-6, so 6.2e-5."""
    chosen = RenyiFilter.of_policy(EPSILON, DELTA)
    costs = np.array([chosen.cost([dp.GaussianDpEvent(noise)], "add-remove") for noise in NOISES])
    stream = np.random.default_rng(1)
    losses = [total_losses(chosen, bit, costs, stream) for bit in (1, 0)]
    assert not refuted(*losses)


@pytest.mark.exhaustive
def test_the_adversary_exceeds_it_where_a_filter_counts_a_quarter() -> None:
    chosen = RenyiFilter.of_policy(EPSILON, DELTA)
    costs = np.array([chosen.cost([dp.GaussianDpEvent(noise)], "add-remove") for noise in NOISES]) / 4
    stream = np.random.default_rng(1)
    losses = [total_losses(chosen, bit, costs, stream) for bit in (1, 0)]
    assert refuted(*losses)
