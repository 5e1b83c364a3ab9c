"""`fedprivacy tune`: what is chosen, what it costs whom, and that a stored choice is accounted for again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dp_accounting import dp_event as dp

from clients.fleet import Fleet
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.documents.redaction import redact
from fedprivacy.errors import InputError, RunError, ScenarioError
from fedprivacy.guarantees.statement import printed
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import render
from fedprivacy.scenario.loading import load, loads
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.sections import StoppingTune
from fedprivacy.tuning.assumptions import TuningAssumption
from fedprivacy.tuning.ledgers import law_of
from fedprivacy.tuning.scores import NoisyScore
from fedprivacy.verification.verify import checked_document
from scenarios.authoring.catalogue import ready
from scenarios.cli.main import app
from scenarios.experiments.tuning import streams_of, tune
from scenarios.experiments.tuning_candidate import PublicSplit, by_clients

TEXT = """
name = "small"
seed = 3
[data]
name = "synthetic"
records = 3000
test_records = 50
features = 5
partition = "iid"
clients = 1200
public_fraction = 0.2
[model]
name = "logistic"
[training]
learning_rate = 1.0
[server]
rounds = 4
learning_rate = 1.0
[sampling]
name = "poisson"
rate = 0.5
[privacy]
trust = "central"
adjacency = "add-remove"
clipping_norm = 1.0
epsilon = 2.0
delta = 1e-5
[tune]
method = "random-stopping"
tries = 3.0
[tune.grid]
server.learning_rate = [0.5, 1.0]
privacy.clipping_norm = [1.0, 1e4]
"""
METHODS = ("random-stopping", "public", "exponential")


def scenario(*overrides: str) -> TuneScenario:
    found = loads(TEXT, overrides=overrides)
    assert isinstance(found, TuneScenario)
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    out = tmp_path_factory.mktemp("tuned")
    return {one: tune(scenario(f"tune.method={one}"), out, workers=1) for one in METHODS}


def of(document: dict[str, Any], part: str = "privacy") -> dict[str, float | None]:
    return {one["observer"]: one["epsilon"] for one in document[part]["guarantees"]}


def training() -> dp.DpEvent:
    return plan_of(scenario().candidate(0)).event()


@pytest.mark.exhaustive
def test_random_stopping_costs_an_outsider_one_event_and_bounds_nothing_for_who_is_sent_all(played) -> None:
    found = played["random-stopping"]
    once = dp.ComposedDpEvent([training(), dp.GaussianDpEvent(20.0)])
    wanted = epsilon(dp.RepeatAndSelectDpEvent(once, 3.0, 1.0), 1e-5, "add-remove").epsilon
    assert of(found) == {"server": None, "participant": None, "outsider": pytest.approx(wanted)}
    naive = epsilon(dp.SelfComposedDpEvent(once, 4), 1e-5, "add-remove").epsilon
    assert of(found, "naive") == {
        "server": None,
        "participant": pytest.approx(naive),
        "outsider": pytest.approx(naive),
    }


@pytest.mark.exhaustive
def test_the_exponential_mechanism_costs_its_epsilon_beside_the_training(played) -> None:
    choice = dp.ComposedDpEvent([PureDpEvent(0.5), training()])
    wanted = pytest.approx(epsilon(choice, 1e-5, "add-remove").epsilon)
    assert of(played["exponential"]) == {"server": None, "participant": wanted, "outsider": wanted}
    naive = pytest.approx(epsilon(dp.SelfComposedDpEvent(choice, 4), 1e-5, "add-remove").epsilon)
    assert of(played["exponential"], "naive")["outsider"] == naive


def test_a_choice_on_the_public_split_costs_the_training_alone(played) -> None:
    wanted = pytest.approx(epsilon(training(), 1e-5, "add-remove").epsilon)
    assert of(played["public"])["outsider"] == wanted
    assert of(played["public"], "naive")["outsider"] > 1.5 * of(played["public"])["outsider"]


@pytest.mark.parametrize("method", METHODS)
def test_a_clipping_norm_that_drowns_all_in_noise_is_not_chosen(played, method: str) -> None:
    found = played[method]
    assert found["choice"]["settings"]["privacy.clipping_norm"] == 1.0
    assert found["choice"]["accuracy"] > 0.6
    weights = RunDirectory(Path(found["path"])).load_checkpoint().tensors["weights"]
    assert weights.shape == (12,)


def test_the_best_try_is_told_with_its_own_score_and_the_others_are_the_operators(played) -> None:
    found = played["random-stopping"]
    best = max(found["tries"], key=lambda one: one["score"])
    assert (found["choice"]["candidate"], found["choice"]["score"]) == (best["candidate"], best["score"])
    shown = redact(found, found["operator_only"])
    assert "tries" not in shown
    assert all(one["public_accuracy"] is None for one in shown["candidates"])
    assert "tries" not in redact(played["exponential"], played["exponential"]["operator_only"])
    page = render(found)
    assert "there is no bound" in " ".join(page.split()).replace("is no bound", "is no bound")
    for one in found["tries"]:
        if one != best:
            assert str(one["score"]) not in page


@pytest.mark.parametrize("other", ["tune.tries=4.0", "tune.score_noise=9.0", "tune.law=logarithmic"])
def test_two_choices_share_no_draws(other: str) -> None:
    first, second = scenario(), scenario(other)
    people = population(first.data)
    drawn = [streams_of(one, people, "").noise("tune/repetitions").random(20) for one in (first, second)]
    assert not np.isin(*drawn).any()


def test_each_try_has_noise_of_its_own_and_a_score_has_that_which_is_charged() -> None:
    asked = scenario()
    plan = plan_of(asked.candidate(3))
    one, again, other = (by_clients(asked, 3, seed, plan, False)["score"] for seed in (1, 1, 2))
    assert one == again != other
    loud = scenario("tune.score_noise=2000.0")
    scores = [by_clients(loud, 3, seed, plan, False)["score"] for seed in range(12)]
    assert 500 < np.std(scores) < 1700  # 1000 = 2000 times 1/2, and 12 draws


def full(fleet: Fleet, when: Callable[[int], bool]) -> torch.Tensor:
    """The records of a fleet, for which there is no room in tries of some seeds."""
    if when(fleet.streams.seed):
        raise MemoryError("no room")
    return torch.from_numpy(fleet.people.dataset.x)


def test_a_try_that_fails_is_the_worst_and_breaks_off_nothing(
    played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = played["random-stopping"]["choice"]["score"]
    at = [one["score"] for one in played["random-stopping"]["tries"]].index(best)
    streams = streams_of(scenario(), population(scenario().data), "")
    seed = int(streams.noise("tune/seed", member=at).integers(2**63))
    monkeypatch.setattr(Fleet, "inputs", lambda fleet, records: full(fleet, lambda other: other == seed))
    found = tune(scenario(), tmp_path, workers=1)
    others = [one for one in found["tries"] if one["score"] is not None]
    assert len(found["tries"]) == len(others) + 1
    assert "no room" in found["tries"][at]["failed"]
    assert found["choice"]["score"] == max(one["score"] for one in others)
    assert TuningAssumption.FAILS_LAST in found["ledger"]["claims"][-1]["assumptions"]
    assert "no room" not in json.dumps(redact(found, found["operator_only"]))
    assert checked_document(Path(found["path"]))["choice"] == found["choice"]


def test_a_poisson_number_of_tries_may_be_none_and_then_nothing_is_told(tmp_path: Path) -> None:
    def drawn(seed: int) -> TuneScenario:
        return scenario("tune.law=poisson", "tune.tries=1.0", f"seed={seed}")

    people = population(drawn(1).data)
    law = law_of(drawn(1).tune)  # type: ignore[arg-type]
    numbers = {
        seed: int(law.draw(streams_of(drawn(seed), people, "").noise("tune/repetitions")))
        for seed in range(9)
    }
    none = next(seed for seed, number in numbers.items() if number == 0)
    some = next(seed for seed, number in numbers.items() if number > 0)
    empty, full = (tune(drawn(seed), tmp_path, workers=2) for seed in (none, some))
    assert (empty["tries"], empty["choice"]["candidate"], empty["choice"]["score"]) == ([], None, None)
    assert not (Path(empty["path"]) / "checkpoint").exists()
    assert "Nothing was chosen: the Poisson number of tries was 0" in render(empty)
    assert "Poisson" in render(full)
    for found in (empty, full):
        assert checked_document(Path(found["path"]))["choice"] == found["choice"]
    assert empty["privacy"]["guarantees"][0]["epsilon"] == full["privacy"]["guarantees"][0]["epsilon"]
    claim = next(one for one in full["ledger"]["claims"] if one["event"] is not None)
    once = claim["event"]["event"]
    oracle = dp.RepeatAndSelectDpEvent(from_json(once), 1.0, np.inf)
    told = next(one for one in full["privacy"]["guarantees"] if one["observer"] == claim["observer"])
    assert told["epsilon"] == pytest.approx(epsilon(oracle, 1e-5, "add-remove").epsilon)


def nobody_chosen(document: dict[str, Any]) -> None:
    document["choice"] |= {"candidate": None, "settings": {}}


def nobody_tried(document: dict[str, Any]) -> None:
    document["choice"] |= {"candidate": None, "settings": {}, "accuracy": None, "score": None}
    document["tries"] = []


def another_chosen(document: dict[str, Any]) -> None:
    document["choice"]["candidate"] = (document["choice"]["candidate"] + 1) % 4


def test_where_every_try_fails_there_is_no_best_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "inputs", lambda fleet, records: full(fleet, lambda other: True))
    with pytest.raises(RunError, match="every try failed: there is no best one") as told:
        tune(scenario(), tmp_path, workers=1)
    assert not any(letter.isdigit() for letter in str(told.value))  # nor how many there were


def test_the_public_split_is_dealt_apart_with_the_noise_of_the_real_run() -> None:
    people = population(scenario().data)
    split = PublicSplit.of(people, 0)
    own = set(split.people.partition.order.tolist())
    assert own <= set(people.partition.public.tolist())
    assert not own & set(people.partition.order.tolist())
    assert len(own) + len(split.y) == len(people.partition.public)
    plan = plan_of(scenario().candidate(0))
    small = split.plan(plan)

    def noise(p):
        return p.noise_multiplier / p.sampler.expected_cohort(p.population)

    assert noise(small) == pytest.approx(noise(plan))
    kept_apart = "sampling={name='separated', cohort=200, separation=2}"
    apart = scenario(kept_apart, "privacy.adjacency=zero-out", "privacy.bands=2")
    plan = plan_of(apart.candidate(0))
    small = split.plan(plan)
    assert (small.separation, small.banded.bands) == (2, 2)
    assert 2 * small.sampler.cohort <= small.population < plan.population
    assert noise(small) == pytest.approx(noise(plan), rel=0.1)  # cohorts are whole numbers


@pytest.mark.exhaustive
def test_workers_change_nothing_and_work_that_broke_off_goes_on(
    played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import scenarios.experiments.tuning as module

    found = played["random-stopping"]
    two = tune(scenario(), tmp_path, workers=2)
    for key in ("choice", "tries", "ledger", "privacy", "naive"):
        assert two[key] == found[key]

    def broken(label: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(scenario(), tmp_path / "again", workers=1, on_run=broken)
    (folder,) = (tmp_path / "again").iterdir()
    assert not (folder / "run.json").exists()
    assert len(list((folder / "cells").iterdir())) == 1
    played_again: list[str] = []
    resumed = tune(
        scenario(), tmp_path, workers=1, resume=folder, on_run=lambda *told: played_again.append(told[0])
    )
    assert resumed["choice"] == found["choice"]
    monkeypatch.setattr(module, "_work", None)  # what has finished is left as it is
    assert tune(scenario(), tmp_path, workers=1, resume=folder)["choice"] == found["choice"]


def lower_mean(document: dict[str, Any]) -> None:
    for claim in document["ledger"]["claims"]:
        if claim["event"] is not None:
            claim["event"]["mean"] = 1.0


def lower_epsilon(document: dict[str, Any]) -> None:
    for one in document["privacy"]["guarantees"]:
        if one["epsilon"] is not None:
            one["epsilon"] /= 2


def another_tune(document: dict[str, Any]) -> None:
    document["scenario"]["tune"]["tries"] = 50.0


def naive_higher(document: dict[str, Any]) -> None:
    for one in document["naive"]["guarantees"]:
        if one["epsilon"] is not None:
            one["epsilon"] *= 3


def no_candidate(document: dict[str, Any]) -> None:
    document["choice"]["candidate"] = 99


@pytest.mark.parametrize(
    "change",
    [
        lower_mean,
        lower_epsilon,
        another_tune,
        naive_higher,
        no_candidate,
        nobody_chosen,
        nobody_tried,
        another_chosen,
    ],
)
def test_a_record_that_was_changed_is_not_shown(
    played, tmp_path: Path, change: Callable[[Any], None]
) -> None:
    document = json.loads(json.dumps(played["random-stopping"]))
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert checked_document(tmp_path)["choice"] == document["choice"]
    change(document)
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"again"):
        checked_document(tmp_path)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["privacy.trust=none"], "central trust"),
        (["tune.method=public", "data.public_fraction=0.0"], "there is none"),
        (["tune.grid.privacy={epsilon=[1.0, 2.0]}"], "the same for all candidates"),
        (["tune.grid.server={rounds=[0, 5]}"], "server.rounds"),
        (["tune.method=guess"], "method"),
        (["tune.tries=0.0"], "tries"),
    ],
)
def test_mistakes_are_named(overrides: list[str], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        scenario(*overrides)


def test_what_cannot_be_accounted_for_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    costs = scenario("tune.grid.server={rounds=[2, 4]}")
    with pytest.raises(InputError, match="releases something else"):
        tune(costs, tmp_path / "out", workers=1)
    with pytest.raises(InputError, match=r"No accountant|use"):
        tune(scenario("privacy.adjacency=replace-one"), tmp_path / "out", workers=1)
    small = scenario("tune.method=public", "data.public_fraction=0.01")
    with pytest.raises(InputError, match="public_fraction"):
        tune(small, tmp_path / "out", workers=1)
    far = scenario(
        "tune={method='public', grid={server={learning_rate=[0.1, 0.2]}}}", "privacy.adjacency=zero-out",
        "sampling={name='separated', cohort=2, separation=300}",
    )  # fmt: skip
    with pytest.raises(InputError, match=r"sampling.separation = 300.*cannot come so far apart"):
        tune(far, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    app(
        ["tune", str(file), "--verbose", "--out", str(tmp_path / "out"), "--workers", "1"],
        standalone_mode=False,
    )
    said = capsys.readouterr().out
    for part in (
        "Chosen, one of 4 candidates",
        "naive",
        "outsider",
        "no bound",
        "only the best try is shown",
    ):
        assert part in said
    [folder] = (tmp_path / "out").iterdir()
    app(["show", str(folder)], standalone_mode=False)
    result, server, participant, outsider, terms, last = capsys.readouterr().out.splitlines()
    assert ": chose " in result
    assert "no guarantee" in server
    assert "no guarantee (is sent the models of all tries); all candidates released: " in participant
    assert outsider.startswith("outsider: epsilon = ")
    assert "delta = 1e-05, unit client, add-remove" in terms
    assert last == f"report: {folder}/report.html"
    with pytest.raises(InputError, match="fedprivacy tune"):
        app(["run", str(file), "--out", str(tmp_path)], standalone_mode=False)
    with pytest.raises(InputError, match=r"has no \[tune\]"):
        app(["tune", "digits", "--out", str(tmp_path)], standalone_mode=False)


def test_the_ready_one_saves_something() -> None:
    found = load(ready()["tuned"])
    assert isinstance(found, TuneScenario)
    assert len(found.settings) == 12
    assert loads(found.to_toml()) == found


def test_the_docs_say_what_each_law_costs_and_finds() -> None:
    asked = load(ready()["tuned"])
    assert isinstance(asked, TuneScenario)
    assert isinstance(asked.tune, StoppingTune)
    plan = plan_of(asked.candidate(0))
    page = (Path(__file__).parents[3] / "docs" / "tuning.md").read_text()
    once = dp.ComposedDpEvent([plan.event(), NoisyScore(asked.tune.score_noise).event()])
    for tries in (3.0, asked.tune.tries):
        cells = []
        for law in ("logarithmic", "geometric", "poisson"):
            of = law_of(asked.tune.model_copy(update={"law": law, "tries": tries}))
            spent = printed(epsilon(of.event(once), 1e-5, "add-remove").epsilon, 3)
            cells.append(f"{spent}, {of.chance_of_the_best(len(asked.settings)):.2f}")
        assert f"| {tries:g} | {' | '.join(cells)} |" in page
