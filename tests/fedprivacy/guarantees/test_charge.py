from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedprivacy.guarantees.charge import BLINDLY, COMPLETED, charged, under_way
from fedprivacy.guarantees.ledger import BROKEN_OFF, Ledger
from fedprivacy.guarantees.statement import both_figures, completed, guarantees
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling, PoissonSampling

CENTRAL = Plan(
    "central", "client", "replace-one", 1000, 100, PoissonSampling(0.1), Gaussian(1.0, 3.9828), 1e-5
)
LOCAL = Plan("local", "client", "replace-one", 100, 10, AllSampling(), Gaussian(1.0, 12.6), 1e-3, 4, "client")
PLANS = pytest.mark.parametrize("plan", [CENTRAL, LOCAL], ids=["central", "local"])
STOPPED = pytest.mark.parametrize("status", ["interrupted", "failed"])


def released(plan: Plan, rounds: int, missing: int = 0) -> Ledger:
    """A ledger of rounds in which one client of two is asked, in turn."""
    ledger = Ledger(plan)
    for number in range(rounds):
        cohort = np.arange(number % 2, plan.population, 2)
        ledger.request(cohort)
        ledger.release(cohort, len(cohort) - missing)
    return ledger


def stated(plan: Plan, status: str, rounds: int, **more: Any) -> dict[str, Any]:
    given = {"early_stopping": False, **more}
    ledger = charged(released(plan, rounds), status, rounds=rounds, planned=plan.rounds, **given)
    return json.loads(json.dumps(ledger))


def document(ledger: dict[str, Any]) -> dict[str, Any]:
    found = [one.to_json() for one in guarantees(ledger)]
    return {"kind": "run", "ledger": ledger, "privacy": {"guarantees": found, **completed(ledger)}}


def epsilons(ledger: dict[str, Any]) -> dict[str, float]:
    return {one.observer: one.epsilon for one in guarantees(ledger) if one.epsilon is not None}


@PLANS
@STOPPED
def test_a_run_that_ends_early_keeps_its_planned_charge(plan: Plan, status: str) -> None:
    ledger = stated(plan, status, 2)
    for epsilon in epsilons(ledger).values():
        assert epsilon == pytest.approx(plan.spent().epsilon)
    assert ledger["rounds"] == plan.rounds


@PLANS
@STOPPED
def test_the_rounds_that_completed_stand_beside_it_under_their_assumption(plan: Plan, status: str) -> None:
    ledger = stated(plan, status, 2)
    second = ledger[COMPLETED]
    assert epsilons(second) == epsilons(json.loads(json.dumps(released(plan, 2).to_json())))
    for observer, epsilon in epsilons(second).items():
        assert epsilon < epsilons(ledger)[observer] / 1.2
    for claim in second["claims"]:
        assert claim["event"] is None or claim["assumptions"][0] == BLINDLY[status]
    for claim in ledger["claims"]:
        assert BLINDLY[status] not in claim["assumptions"]
        broken = status == "failed" and claim["event"] is not None
        assert (BROKEN_OFF in claim["assumptions"]) is broken
    for line in both_figures(document(ledger)["privacy"]):
        assert BLINDLY[status] in line
        assert f"all {plan.rounds} planned rounds stay charged" in line
        assert "delta = " in line


@PLANS
@STOPPED
def test_a_run_that_completed_is_charged_for_what_it_released(plan: Plan, status: str) -> None:
    """Its number of rounds was fixed before the first: nothing that ends it then has chosen it."""
    assert stated(plan, status, plan.rounds) == json.loads(json.dumps(released(plan, plan.rounds).to_json()))


@PLANS
@pytest.mark.parametrize("status", ["running", "interrupted", "failed", "finished"])
def test_early_stopping_has_the_planned_charge_alone(plan: Plan, status: str) -> None:
    """How many rounds there were then depends on released models, whoever stops the run."""
    for rounds in (2, plan.rounds):
        ledger = stated(plan, status, rounds, early_stopping=True)
        assert COMPLETED not in ledger
        for epsilon in epsilons(ledger).values():
            assert epsilon == pytest.approx(plan.spent().epsilon)


@PLANS
def test_no_second_figure_is_given_where_more_may_have_been_released(plan: Plan) -> None:
    assert COMPLETED not in stated(plan, "interrupted", 2, known=False)
    assert COMPLETED not in stated(plan, "running", 2)


def test_without_noise_there_are_no_figures() -> None:
    bare = replace(CENTRAL, trust="none", mechanism=None, delta=None)
    assert both_figures(document(stated(bare, "interrupted", 2))["privacy"]) == []


def test_work_of_many_results_says_what_was_under_way() -> None:
    assert under_way("finished") == under_way("running") == []
    assert [len(under_way(status)) for status in BLINDLY] == [1, 1]
