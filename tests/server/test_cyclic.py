"""Clients in groups of which one a round is sampled, with noise of as many bands, through the real apps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import RunError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import write
from fedprivacy.sampling.cohorts import CyclicPoissonSampling
from fedprivacy.verification.verify import checked_document
from scenarios.engines.launch import Engine
from scenarios.runner import resume, run

CYCLIC = ("sampling={name='cyclic-poisson', rate=0.25}", "privacy.bands=3", "server.rounds=10")
ZEROED = (*CYCLIC, "privacy.adjacency=zero-out")


def test_a_client_comes_in_rounds_of_its_group_alone(make_scenario, trial) -> None:
    played = trial(make_scenario(*CYCLIC))
    plan = played.fleet.plan
    assert isinstance(plan.sampler, CyclicPoissonSampling)
    came = np.zeros((10, plan.population), dtype=bool)
    for number in range(10):
        cohort, _ = played.federation.round(number)
        came[number, cohort] = True
        assert set(cohort) <= set(plan.sampler.members(plan.population, number))
    assert came.any(axis=0).sum() > 6
    assert played.federation.denominator == pytest.approx(0.25 * plan.population)


def test_the_ledger_refuses_a_client_of_another_group_and_charges_nobody(make_scenario) -> None:
    plan = plan_of(make_scenario(*CYCLIC))
    ledger, members = Ledger(plan), plan.sampler.members(plan.population, 0)
    outside = np.setdiff1d(np.arange(plan.population), members)
    with pytest.raises(RunError, match="not in the group of this round"):
        ledger.request(np.sort(np.append(members[:1], outside[0])))
    ledger.request(members)
    ledger.release(members, len(members))
    with pytest.raises(RunError, match="round 1: client"):
        ledger.request(members[:1])


def test_each_round_is_charged_for_its_groups_and_the_cohort_has_to_stay_secret(make_scenario) -> None:
    plan = plan_of(make_scenario(*ZEROED, "privacy.epsilon=2"))
    ledger = Ledger(plan)
    for number in range(10):
        ledger.rounds = number
        (event,) = {json.dumps(claim["event"]) for claim in ledger.to_json()["claims"][1:]}
        assert json.loads(event)["count"] == -(-number // 3)
        assert json.loads(event)["event"]["sampling_probability"] == pytest.approx(0.75)
    ledger.rounds = 10
    stated = {each.observer: each for each in guarantees(ledger.to_json())}
    assert stated["server"].epsilon is None
    for observer in ("participant", "outsider"):
        one = stated[observer]
        assert one.epsilon == pytest.approx(2, rel=1e-3)
        assert "the cohort of each round stays secret" in one.assumptions
        assert "at rate 0.75 within the group, so at most 4 times in all" in one.words
        for text in ("group depends on no records", "noise of past rounds"):
            assert any(text in assumption for assumption in one.assumptions)


def test_a_client_refuses_other_groups_and_a_seed_changes_none(make_scenario) -> None:
    plan = plan_of(make_scenario(*CYCLIC))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    other = plan_of(make_scenario(*CYCLIC, "sampling.rate=0.2", "privacy.bands=4"))
    assert "sampler" in str(plan.refusal(other))
    assert plan.refusal(plan_of(make_scenario(*CYCLIC, "seed=4"))) is None


def test_without_privacy_the_same_sampling_is_poisson(make_scenario) -> None:
    plan = plan_of(make_scenario("sampling={name='cyclic-poisson', rate=0.25}", "privacy={trust='none'}"))
    assert plan.sampler.words == "Poisson sampling at rate 0.25"


def test_another_sampler_takes_the_bands_along(make_scenario, base_text) -> None:
    text = make_scenario(*CYCLIC).to_toml()
    assert make_scenario("sampling={name='poisson', rate=0.2}", text=text).privacy.bands is None
    assert make_scenario("sampling.rate=0.1", text=text).privacy.bands == 3


@pytest.mark.exhaustive
def test_a_resumed_run_draws_as_if_it_had_never_stopped(make_scenario, tmp_path: Path) -> None:
    asked = make_scenario(*ZEROED, "privacy.epsilon=8", "privacy.bands=auto", "federation.hosts=2")
    whole = run(asked, tmp_path, report=False)

    def stop(event: dict) -> None:
        if event["round"] == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "broken", on_round=stop)
    (path,) = (tmp_path / "broken").iterdir()
    resumed = resume(path, engine=Engine(workers=2))
    ends = [RunDirectory(Path(one["path"])).load_checkpoint().tensors for one in (whole, resumed)]
    assert np.array_equal(ends[0]["weights"], ends[1]["weights"])
    assert resumed["ledger"] == whole["ledger"]
    assert checked_document(path)["privacy"]["mechanism"] == "banded-gaussian"
    assert "each client of the group by its own coin" in write(resumed, path).read_text()
