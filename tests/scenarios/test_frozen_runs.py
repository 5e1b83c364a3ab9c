"""Whole runs of models of which a part is frozen: records, resuming, and what a stored run states."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import fedprivacy as fp
from clients.fleet import Fleet
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.models.by_name import flat_weights
from fedprivacy.models.evaluation import evaluate
from fedprivacy.models.partial_training import frozen_part
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.training.features import encode
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.comparison import compare
from scenarios.runner import resume, run
from scenarios.stored.removal import check_removable

FROZEN = ("model={name='mlp', hidden=[6], freeze=['1.*']}", "privacy.epsilon=4.0", "server.rounds=4")
NETS = """
import torch
from torch import nn

def encoder():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh()).requires_grad_(False)

def make(features, classes):
    return nn.Sequential(*([encoder()] if features == (4,) else []), nn.Linear(6, classes))
"""


def weights(document: dict) -> np.ndarray:
    return RunDirectory(Path(document["path"])).load_checkpoint().tensors["weights"]


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with a model whose encoder is frozen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop("frozen_nets", None)
    (tmp_path / "frozen_nets.py").write_text(NETS)
    return "frozen_nets"


def test_a_run_states_its_frozen_part_and_is_verified(make_scenario, tmp_path: Path) -> None:
    document = run(make_scenario(*FROZEN), tmp_path)
    assert len(weights(document)) == 14
    part = document["plan"]["frozen"]
    assert (part["frozen"], part["trained"]) == (30, 14)
    note = (
        f"14 of 44 parameters are trained. The rest of the model (digest {part['digest']}) is in no update: "
        "it is neither clipped nor noised."
    )
    assert note in document["notes"]
    assert note in (Path(document["path"]) / "report.html").read_text()
    stated = [g for g in document["privacy"]["guarantees"] if g["epsilon"] is not None]
    assert stated
    assert all(TrainingAssumption.FROZEN_WEIGHTS.among(g["assumptions"]) for g in stated)
    assert checked_document(Path(document["path"]))["privacy"] == document["privacy"]


def test_a_stored_run_with_another_frozen_part_is_refused(make_scenario, tmp_path: Path) -> None:
    """Also with the digest alone, of which the note tells."""
    document = run(make_scenario(*FROZEN), tmp_path, report=False)
    file = Path(document["path"]) / "run.json"
    content = file.read_text()
    for change, message in (
        (None, "plan.frozen: missing"),
        ({"trained": 4}, "plan.frozen: has 4 trained and 30 frozen parameters"),
        ({"digest": "0" * 32}, "notes"),
    ):
        stored = json.loads(content)
        if change is None:
            del stored["plan"]["frozen"]
        else:
            stored["plan"]["frozen"] |= change
        file.write_text(json.dumps(stored))
        with pytest.raises(InputError, match=message):
            checked_document(Path(document["path"]))


def test_a_whole_model_from_python_may_have_been_trained_before(tmp_path: Path) -> None:
    """The guarantees assume that no record of a client made its weights."""
    document = fp.run("digits", model=nn.Linear(64, 10), rounds=1, out=tmp_path).document
    assert (document["plan"]["frozen"]["frozen"], document["plan"]["frozen"]["trained"]) == (0, 650)
    stated = [g for g in document["privacy"]["guarantees"] if g["epsilon"] is not None]
    assert stated
    assert all(TrainingAssumption.FROZEN_WEIGHTS.among(g["assumptions"]) for g in stated)
    assert not any("parameters are trained" in note for note in document["notes"])
    assert not (Path(document["path"]) / "model.safetensors").exists()
    assert checked_document(Path(document["path"]))["privacy"] == document["privacy"]


class Remembers(nn.Module):
    """Writes records into its buffer where it sees more than the few records of the checks."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(64, 10)
        self.register_buffer("notes", torch.zeros(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled() and len(x) > 100:
            self.notes.copy_(x.flatten(1)[0])
        return self.last(x.flatten(1))


def test_a_model_whose_constants_changed_is_not_released(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its frozen parameters or buffers are no longer those of the plan"):
        fp.run("digits", model=Remembers(), rounds=1, out=tmp_path)
    assert not list(tmp_path.rglob("model.safetensors"))


def test_the_ledger_is_that_of_a_run_whose_model_is_the_trained_part(make_scenario, tmp_path: Path) -> None:
    """The same noise and event; the frozen run states one assumption more."""
    documents = [
        run(make_scenario(*FROZEN[1:], model), tmp_path / str(number), report=False)
        for number, model in enumerate((FROZEN[0], "model={name='logistic'}"))
    ]
    for document in documents:
        del document["plan"]["mechanism"]["name"]
        for claim in document["ledger"]["claims"]:
            if TrainingAssumption.FROZEN_WEIGHTS.among(claim["assumptions"]):
                claim["assumptions"].remove(TrainingAssumption.FROZEN_WEIGHTS)
    frozen, plain = documents
    assert frozen["ledger"] == plain["ledger"]
    assert frozen["plan"]["mechanism"] == plain["plan"]["mechanism"]


def test_a_run_equals_that_on_the_outputs_of_its_encoder(nets: str, make_scenario, tmp_path: Path) -> None:
    """Bit for bit: weights, accuracy and loss of every round."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((80, 4)).astype(np.float32), rng.integers(0, 2, 80)
    model = f"model={{name='code', factory='{nets}:make'}}"
    import frozen_nets

    documents = []
    for features in (x, encode(frozen_nets.encoder(), torch.from_numpy(x)).numpy()):
        path = tmp_path / f"{features.shape[1]}.npz"
        np.savez(path, x_train=features[:60], y_train=y[:60], x_test=features[60:], y_test=y[60:])
        data = f"data={{name='npz', path='{path}', partition='iid', clients=12}}"
        asked = make_scenario(data, model, "privacy={trust='none', clipping_norm=0.3}", "training.epochs=3")
        documents.append(run(asked, tmp_path / "runs", allow_code=True, report=False))
    whole, head = documents
    assert len(weights(whole)) == 14
    assert "on features of a frozen encoder" in whole["performance"]["way"]
    assert [(r["accuracy"], r["loss"]) for r in whole["rounds"]] == [
        (r["accuracy"], r["loss"]) for r in head["rounds"]
    ]
    assert np.array_equal(weights(whole), weights(head))


def test_an_interrupted_run_is_resumed_to_the_same_bits(make_scenario, tmp_path: Path) -> None:
    asked, stops = make_scenario(*FROZEN), []

    def stop(event: dict) -> None:
        stops.append(event)
        if len(stops) == 2:
            raise KeyboardInterrupt

    whole = run(asked, tmp_path / "whole", report=False)
    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "broken", report=False, on_round=stop)
    [path] = (tmp_path / "broken").iterdir()
    resumed = resume(path, report=False)
    assert np.array_equal(weights(resumed), weights(whole))
    assert resumed["ledger"] == whole["ledger"]


def test_a_run_is_not_resumed_with_other_frozen_weights(nets: str, make_scenario, tmp_path: Path) -> None:
    asked = make_scenario(f"model={{name='code', factory='{nets}:make'}}")

    def stop(event: dict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "runs", report=False, allow_code=True, on_round=stop)
    [path] = (tmp_path / "runs").iterdir()
    (tmp_path / f"{nets}.py").write_text(NETS.replace("manual_seed(5)", "manual_seed(6)"))
    sys.modules.pop(nets)
    with pytest.raises(InputError, match="the weights or the code of its model changed since the run began"):
        resume(path, report=False, allow_code=True)


def test_a_run_starts_with_the_weights_of_a_file(make_scenario, tmp_path: Path) -> None:
    """And states the file's digest; a run is not resumed with another file of the same name."""
    path = tmp_path / "encoder.safetensors"
    save_file({"1.weight": torch.rand(6, 4), "1.bias": torch.rand(6)}, path)
    model = f"model={{name='mlp', hidden=[6], freeze=['1.*'], weights='{path}'}}"
    document = run(make_scenario(model), tmp_path / "runs")
    part = document["plan"]["frozen"]
    assert any(note.endswith(f"weights of a file (digest {part['file']}).") for note in document["notes"])
    assert checked_document(Path(document["path"]))["privacy"] == document["privacy"]

    def stop(event: dict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(make_scenario(model), tmp_path / "broken", report=False, on_round=stop)
    [broken] = (tmp_path / "broken").iterdir()
    save_file({"1.weight": torch.rand(6, 4), "1.bias": torch.rand(6)}, path)
    with pytest.raises(InputError, match="the weights or the code of its model changed since the run began"):
        resume(broken, report=False)


def test_a_finished_run_has_its_whole_model(make_scenario, tmp_path: Path) -> None:
    """It evaluates as the run did, and another run may start with it."""
    model = "name='mlp', hidden=[6], lora={rank=2, alpha=4.0}, trainable=['3.bias']"
    asked = make_scenario(f"model={{{model}}}")
    document = run(asked, tmp_path, report=False)
    path = Path(document["path"]) / "model.safetensors"
    stored = load_file(path)
    parts = ("bias", "lora_a.factor", "lora_b.weight", "weight")
    assert sorted(stored) == [f"{layer}.{part}" for layer in (1, 3) for part in parts]
    assert check_removable([path.parent])
    fleet = Fleet.of(asked)
    fleet.module.load_state_dict(stored)
    people = fleet.people
    found = evaluate(fleet.module, flat_weights(fleet.module), *people.held_out("test"))
    assert found.loss == pytest.approx(document["final"]["loss"], rel=1e-6)
    assert weights(document).astype(np.float32).tolist() == flat_weights(fleet.module).tolist()
    again = Fleet.of(make_scenario(f"model={{{model}, weights='{path}'}}"))
    assert (flat_weights(again.model.build(7)) == flat_weights(fleet.module)).all()
    assert not (Path(run(make_scenario(), tmp_path, report=False)["path"]) / "model.safetensors").exists()


def test_other_weights_have_other_noise(make_scenario, tmp_path: Path) -> None:
    """Wherever the file lies: an observer of two runs could subtract noise that they share."""
    keys = []
    for folder, scale in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        path = tmp_path / folder / "w.safetensors"
        path.parent.mkdir()
        save_file({"1.weight": torch.full((2, 4), scale)}, path)
        keys.append(Fleet.of(make_scenario(f"model={{name='logistic', weights='{path}'}}")).streams.run)
    assert keys[0] == keys[1] != keys[2]


def test_a_module_of_python_keeps_what_it_freezes(tmp_path: Path) -> None:
    encoder = nn.Linear(64, 6).requires_grad_(False)
    net = nn.Sequential(encoder, nn.ReLU(), nn.Linear(6, 10))
    result = fp.run("digits", model=net, rounds=1, out=tmp_path)
    part = result.document["plan"]["frozen"]
    assert (part["frozen"], part["trained"]) == (64 * 6 + 6, 6 * 10 + 10)
    assert part["digest"] == frozen_part(net).digest


@pytest.mark.exhaustive
def test_the_runs_of_a_comparison_have_one_frozen_part(make_scenario, tmp_path: Path) -> None:
    asked = make_scenario(*FROZEN, "compare={epsilons=[4.0], seeds=[1, 2]}")
    document = compare(asked, tmp_path, workers=1)
    assert document["status"] == "finished"
    runs = [json.loads(file.read_text()) for file in Path(document["path"]).rglob("*/run.json")]
    assert len(runs) >= 6
    assert len({json.dumps(stored["plan"]["frozen"]) for stored in runs}) == 1
    assert len({stored["final"]["loss"] for stored in runs}) > 2
