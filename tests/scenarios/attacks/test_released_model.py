"""Attacks on the released model of a federated run: what they know, what they cost, what is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.metrics import measure
from fedprivacy.attacks.released.attack import Method, Released
from fedprivacy.attacks.released.battery import ATTACKS
from fedprivacy.errors import ScenarioError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import branches_of
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.reference_models import training_of
from scenarios.attacks.released_model import attack_released_model
from scenarios.attacks.replay import replay

TEXT = """name = "outside"
seed = 1
[data]
name = "purchase-like"
records = 480
test_records = 200
features = 60
classes = 4
flip = 0.4
partition = "iid"
clients = 3
public_fraction = 0.4
[model]
name = "mlp"
hidden = [16]
activation = "tanh"
[training]
learning_rate = 0.2
batch_size = 8
[server]
rounds = 12
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 110
nonmembers = 110
[attacks.references]
kind = "released"
methods = ["rmia", "lira", "loss"]
[attacks.passive]
kind = "passive"
rounds = 2
[attacks.networks]
kind = "released"
methods = ["network-gradients"]
"""
PRIVATE = (
    'privacy={trust="local", clipping_norm=1.0, epsilon=2.0, delta=1e-4}',
    'attacks={references={kind="released", methods=["lira-global", "loss"], references=8}}',
    "server.rounds=2",
)


def scenario(*overrides: str) -> AttackScenario:
    found = loads(TEXT, overrides=overrides)
    assert isinstance(found, AttackScenario)
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> dict:
    return replay(scenario(), tmp_path_factory.mktemp("out"), workers=1)


def test_a_scenario_names_every_method_of_the_library() -> None:
    assert get_args(Method) == ATTACKS


@pytest.mark.exhaustive
def test_the_document_says_what_an_outsider_found_beside_its_guarantee(played) -> None:
    told = {attack["name"]: attack for attack in played["attacks"]}
    assert list(told) == ["references", "passive", "networks"]
    for name, methods in (("references", {"lira", "rmia", "loss"}), ("networks", {"network-gradients"})):
        one = told[name]
        assert (one["attack"], one["seat"], one["guarantee"]["observer"]) == (
            "released",
            "outsider",
            "outsider",
        )
        assert (one["rounds"], one["isolating"], one["targets_per_round"]) == (None, False, None)
        # What networks learned from memberships makes no clusters that know none.
        made = {"supervised", *({"clustered"} if name == "references" else ())}
        assert set(one["scores"]) == methods | made
        assert one["score"][0] in methods
        assert (one["members"], one["nonmembers"], one["targets_lost"]) == (110, 110, 0)
        accuracy = one["model_accuracy"]
        assert accuracy["train"] > accuracy["before"] + 0.1
        assert accuracy["before"] == accuracy["after"]
        assert one["blind"]["low"] < 0.5 < one["blind"]["high"]
    best = max(told["references"]["scores"][name]["low"] for name in ("lira", "rmia"))
    assert best > 0.55
    assert "train" not in told["passive"]["model_accuracy"]
    assert any("neither whose a record is nor who is a member" in note for note in played["notes"])


def test_who_is_exposed_is_told_by_number_and_to_the_operator_alone(played) -> None:
    [exposed] = played["exposures"]
    assert "exposures" in played["operator_only"]
    assert (exposed["attack"], exposed["method"], exposed["models"]) == ("references", "lira", 32)
    assert (exposed["records"], set(exposed["classes"])) == (480, {"0", "1", "2", "3"})
    numbers = [one["record"] for one in exposed["most_exposed"]]
    assert len(set(numbers)) == 200
    assert max(numbers) < 480
    assert set(exposed["most_exposed"][0]) == {
        "record", "advantage", "rate", "hits", "models", "alarms", "others",
    }  # fmt: skip
    lows = [one["advantage"]["low"] for one in exposed["most_exposed"]]
    assert lows == sorted(lows, reverse=True)


def test_who_asks_nobody_spends_nothing(played) -> None:
    """Also where clients have no answer left."""
    account = json.loads((Path(played["path"]) / "run-1" / "spent.json").read_text())
    assert [row["key"] for row in account] == ["passive-server/2"]


def test_attacks_with_the_same_references_share_them() -> None:
    attacks = scenario().attacks
    assert [branch.names for branch in branches_of(attacks, 220)] == [
        ("references", "networks"),
        ("passive",),
    ]
    assert [(branch.silent, branch.active) for branch in branches_of(attacks, 220)] == [
        (True, False), (False, False),
    ]  # fmt: skip
    other = {**attacks, "networks": attacks["networks"].model_copy(update={"references": 16})}
    assert [branch.names for branch in branches_of(other, 220)] == [
        ("references",), ("passive",), ("networks",),
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_a_stored_run_is_attacked_again_and_by_new_attacks(played, tmp_path) -> None:
    stored = Path(played["path"])
    new = Released(kind="released", methods=("loss",), references=8)
    attacks = {"networks": scenario().attacks["networks"], "new": new}
    again = replay(scenario().model_copy(update={"attacks": attacks}), tmp_path, workers=1, stored=stored)
    first = next(one for one in played["attacks"] if one["name"] == "networks")
    assert {**again["attacks"][0], "seconds": 0} == {**first, "seconds": 0}
    assert again["attacks"][1]["scores"].keys() == {"loss", "supervised", "clustered"}
    assert "exposures" not in again


@pytest.mark.exhaustive
def test_an_outsider_is_held_against_its_bound_when_the_noise_is_used_up(tmp_path) -> None:
    """All answers of the clients are given in training: what only looks needs none."""
    document = replay(scenario(*PRIVATE), tmp_path, workers=1)
    [attack] = document["attacks"]
    assert attack["bound"] == bound_of_ledger(document["ledgers"][0], "outsider").to_json()
    assert attack["bound"]["auc"] < 1
    assert attack["guarantee"]["epsilon"] <= 2.0
    assert document["verdict"]["holds"] is True
    assert checked_document(Path(document["path"]))["attacks"] == json.loads(json.dumps([attack]))
    passive = 'attacks={look={kind="passive", rounds=1}}'
    with pytest.raises(ScenarioError, match="every one of them would refuse"):
        scenario(PRIVATE[0], passive, PRIVATE[2])


@pytest.mark.exhaustive
def test_no_membership_of_a_fold_is_read_to_score_it() -> None:
    few = (
        'attacks={one={kind="released", methods=["lira", "network-outputs", "loss-by-class"], references=8}}'
    )
    asked = scenario(few, "server.rounds=2")
    setup = GameSetup(asked)
    tensors = setup.warm_up()
    [branch] = branches_of(asked.attacks, 220)
    clean = attack_released_model(asked, setup, branch, tensors)["one"]
    there = setup.game.folds == 3
    setup.game = replace(setup.game, members=setup.game.members ^ there)
    wrong = attack_released_model(asked, setup, branch, tensors)["one"]
    assert clean.score[3] == wrong.score[3]
    for before, after in ((clean.chosen, wrong.chosen), (clean.supervised, wrong.supervised)):
        assert np.array_equal(before.held_out[there], after.held_out[there])
        assert measure(before).thresholds[3] == measure(after).thresholds[3]
    assert clean.exposure == wrong.exposure


def test_references_take_the_steps_that_all_clients_take_together() -> None:
    asked = scenario()
    attack = asked.attacks["references"]
    assert isinstance(attack, Released)
    batches = training_of(asked, attack, 96.0, asked.warm_up).batches
    assert (batches.epochs, batches.batch_size) == (12, 24)
    whole = training_of(scenario('training.batch_size="all"'), attack, 96.0, asked.warm_up).batches
    assert whole.batch_size == 288
    poisson = scenario('training={batches="poisson", steps=6, batch_size=16, learning_rate=0.2}')
    batches = training_of(poisson, attack, 96.0, asked.warm_up).batches
    assert (batches.epochs, batches.batch_size) == (12, 48)
    given = attack.model_copy(update={"epochs": 3, "batch_size": 10})
    assert training_of(poisson, given, 96.0, asked.warm_up).batches.epochs == 3


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('attacks.references.seat="server"', "outsider"),
        ('attacks.references.methods=["lyra"]', "attacks.references.methods"),
        ("attacks.references.methods=[]", "attacks.references.methods"),
        ("attacks.references.references=4", "attacks.references.references"),
        ("attacks.references.isolating=true", "isolating"),
    ],
)
def test_what_an_outsider_cannot_have_is_refused(override: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario(override)


@pytest.mark.parametrize(
    "changes",
    [
        ["privacy.clipping_layers=equal"],
        ["privacy.clipping_quantile=0.5", "privacy.clipping_count_noise=50.0"],
        ["privacy.encoding=signs"],
    ],
)
def test_a_released_model_is_attacked_however_the_updates_are_clipped(
    tmp_path: Path, changes: list[str]
) -> None:
    central = (
        'privacy={trust="central", clipping_norm=1.0, epsilon=5.0, delta=1e-3}',
        'attacks={one={kind="released", methods=["loss"], references=8}}',
        "server.rounds=2",
        "data.records=120",
        "data.test_records=60",
        "game.members=10",
        "game.nonmembers=10",
        "game.clipped=true",
        "game.unprotected=true",
    )
    document = replay(scenario(*central, *changes), tmp_path, workers=1, report=False)
    assert checked_document(Path(document["path"])) == document
    assert len(document["attacks"]) == 3
    assert any("a participant receives the model of every round" in note for note in document["notes"])
    with pytest.raises(ScenarioError, match="attacks on messages know answers"):
        scenario(*central, *changes, 'attacks.passive={kind="passive", rounds=1}')
