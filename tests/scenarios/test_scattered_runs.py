"""Whole runs of models on scattering coefficients: bits, records, plans, and the attacks on them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

from clients.fleet import Fleet
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.models.partial_training import frozen_part
from fedprivacy.models.scattering import Scattering
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario import Scenario
from fedprivacy.scenario import model as scenario_model
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.replay import replay
from scenarios.authoring.catalogue import ready
from scenarios.engines.launch import Engine
from scenarios.runner import resume, run

SMALL = (
    *("data={name='digits', partition='iid', clients=20}", "model.features='scatternet'"),
    *("sampling={name='fixed', cohort=5}", "server.rounds=3"),
)
VERSION = (
    "scatternet, version 2: Morlet wavelets of 2 scales and 8 directions, order 2, rounded to multiples of 2^-20, "
    "reflected at the border, colour by colour, groups of 3 channels normalised with 1e-05 added to their variance"
)


def scattered(*overrides: str) -> Scenario:
    return Scenario.read(ready()["digits"], [*SMALL, *overrides])


def weights(document: dict) -> np.ndarray:
    return RunDirectory(Path(document["path"])).load_checkpoint().tensors["weights"]


def test_a_run_states_its_features_and_is_verified(tmp_path: Path) -> None:
    """No assumption on weights: a formula was trained on nothing."""
    document = run(scattered(), tmp_path)
    part = document["plan"]["frozen"]
    assert (part["frozen"], part["features"], part["trained"]) == (0, VERSION, 3250)
    assert part["digest"] == frozen_part(Fleet.of(scattered()).module, features=VERSION).digest
    note = f"The model reads features of each record ({VERSION})."
    assert any(note in text for text in document["notes"])
    assert note in (Path(document["path"]) / "report.html").read_text()
    stated = [g for g in document["privacy"]["guarantees"] if g["epsilon"] is not None]
    assert stated
    assert not any(TrainingAssumption.FROZEN_WEIGHTS.among(g["assumptions"]) for g in stated)
    assert checked_document(Path(document["path"]))["privacy"] == document["privacy"]
    assert "on features of a frozen encoder" in document["performance"]["way"]


def test_a_stored_run_of_other_features_is_refused(tmp_path: Path) -> None:
    """Features alone free a run of the assumption on its weights."""
    document = run(scattered(), tmp_path, report=False)
    file = Path(document["path"]) / "run.json"
    stored = json.loads(file.read_text())
    for features in ("scatternet, version 3", None):
        stored["plan"]["frozen"]["features"] = features
        file.write_text(json.dumps(stored))
        with pytest.raises(InputError, match=r"plan\.frozen\.features: does not fit the scenario's model"):
            checked_document(Path(document["path"]))


@pytest.mark.parametrize("more", [(), ("model.lora={rank=2, alpha=4.0}", "model.trainable=['*.bias']")])
def test_features_free_no_other_frozen_weights_of_their_assumption(more: tuple[str, ...]) -> None:
    part = plan_of(scattered(*more)).frozen
    assert part is not None
    assert part.is_by_formula == (not more)


def test_every_number_of_workers_gives_the_same_bits(tmp_path: Path) -> None:
    small = scattered("federation.hosts=2")
    runs = [
        run(small, tmp_path / str(workers), report=False, engine=Engine(workers=workers))
        for workers in (1, 2)
    ]
    assert len({weights(document).tobytes() for document in runs}) == 1
    assert len({document["final"]["loss"] for document in runs}) == 1


def test_runs_on_the_same_records_encode_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Public records for evaluation, too."""
    encoded: list[bytes] = []

    def forward(layer: Scattering, images: Tensor) -> Tensor:
        encoded.extend([images.numpy().tobytes()] * (len(images) == 1))
        return transform(layer, images)

    transform = Scattering.forward
    monkeypatch.setattr(Scattering, "forward", forward)
    public = ("data.public_fraction=0.2", "evaluation.on='public'")
    for seed in (1, 2):
        run(scattered(*public, f"seed={seed}"), tmp_path / str(seed), report=False)
    assert encoded
    assert len(set(encoded)) == len(encoded)


def test_an_interrupted_run_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    def stop(event: dict) -> None:
        raise KeyboardInterrupt

    whole = run(scattered(), tmp_path / "whole", report=False)
    with pytest.raises(KeyboardInterrupt):
        run(scattered(), tmp_path / "broken", report=False, on_round=stop)
    [path] = (tmp_path / "broken").iterdir()
    assert np.array_equal(weights(resume(path, report=False)), weights(whole))


def test_a_node_with_another_version_of_the_features_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(scattered())
    Fleet.of(scattered(), plan=plan)
    monkeypatch.setitem(scenario_model.FEATURES, "scatternet", "scatternet, version 3")
    with pytest.raises(InputError, match=r"in the plan: digest \w+, scatternet, version 2"):
        Fleet.of(scattered(), plan=plan)


def test_records_are_not_read_off_the_gradient_of_features() -> None:
    with pytest.raises(
        InputError, match=r'with model.features = "scatternet" that layer reads features'
    ) as error:
        AttackScenario.read(ready()["reconstruction"], ["model.features='scatternet'"])
    assert 'Remove model.features, or set method = "inverting"' in str(error.value)


@pytest.mark.exhaustive
def test_a_seat_observes_updates_of_the_head(tmp_path: Path) -> None:
    small = AttackScenario.read(
        ready()["passive-over-time"],
        [
            *("data={name='digits', partition='iid', clients=4, public_fraction=0.2}", "server.rounds=6"),
            *("model.features='scatternet'", "game.members=10", "game.nonmembers=20"),
            *("attacks={seen={kind='passive', rounds=5}}",),
        ],
    )
    document = replay(small, tmp_path, workers=1)
    assert document["status"] == "finished"
    assert document["attacks"][0]["auc"]["value"] is not None
