"""Reconstruction in a scenario, through the clients' own code: rebuilt pictures, noise, seats and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.fleet import Fleet
from clients.request_validation import vet
from fedprivacy.attacks.reconstruction.analytic import FirstLayer
from fedprivacy.attacks.reconstruction.imprint import imprinted, quantiles
from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError, Refusal
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.report import render
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.replay import replay
from scenarios.attacks.trial_runs import check_trials
from scenarios.attacks.victim import AttackedClient
from tests.imprint_module import ImprintModule

TEXT = """name = "rebuilt"
seed = 1
[data]
name = "digits"
partition = "iid"
clients = 8
public_fraction = 0.8
[model]
name = "mlp"
hidden = [64]
[training]
learning_rate = 1.0
batch_size = "all"
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
warm_up = 0
[attacks.one]
kind = "reconstruction"
"""
ANALYTIC = ('attacks.one.method="analytic"', "attacks.one.batch=1", "attacks.one.candidates=300")
IMPRINT = (
    *('attacks.one.method="imprint"', "attacks.one.batch=16", "attacks.one.candidates=500"),
    *("attacks.one.bins=64", "attacks.one.trials=300"),
)
INFORMED = (
    *('attacks.one.method="informed"', "attacks.one.batch=1", "attacks.one.candidates=10"),
    "attacks.one.trials=200",
)
CLIPPED = ("privacy.clipping_norm=0.5",)
LOCAL = (
    *('privacy.trust="local"', 'privacy.mechanism="gaussian"', 'privacy.adjacency="zero-out"'),
    *("privacy.clipping_norm=0.5", "privacy.delta=1e-5"),
)
REPLACED = ('privacy.adjacency="replace-one"',)


def scenario(*sets: str) -> AttackScenario:
    return AttackScenario.from_text(TEXT, "rebuilt.toml", sets)


def result(out: Path, *sets: str, report: bool = False) -> dict[str, Any]:
    document = replay(scenario(*sets), out, workers=1, report=report)
    assert checked_document(Path(document["path"]))["trials"] == document["trials"]
    return document


def trial(out: Path, *sets: str) -> dict[str, Any]:
    [single] = result(out, *sets)["trials"]
    return single


@pytest.mark.parametrize("privacy", [(), CLIPPED], ids=["none", "clipping alone"])
def test_records_alone_in_their_bin_are_rebuilt_from_a_clients_answer(tmp_path: Path, privacy: Any) -> None:
    """Of 64 bins and 16 records (63/64)^15 = 79 %; four standard deviations of 300 trials are 9 points."""
    measured = trial(tmp_path, *IMPRINT, *privacy)
    assert measured["success"]["value"] == pytest.approx((63 / 64) ** 15, abs=0.09)
    assert measured["chance"] == 0.128
    assert measured["bound"]["success"] is None
    assert measured["figures"]["rebuilt of records that were not there"]["value"] < 0.02
    decibels = measured["numbers"]
    assert decibels["median PSNR, dB"] > decibels["median PSNR of the nearest wrong picture, dB"] + 30


def test_one_record_is_rebuilt_exactly_and_noise_that_guarantees_nothing_hides_it(tmp_path: Path) -> None:
    assert trial(tmp_path / "plain", *ANALYTIC)["success"]["value"] == 1.0
    noisy = trial(tmp_path / "noisy", *ANALYTIC, *LOCAL, "privacy.noise_multiplier=0.1")
    assert noisy["success"]["value"] == 0.0
    assert noisy["bound"]["success"] == pytest.approx(1.0, abs=1e-6)
    assert noisy["guarantee"]["epsilon"] > 90


@pytest.mark.exhaustive
def test_a_record_beside_one_whose_label_alone_is_known_is_rebuilt_by_inverting(tmp_path: Path) -> None:
    search = ('attacks.one.method="inverting"', "attacks.one.search_steps=150")
    sizes = ("attacks.one.batch=2", "attacks.one.candidates=300", "attacks.one.trials=20")
    measured = trial(tmp_path, *search, *sizes)
    assert measured["success"]["value"] >= 0.6
    assert measured["chance"] == 2 / 300
    assert measured["figures"]["rebuilt of records that were not there"]["value"] == 0.0


def test_the_informed_attack_comes_near_its_bound_and_stays_below(tmp_path: Path) -> None:
    document = result(tmp_path, *INFORMED, *LOCAL, "privacy.epsilon=8.0")
    [measured] = document["trials"]
    assert measured["bound"]["success"] == pytest.approx(0.650, abs=1e-3)
    assert 0.4 < measured["success"]["value"] < 0.65
    assert document["verdict"]["holds"] is True
    assert measured["success"]["low"] > measured["chance"] == 0.1


def test_another_client_picks_the_record_out_of_the_noisy_sum(tmp_path: Path) -> None:
    central = ('privacy.trust="central"', *LOCAL[2:], "privacy.epsilon=8.0")
    measured = trial(tmp_path, *INFORMED, *central, 'attacks.one.seat="participant"')
    assert measured["bound"]["success"] == pytest.approx(0.650, abs=1e-3)
    assert 0.4 < measured["success"]["value"] < 0.65
    server = trial(tmp_path / "server", *INFORMED, *central)
    assert server["success"]["value"] == 1.0
    assert server["bound"]["success"] is None


def test_a_server_that_sees_the_sum_alone_finds_few_alone_in_their_bin(tmp_path: Path) -> None:
    """With 7 clients of 35 or 36 more records: (63/64)^(15 + 7 * 36) = 1.5 %."""
    measured = trial(tmp_path / "sum", *IMPRINT, 'attacks.one.sees="sum"')
    assert 0 < measured["success"]["value"] < 0.06
    noisy = trial(
        tmp_path / "noisy", *IMPRINT, *LOCAL, "privacy.noise_multiplier=0.1", 'attacks.one.sees="sum"'
    )
    assert noisy["success"]["value"] == 0.0


def test_noise_of_a_sum_is_that_of_all_clients_and_fresh_each_time() -> None:
    """Of 2 x 4810 draws the deviation errs by .7 %; five of these."""
    setup = GameSetup(scenario(*ANALYTIC, *LOCAL, "privacy.noise_multiplier=2.0"))
    weights = np.zeros(4810, np.float32)
    worlds = [setup.game.people.partition.records(0)] * 2
    single, summed = (AttackedClient(setup, "server", (weights,), 0, "key", each) for each in (False, True))
    others = summed.answers(worlds, "a") - single.answers(worlds, "a")
    assert np.std(others[0] - others[1]) / np.sqrt(2) == pytest.approx(2.0 * 0.5 * np.sqrt(7), rel=0.04)


def test_pictures_are_the_operators_unless_the_data_are_public(tmp_path: Path) -> None:
    few = (*ANALYTIC, "attacks.one.trials=20")
    secret = result(tmp_path / "secret", *few, report=True)
    [shown] = secret["trials"]
    assert len(shown["pictures"]) == 6
    assert not shown.get("public_pictures")
    digits = shown["pictures"][0]["original"]
    assert shown["pictures"][0]["psnr"] > 60
    assert digits not in json.dumps(public(secret))
    pages = [(Path(secret["path"]) / name).read_text() for name in ("report.html", "operator.html")]
    assert ["Nearest wrong" in page for page in pages] == [False, True]
    shown["public_pictures"] = shown.pop("pictures")
    (Path(secret["path"]) / "run.json").write_text(json.dumps(secret))
    with pytest.raises(InputError, match=r"trials\[0\]\.public_pictures: are of records that are not public"):
        checked_document(Path(secret["path"]))
    open_to_all = result(tmp_path / "open", *few, "data.public=true", report=True)
    [shown] = open_to_all["trials"]
    assert shown["public_pictures"][0]["original"] == digits
    assert not shown.get("pictures")
    page = render(open_to_all)
    assert "Nearest wrong" in page
    assert "<img" not in page


def test_publicity_of_the_data_does_not_change_the_noise() -> None:
    assert Fleet.of(scenario(*ANALYTIC)).streams == Fleet.of(scenario(*ANALYTIC, "data.public=true")).streams


def test_a_node_that_holds_its_plan_refuses_the_architecture_and_trains_the_weights() -> None:
    """The plan fixes the model's size, not its weights: an MLP with a ReLU takes an imprint as it is."""
    fleet = Fleet.of(scenario(*ANALYTIC))
    edges = quantiles(fleet.x.numpy().reshape(-1, 64).astype(float), 64)
    module = ImprintModule(fleet.model.build(0), (64,), edges)

    def request(weights: np.ndarray) -> TrainRequest:
        return TrainRequest(0, 0, 0, np.array([0]), weights, fleet.plan, "each")

    with pytest.raises(Refusal, match=rf"{len(module.weights)} weights, the model has 4810"):
        vet(fleet, request(module.weights), [0], "each")
    assert FirstLayer.of(fleet.module) == FirstLayer(64, 64)
    weights = np.zeros(4810, np.float32)
    vet(fleet, request(imprinted(weights, fleet.module, edges)), [0], "each")


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ((*ANALYTIC, "attacks.one.candidates=700"), "candidates = 700: there are 610 records to draw from"),
        ((*ANALYTIC, "attacks.one.batch=37"), "batch = 37: the victim has 35 records"),
        (
            (*IMPRINT, "attacks.one.bins=580", "model.hidden=[580]", "attacks.one.candidates=590"),
            "bins = 580: there are 575 public pictures",
        ),
        (
            (*INFORMED, *LOCAL, "privacy.epsilon=8.0", 'privacy.mechanism="privunit"', *REPLACED),
            "no Gaussian noise on whole updates",
        ),
        ((*ANALYTIC, "model.freeze=['3.*']"), "needs a model that is trained whole, and 3.weight is frozen"),
        ((*ANALYTIC, "model.lora={rank=2, alpha=2.0}"), "needs a model that is trained whole, and 1.weight"),
        (
            (
                'attacks.one.method="inverting"',
                "attacks.one.batch=1",
                "attacks.one.candidates=300",
                "model.freeze=['3.bias']",
            ),
            "the last parameter, 3.bias, is frozen",
        ),
    ],
)
def test_what_the_data_do_not_allow_is_refused(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=rf"attacks\.one: .*{message}"):
        check_trials(GameSetup(scenario(*sets)))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ((*IMPRINT, "model.hidden=[65]"), "a node that holds its plan refuses"),
        ((*IMPRINT, 'model.name="logistic"'), "a node that holds its plan refuses"),
        ((*IMPRINT, 'model.activation="tanh"'), "with a ReLU"),
        ((*IMPRINT, 'attacks.one.seat="participant"'), "only the server sends models"),
        ((*IMPRINT, "attacks.one.candidates=64"), "naming them all would do"),
        ((*ANALYTIC, 'model.name="cnn"'), "needs a linear first layer"),
        (
            (*ANALYTIC, 'attacks.one.method="inverting"', "training.batch_size=8"),
            "plain steps over all records",
        ),
        ((*ANALYTIC, 'attacks.one.method="inverting"', "attacks.one.rounds=2"), "follows one round"),
        (('attacks.one.method="inverting"',), "attacks.one.batch: missing"),
        (
            (*ANALYTIC, 'attacks.one.method="inverting"', 'data.name="purchase-like"', "data.features=600"),
            r"records have the shape \[600\]",
        ),
        (
            (*ANALYTIC, *LOCAL, "privacy.epsilon=8.0", 'attacks.one.seat="participant"'),
            "the server sees each",
        ),
        ((*IMPRINT, 'attacks.one.seat="participant"', 'attacks.one.sees="sum"'), "global models, and no sum"),
        ((*INFORMED, 'attacks.one.sees="sum"'), "knows all but the victim"),
        ((*ANALYTIC, "attacks.one.candidates=1"), "candidates"),
        ((*ANALYTIC, 'attacks.one.method="guess"'), "method"),
    ],
)
def test_what_a_method_cannot_do_is_refused_by_its_key(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario(*sets)
