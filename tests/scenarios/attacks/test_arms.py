"""A game in several arms from end to end: the document, resuming, and records that were changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.targets import FOLDS
from fedprivacy.documents.attack import SEES_LESS
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks import accuracy
from scenarios.attacks.replay import replay
from scenarios.cli.scenario_argument import attack_scenario

TEXT = """name = "armed"
seed = 1
[data]
name = "purchase-like"
records = 300
test_records = 60
features = 40
classes = 4
partition = "iid"
clients = 3
public_fraction = 0.4
[model]
name = "logistic"
[training]
learning_rate = 0.3
batch_size = 16
[server]
rounds = 12
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 40
nonmembers = 50
warm_up = 3
repeats = 2
epsilons = [1.0]
[attacks.look]
kind = "passive"
rounds = 2
[attacks.inside]
kind = "passive"
seat = "participant"
rounds = 2
[attacks.outside]
kind = "released"
methods = ["loss"]
references = 8
[arms.bare]
[arms.central]
privacy.trust = "central"
privacy.clipping_norm = 1.0
privacy.delta = 1e-3
server.optimizer = "momentum"
"""


def scenario() -> AttackScenario:
    found = loads(TEXT)
    assert isinstance(found, AttackScenario)
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> dict:
    return replay(scenario(), tmp_path_factory.mktemp("out"), workers=1)


@pytest.mark.exhaustive
def test_every_arm_has_its_accuracies_its_guarantees_and_what_was_left_out(played) -> None:
    arms = played["arms"]
    assert [(one["arm"], one["epsilon"]) for one in arms] == [("bare", None), ("central", 1.0)]
    assert [one["trust"] for one in arms] == ["none", "central"]
    for one in arms:
        for kind in ("train", "test"):
            values = one["accuracies"][kind]
            assert len(values) == one["seeds"] == 2
            assert one["accuracy"][kind]["mean"] == pytest.approx(np.mean(values))
        assert set(one["skipped"]) == (set() if one["arm"] == "bare" else {"inside"})
        held = {promise["observer"]: promise["epsilon"] for promise in one["guarantees"]}
        # The server adds the noise: nothing holds against it.
        assert held["server"] is None
        if one["epsilon"] is None:
            assert set(held.values()) == {None}
        else:
            assert 0.99 * one["epsilon"] < held["outsider"] <= one["epsilon"]
    bare, strict = (one["accuracy"]["test"]["mean"] for one in arms)
    assert bare > strict


def test_an_attack_stands_once_for_each_arm_and_epsilon_with_the_bound_of_its_seat_there(played) -> None:
    told = [(one["arm"], one["epsilon"], one["name"]) for one in played["attacks"]]
    assert told == [
        ("bare", None, "look"), ("bare", None, "inside"), ("bare", None, "outside"),
        ("central", 1.0, "look"), ("central", 1.0, "outside"),
    ]  # fmt: skip
    for one in played["attacks"]:
        assert one["bound"] == bound_of_ledger(played["ledgers"][one["ledger"]], one["seat"]).to_json()
        assert (one["bound"]["auc"] is None) == (one["arm"] == "bare" or one["seat"] == "server")
        learned = one["supervised"]
        assert learned["auc"]["value"] == pytest.approx(one["scores"]["supervised"]["value"])
    verdict = played["verdict"]
    assert verdict["checked"] == ["outside (central, epsilon 1)"]
    # What is learned of all scores may be told as the strongest, and is held against the bound too.
    [outside] = [one for one in played["attacks"] if one["bound"]["auc"] is not None]
    assert verdict["checks"] == 2 * len(outside["points"])


def test_the_strongest_attack_of_a_seat_is_chosen_among_those_that_it_can_run(played) -> None:
    for arm in played["arms"]:
        for seat, visible in SEES_LESS.items():
            best = arm["strongest"][seat]
            assert sum(one["folds"] for one in best["attacks"]) == FOLDS
            assert {one["seat"] for one in best["attacks"]} <= set(visible)
            assert best["auc"]["low"] <= best["auc"]["value"] <= best["auc"]["high"]
            assert best["auc"]["covers"] == "training seeds too"
    # One attack from an outsider's seat: by its scores, or by what is learned of them.
    [outside] = [one for one in played["attacks"] if (one["name"], one["arm"]) == ("outside", "bare")]
    best = played["arms"][0]["strongest"]["outsider"]
    assert {one["name"] for one in best["attacks"]} == {"outside"}
    if not any(one["supervised"] for one in best["attacks"]):
        assert best["auc"] == outside["auc"]


def test_the_accuracy_of_a_released_model_is_that_of_its_arm(played) -> None:
    for one in played["attacks"]:
        if one["name"] == "outside":
            arm = played["arms"][one["ledger"]]
            assert one["model_accuracy"]["train"] == pytest.approx(arm["accuracy"]["train"]["mean"])
            assert one["model_accuracy"]["before"] == pytest.approx(arm["accuracy"]["test"]["mean"])


def test_accuracy_in_training_is_marked_as_the_operators(played) -> None:
    assert {"arms[].accuracy.train", "arms[].accuracies.train"} <= set(played["operator_only"])


def test_what_was_measured_is_not_measured_again(played, monkeypatch) -> None:
    """Broken off after the arms were measured, and gone on with."""
    path = Path(played["path"])
    text = (path / "run.json").read_text()
    (path / "run.json").unlink()

    def refuse(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(accuracy, "measure", refuse)
    monkeypatch.setattr("scenarios.attacks.replay.measure", refuse)
    again = replay(scenario(), path.parent, workers=1, resume=path)
    (path / "run.json").write_text(text)
    assert (again["arms"], again["verdict"]) == (played["arms"], played["verdict"])


def test_a_measurement_that_is_none_is_refused() -> None:
    for bad in ({}, {"train": 0.5}, {"train": 0.5, "test": "x"}, {"train": 2.0, "test": 0.5}, None):
        with pytest.raises(InputError, match="not one"):
            accuracy.accuracy(bad)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["arms"][1].update(epsilon=0.5), "epsilon: says"),
        (lambda d: d["arms"][1].update(trust="local"), "trust: says"),
        (lambda d: d["arms"][1].update(arm="bare"), "arm: says"),
        (lambda d: d["arms"][1]["guarantees"][2].update(epsilon=0.1), "epsilon: says"),
        (lambda d: d["arms"][1]["bounds"]["outsider"].update(auc=0.5), "bounds.outsider.auc: says"),
        (lambda d: d["attacks"][3].update(arm="bare"), "arm: says"),
        (lambda d: d["attacks"][3].update(arm="unheard-of"), "arm: says"),
        (lambda d: d["attacks"][3].update(epsilon=5.0), "epsilon: says"),
    ],
)
def test_a_changed_arm_is_refused(played, tmp_path, change, said: str) -> None:
    document = copy.deepcopy(played)
    change(document)
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said):
        checked_document(tmp_path)


def test_an_unchanged_one_is_not(played) -> None:
    assert checked_document(Path(played["path"]))["arms"] == json.loads(json.dumps(played["arms"]))


@pytest.mark.exhaustive
def test_a_stored_game_in_arms_is_attacked_again_by_some_of_its_attacks_with_the_same_scores(
    played, tmp_path
) -> None:
    requested, stored = attack_scenario(played["path"], None, ["inside", "look"], None)
    assert stored is not None
    again = replay(requested, tmp_path, workers=1, stored=stored)
    kept = [one for one in played["attacks"] if one["name"] != "outside"]
    assert [{**one, "seconds": 0} for one in again["attacks"]] == [{**one, "seconds": 0} for one in kept]
    # The strongest is that of the attacks that were run; none of these is from an outsider's seat.
    assert [{**one, "strongest": {}} for one in again["arms"]] == [
        {**one, "strongest": {}} for one in played["arms"]
    ]
    assert [set(one["strongest"]) for one in again["arms"]] == [{"server", "participant"}, {"server"}]
    assert checked_document(Path(again["path"]))["arms"]
