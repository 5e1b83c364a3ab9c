"""A study of private estimates as a plan of an account."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest

from fedprivacy.account.policy import Policy
from fedprivacy.accounting.events import from_json
from fedprivacy.accounting.renyi import renyi_divergence
from fedprivacy.erm.study.approaches import approach_of, cells_of, objective_of
from fedprivacy.erm.study.claims import cell_claims
from fedprivacy.errors import InputError
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import find
from scenarios.budgets.planned_work import planned

POLICY = Policy.of_options(8.0, 1e-5, "example", "replace-one")
KEY = "0" * 32
SMALL = ("study.records=[200]", "study.epsilons=[0.25, 0.5]", "study.repeats=3")


def study(*approaches: str) -> ErmScenario:
    scenario = cast(ErmScenario, load(find("private-erm"), SMALL))
    return scenario.model_copy(
        update={"approaches": {name: scenario.approaches[name] for name in approaches}}
    )


def claims(*approaches: str) -> dict[str, Any]:
    return cast(dict[str, Any], planned(study(*approaches)).part(POLICY, KEY)["claims"])


def test_each_estimate_of_each_cell_is_charged() -> None:
    scenario = study("output", "output-gaussian", "objective", "grid")
    order = POLICY.filters["outsider"].order
    events = []
    for cell in cells_of(scenario):
        event = approach_of(scenario, objective_of(scenario, cell.records), cell).event()
        assert event is not None
        events.append(event)
    expected = 3 * math.fsum(renyi_divergence(event, order, "replace-one") for event in events)
    part = planned(scenario).part(POLICY, KEY)
    assert part["rounds"] == 3 * len(events) == 24
    for observer in ("participant", "outsider"):
        assert part["claims"][observer]["cost"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("trust", ["local", "central"])
def test_silos_that_do_not_answer_are_charged_for(trust: str) -> None:
    scenario = study("silos-gradient")
    section = scenario.approaches["silos-gradient"].model_copy(update={"trust": trust})
    scenario = scenario.model_copy(update={"approaches": {"silos-gradient": section}})
    charged = planned(scenario).part(POLICY, KEY)["claims"]
    order = POLICY.filters["outsider"].order
    for present in (1, 2, 5, 10):
        costs = {"participant": 0.0, "outsider": 0.0}
        for cell in cells_of(scenario):
            stated = cell_claims(scenario, cell, None, present=present, absent=10 - present, away=0.0)
            for claim in stated["claims"]:
                if claim["observer"] in costs:
                    divergence = renyi_divergence(from_json(claim["event"]), order, "replace-one")
                    costs[claim["observer"]] += scenario.study.repeats * divergence
        for observer, cost in costs.items():
            assert charged[observer]["cost"] >= cost * (1 - 1e-12)


def test_trusts_of_all_approaches_are_stated() -> None:
    part = planned(study("output", "silos-gradient")).part(POLICY, KEY)
    assert part["trust"] == "central and local"


def test_fewer_repeats_are_the_smaller_plan() -> None:
    work = planned(study("output", "grid"))
    assert work.first is not None
    fewer, whole = work.part(POLICY, KEY, work.first(1)), work.part(POLICY, KEY)
    cost = whole["claims"]["outsider"]["cost"]
    assert fewer["claims"]["outsider"]["cost"] == pytest.approx(cost / 3, rel=1e-12)
    assert work.settings(2) == ": --set study.repeats=2"
    load(find("private-erm"), [*SMALL, f"study.repeats={work.least}"])
    with pytest.raises(InputError, match="must be at least"):
        load(find("private-erm"), [*SMALL, f"study.repeats={work.least - 1}"])
    assert "study.epsilons" in work.remedy


def test_an_epsilon_at_one_delta_alone_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"approaches\.objective-gaussian: its epsilon is known at its delta"
    ):
        claims("output", "objective-gaussian")


def test_nothing_is_claimed_against_the_server() -> None:
    policy = Policy.of_options(8.0, 1e-5, "example", "replace-one", ["server"])
    with pytest.raises(InputError, match="computes the exact minimum"):
        planned(study("silos-gradient")).part(policy, KEY)


def test_events_are_read_back() -> None:
    (event,) = claims("output")["outsider"]["events"]
    assert renyi_divergence(from_json(event), 2.0, "replace-one") > 0
