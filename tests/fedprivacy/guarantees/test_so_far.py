"""The epsilon so far: never below that of the rounds that are over, and equal to the claim at the end."""

from __future__ import annotations

import itertools

import pytest
from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.guarantees import so_far
from fedprivacy.guarantees.so_far import SO_FAR, EpsilonSoFar, epsilons_after, rounds_within, with_epsilon
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling, PoissonSampling

CENTRAL = Plan("central", "client", "add-remove", 1000, 30, PoissonSampling(0.05), Gaussian(1.0, 1.0), 1e-5)
LOCAL = Plan(
    *("local", "client", "replace-one", 50, 30, AllSampling(), Gaussian(1.0, 9.0), 1e-5),
    max_participations=8,
    noise_draw="client",
)


def test_it_is_the_epsilon_of_as_many_rounds() -> None:
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(1.0)), 12)
    expected = epsilon(event, 1e-5, "add-remove").epsilon
    found = epsilons_after(CENTRAL, 12)
    assert found == {"server": None, "participant": expected, "outsider": expected}


def test_under_local_trust_it_ends_to_grow_with_the_last_participation() -> None:
    spent = [epsilons_after(LOCAL, rounds)["server"] for rounds in (1, 8, 9, 30)]
    assert spent[0] < spent[1] == spent[2] == spent[3]


@pytest.mark.parametrize("plan", [CENTRAL, LOCAL])
def test_the_most_rounds_within_an_epsilon(plan: Plan) -> None:
    limit = max(value for value in epsilons_after(plan, 7).values() if value is not None)
    assert rounds_within(plan, limit) == 7
    assert rounds_within(plan, limit * 0.999) == 6
    assert rounds_within(plan, 1e-3) == 0
    assert rounds_within(plan, 100.0) == plan.rounds


def test_a_bound_while_a_run_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(so_far, "SHARE", float("inf"))
    bounds, accounted = EpsilonSoFar(CENTRAL), []
    real = so_far.epsilons_after
    monkeypatch.setattr(
        so_far, "epsilons_after", lambda plan, to, **stated: accounted.append(to) or real(plan, to, **stated)
    )
    for rounds in range(1, 31):
        found = bounds.after(rounds)
        assert found is not None
        assert found["outsider"] >= real(CENTRAL, rounds)["outsider"]
    assert found == real(CENTRAL, 30)
    assert len(accounted) < 12
    assert accounted == sorted(accounted)


def test_early_stopping_charges_the_whole_plan_from_the_first_round_on() -> None:
    assert EpsilonSoFar(CENTRAL, whole=True).after(1) == epsilons_after(CENTRAL, 30)


def test_accounting_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(0.0, 1.0)
    monkeypatch.setattr(so_far.time, "perf_counter", lambda: next(ticks))
    bounds = EpsilonSoFar(CENTRAL)
    assert bounds.after(1) is not None  # took one of two seconds
    assert bounds.after(29) is None


def test_a_message_names_each_observer_and_all_terms() -> None:
    events: list[dict] = []
    shown = with_epsilon(events.append, CENTRAL, whole=True)
    assert shown is not None
    shown({"round": 0})
    bound = printed(CENTRAL.spent().epsilon, 3)
    assert so_far.message(events[0]) == (
        "so far, for rounds fixed beforehand: server: no guarantee; participant, outsider: epsilon at most "
        f"{bound} (delta 1e-05, client, add-remove)"
    )
    assert so_far.message({"round": 0}) == ""
    bare = Plan("none", "client", "replace-one", 10, 3, AllSampling(), None)
    assert so_far.message({"round": 0, SO_FAR: EpsilonSoFar(bare)}) == ""
    assert with_epsilon(None, CENTRAL, whole=False) is None
