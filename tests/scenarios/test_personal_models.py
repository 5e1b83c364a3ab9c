"""Whole runs in which clients have models of their own: nothing of these leaves, and nothing is charged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import fedprivacy as fp
from benchmarks.faulty import TRIGGER
from clients.app import personal_states
from clients.fleet import Fleet
from clients.node import CLIENTS
from clients.personal_evaluation import evaluate_personal
from clients.personal_state import PersonalStates
from clients.training_handler import answer
from clients.worker_pool import WorkerPool
from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.by_name import flat_weights
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import load
from fedprivacy.training.personalisation import Ditto
from fedprivacy.verification.verify import checked_document
from scenarios.engines.launch import Engine
from scenarios.engines.superlink import check_personal
from scenarios.runner import resume, run

MODEL = "model={name='mlp', hidden=[6]}"
PARTIAL = ("training.shared=['1.*']", MODEL)
SECRET = ("sampling={name='poisson', rate=0.5}", "privacy.adjacency='add-remove'")
MODES = {
    "partial": PARTIAL,
    "fine-tune": ("training.personal='fine-tune'", MODEL),
    "ditto": ("training.personal='ditto'", MODEL),
}


def weights(document: dict[str, Any]) -> np.ndarray:
    return RunDirectory(Path(document["path"])).load_checkpoint().tensors["weights"]


def states(document: dict[str, Any]) -> dict[str, np.ndarray]:
    tensors = RunDirectory(Path(document["path"])).load_checkpoint().tensors
    return {name.rpartition("/")[2]: value for name, value in tensors.items() if "/personal/" in name}


def test_the_ledger_is_that_of_a_run_whose_model_is_the_shared_part(make_scenario, tmp_path: Path) -> None:
    """Bit for bit: events, epsilons, noise; the personal run states one assumption more."""
    parts = ("model={name='mlp', hidden=[6]}", "model={name='mlp', hidden=[6], trainable=['1.*']}")
    given = ("privacy.epsilon=4.0", *SECRET)
    documents = [
        run(make_scenario(*given, PARTIAL[0], parts[0]), tmp_path / "personal", report=False),
        run(make_scenario(*given, parts[1]), tmp_path / "shared", report=False),
    ]
    assert documents[0]["plan"].pop("personal") == "partial"
    assert documents[0]["plan"]["frozen"].pop("personal") == 14
    for claim in documents[0]["ledger"]["claims"][1:]:
        claim["assumptions"].remove(TrainingAssumption.PERSONAL)
    assert documents[0]["ledger"] == documents[1]["ledger"]
    assert documents[0]["plan"] == documents[1]["plan"]
    first, second = ([g["epsilon"] for g in each["privacy"]["guarantees"]] for each in documents)
    assert first == second
    assert len(weights(documents[0])) == len(weights(documents[1])) == 30


def test_nothing_personal_leaves_a_client(trial, make_scenario) -> None:
    """A reply has the length of the shared part, and is the sum of clipped updates of that alone."""
    replies = []

    def listening(message, context, call_next):
        reply = call_next(message, context)
        if "arrays" in reply.content:
            replies.append({name: a.numpy() for name, a in reply.content.array_records["arrays"].items()})
        return reply

    here = trial(make_scenario(*PARTIAL, "federation.chunk_size=1"), mods=(listening,))
    here.play(2)
    kept = personal_states(here.grid.states.values(), here.fleet)
    assert kept.rows.shape == (12, 14)
    assert not np.array_equal(kept.rows[0], kept.rows[1])
    sums = [reply["updates"] for reply in replies]
    assert {len(total) for total in sums} == {30}
    assert all(np.linalg.norm(total) <= 1.0 for total in sums)
    values = set(np.concatenate([array.ravel() for reply in replies for array in reply.values()]).tolist())
    assert not values & set(kept.rows.ravel().astype(np.float64).tolist())


def test_no_file_that_is_passed_on_has_a_personal_value(make_scenario, tmp_path: Path) -> None:
    document = run(make_scenario(*PARTIAL), tmp_path)
    kept, folder = states(document)["rows"], Path(document["path"])
    model = load_file(folder / "model.safetensors")
    start = Fleet.of(make_scenario(*PARTIAL)).personal.start
    assert np.array_equal(np.concatenate([model["3.weight"].ravel(), model["3.bias"]]), start)
    text = json.dumps(document) + (folder / "report.html").read_text()
    assert not any(repr(value) in text for value in kept.ravel().astype(float).tolist())
    assert checked_document(folder)["privacy"] == document["privacy"]


@pytest.mark.parametrize("mode", MODES)
def test_the_figures_are_the_operators_unless_everybody_has_the_data(mode: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 4)).astype(np.float32), rng.integers(0, 2, 60)
    path = tmp_path / "people.npz"
    np.savez(path, x_train=x, y_train=y, x_test=x[:30], y_test=y[:30])
    text = f"""name = "own"
[data]
name = "npz"
path = "{path}"
partition = "iid"
clients = 12
[model]
name = "logistic"
[server]
rounds = 2
[sampling]
name = "all"
[privacy]
trust = "none"
"""
    shared = ["training.shared=['1.weight']"] if mode == "partial" else [f"training.personal='{mode}'"]
    document = run(Scenario.from_text(text, overrides=shared), tmp_path)
    assert document["final"]["personal"]["mode"] == mode
    assert "personal" not in public(document)["final"]
    page = (Path(document["path"]) / "report.html").read_text()
    assert "own held-out records" not in page
    assert "for one that is published there is no guarantee" in page
    shown = run(Scenario.from_text(text, overrides=[*shared, "data.public=true"]), tmp_path)
    assert public(shown)["final"]["personal"] == shown["final"]["personal"]
    assert "own held-out records" in (Path(shown["path"]) / "report.html").read_text()


@pytest.mark.parametrize("mode", MODES)
def test_no_worker_and_no_message_changes_a_bit(mode: str, make_scenario, tmp_path: Path) -> None:
    documents = [
        run(
            make_scenario(*MODES[mode], *SECRET, f"federation.chunk_size={chunk}"),
            tmp_path / f"{workers}-{chunk}",
            report=False,
            engine=Engine("embedded", workers),
        )
        for workers, chunk in ((1, 20), (2, 20), (1, 3))
    ]
    for other in documents[1:]:
        assert other["final"]["personal"] == documents[0]["final"]["personal"]
        assert states(other).keys() == states(documents[0]).keys()
        for name, value in states(documents[0]).items():
            assert np.array_equal(states(other)[name], value), name
    assert np.array_equal(weights(documents[1]), weights(documents[0]))
    assert bool(states(documents[0])) == (mode != "fine-tune")


@pytest.mark.parametrize("mode", ["partial", "ditto"])
def test_a_run_resumes_with_the_personal_parts(
    mode: str, make_scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = make_scenario(*MODES[mode], *SECRET)
    whole = run(asked, tmp_path / "whole", report=False)

    def stop(event: dict[str, Any]) -> None:
        if event["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "cut", report=False, on_round=stop)
    [path] = (tmp_path / "cut").iterdir()
    again = resume(path, report=False)
    assert again["final"] == whole["final"]
    for name, value in states(whole).items():
        assert np.array_equal(states(again)[name], value), name


def test_personal_models_fit_label_skew(tmp_path: Path) -> None:
    """Each kind is better on its clients' own records than the model that all share."""
    given = {
        "data": {"partition": "dirichlet", "clients": 30, "alpha": 0.1},
        "training": {"epochs": 3, "batch_size": 8, "learning_rate": 0.3},
        "privacy": {"trust": "none"},
    }
    for more in ({"shared": ["1.weight"]}, {"personal": "fine-tune"}, {"personal": "ditto"}):
        settings = {
            f"{section}.{key}": value for section, keys in given.items() for key, value in keys.items()
        }
        settings |= {f"training.{key}": value for key, value in more.items()}
        document = fp.run("digits", set=settings, rounds=4, out=tmp_path, progress=False).document
        personal = document["final"]["personal"]
        assert personal["records"] == 360
        assert personal["mean"] > personal["shared_mean"] + 0.02, more
        assert personal["worst"] <= personal["mean"]


def test_a_client_that_never_took_part_has_the_shared_model(trial, make_scenario) -> None:
    here = trial(make_scenario(*PARTIAL))
    nobody = personal_states(here.grid.states.values(), here.fleet)
    assert not len(nobody.clients)
    data = make_scenario(*PARTIAL).data
    figures = evaluate_personal(here.fleet, nobody, here.federation.model, data, WorkerPool())
    assert (figures["mean"], figures["worst"]) == (figures["shared_mean"], figures["shared_worst"])


@pytest.mark.parametrize("trust", ["local", "central"])
def test_each_guarantee_states_what_it_covers(trust: str, make_scenario, tmp_path: Path) -> None:
    more = ("privacy.adjacency='replace-one'", f"privacy.trust='{trust}'")
    document = run(make_scenario(*PARTIAL, *more), tmp_path)
    stated = [g for g in document["privacy"]["guarantees"] if g["epsilon"] is not None]
    assert stated
    assert all(TrainingAssumption.PERSONAL.among(g["assumptions"]) for g in stated)
    assert "14 parameters are personal" in (Path(document["path"]) / "report.html").read_text()


FAULTY = """name = "faulty"
[data]
name = "npz"
path = "{path}"
partition = "iid"
clients = 12
[model]
name = "code"
factory = "benchmarks.faulty:make"
options = {{harm = "{harm}"}}
[server]
rounds = 2
[sampling]
name = "all"
[privacy]
trust = "local"
clipping_norm = 1.0
epsilon = 4.0
delta = 1e-3
adjacency = "replace-one"
[federation]
client_timeout = {limit}
"""


@pytest.mark.parametrize("harm", ["raise", "hang", "kill"])
def test_a_record_that_breaks_training_breaks_no_finished_run(harm: str, tmp_path: Path) -> None:
    """The public status and the guarantees are those of a run whose data have no such record."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 4)).astype(np.float32), rng.integers(0, 2, 60)
    documents = []
    for case, first in (("healthy", x[7, 0]), ("broken", TRIGGER)):
        x[7, 0], path = first, tmp_path / "people.npz"
        np.savez(path, x_train=x, y_train=y, x_test=np.ones((60, 4), np.float32), y_test=y)
        text = FAULTY.format(path=path, harm=harm, limit=1.0 if harm == "hang" else 30.0)
        asked = Scenario.from_text(text, overrides=["training.personal='fine-tune'"])
        documents.append(run(asked, tmp_path / case, report=False, allow_code=True))
    healthy, broken = documents
    assert broken["status"] == healthy["status"] == "finished"
    assert broken["privacy"]["guarantees"] == healthy["privacy"]["guarantees"]
    assert (healthy["final"]["personal"]["failed"], broken["final"]["personal"]["failed"]) == (0, 1)


UNIT = ("privacy.unit='example'", "training.batch_size='all'")
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "records": ((*PARTIAL, *UNIT), "clipping one gradient no longer bounds"),
    "fixed": ((*PARTIAL, "sampling={name='fixed', cohort=3}"), "which their personal parts remember"),
    "separated": (
        (*PARTIAL, "sampling={name='separated', cohort=3, separation=2}"),
        "which their personal parts remember",
    ),
    "distributed": (
        (*PARTIAL, "privacy={trust='distributed', clipping_norm=1.0, epsilon=4.0, delta=1e-3}"),
        "keep no parameters from round to round",
    ),
    "proximal": ((*PARTIAL, "training.proximal=0.1"), "lacks its personal part"),
    "without shared": (("training.personal='partial'",), "needs the parameters that are sent"),
    "shared of ditto": ((*PARTIAL, "training.personal='ditto'"), "has no effect without"),
    "epochs": (("training.personal_epochs=3",), 'has no effect without personal = "fine-tune"'),
    "regression": (
        (
            "training.personal='ditto'",
            "data.task='regression'",
            "data.target_low=0.0",
            "data.target_high=1.0",
        ),
        "measured by the classes that they name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nothing_is_proved_of_is_refused(case: str, make_scenario) -> None:
    overrides, message = REFUSED[case]
    with pytest.raises(ScenarioError, match=message):
        make_scenario(*overrides)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("9.*", "matches no trained parameter. The trained parameters are: 1.weight"),
        ("*", "no parameter stays at the clients"),
    ],
)
def test_patterns_that_share_nothing_or_all_are_refused(pattern: str, message: str, make_scenario) -> None:
    with pytest.raises(InputError, match=message):
        Fleet.of(make_scenario(f"training.shared=['{pattern}']"))


def test_too_many_numbers_are_refused(make_scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clients.personal_state.MOST_NUMBERS", 12 * 14 - 1)
    with pytest.raises(InputError, match="12 clients keep 14 numbers each"):
        Fleet.of(make_scenario(*PARTIAL))


def _compare(asked: Scenario, out: Path) -> None:
    fp.compare(asked, out=out, progress=False, workers=1)


def _audit(asked: Scenario, out: Path) -> None:
    fp.audit(asked, canaries=50, method="one-run", out=out, progress=False)


@pytest.mark.parametrize("work", [_compare, _audit])
def test_work_that_judges_the_shared_model_alone_is_refused(
    work: Callable[[Scenario, Path], None], make_scenario, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"training\.personal"):
        work(make_scenario(*PARTIAL), tmp_path)
    assert not list(tmp_path.iterdir())


def test_attacks_are_refused() -> None:
    from scenarios.authoring.catalogue import find

    with pytest.raises(ScenarioError, match="judge, the model that all clients share"):
        load(find("active-gradient-ascent"), ["training.personal='ditto'"])
    assert issubclass(AttackScenario, Scenario)


@pytest.mark.parametrize("mode", ["fine-tune", "ditto"])
def test_another_kind_takes_along_the_keys_of_the_old_one(mode: str) -> None:
    from scenarios.authoring.catalogue import find

    training = load(find("personal-models"), [f"training.personal={mode}"]).training
    assert (training.personal, training.shared) == (mode, None)
    assert (training.personal_epochs is None) == (mode == "ditto")
    assert load(find("personal-models"), ["seed=1"]).training.personal == "partial"


@pytest.mark.parametrize("mode", ["fine-tune", "ditto"])
def test_models_beside_change_no_bit_of_the_shared_model(mode: str, make_scenario) -> None:
    """Calls of a large model have few places: those of updates are as without personal models."""
    wide = ("model={name='mlp', hidden=[20000]}", "federation.chunk_size=1")
    asked = [make_scenario(*wide), make_scenario(*wide, f"training.personal='{mode}'")]
    plain, personal = map(Fleet.of, asked)
    assert plain.alone
    assert personal.alone
    for formed in (False, True):
        plain, personal = (replace(fleet, alone=False) for fleet in (plain, personal))
        assert plain.shape(5, formed=formed) == personal.shape(5, formed=formed)
    assert personal.shape(5, beside=True) == replace(personal, alone=True).shape(5, beside=True)
    fleet = Fleet.of(make_scenario("model={name='mlp', hidden=[20000]}", f"training.personal='{mode}'"))
    weights = flat_weights(fleet.module)
    asked = TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, "sum")
    plain, _ = answer(replace(fleet, personal=None), None, asked)
    reply, _ = answer(fleet, None, asked, states=PersonalStates.empty(fleet.personal.size))
    assert np.array_equal(plain.updates, reply.updates)


def test_a_copy_that_fails_takes_no_update_along(make_scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet.of(make_scenario(*MODES["ditto"]))
    asked = TrainRequest(0, 0, 0, np.arange(12), np.zeros(fleet.parameters, np.float32), fleet.plan, "each")
    train = Ditto.train

    def broken(self, task, states, beside):
        if 3 in task.clients:
            raise RuntimeError
        return train(self, task, states, beside)

    replies, kept = [], [PersonalStates.empty(fleet.personal.size) for _ in range(2)]
    for states, way in zip(kept, (train, broken), strict=True):
        monkeypatch.setattr(Ditto, "train", way)
        replies.append(answer(fleet, None, asked, states=states)[0])
    whole, others = kept
    assert replies[0].faults == replies[1].faults
    assert np.array_equal(replies[0].updates, replies[1].updates)
    assert (whole.clients.tolist(), others.clients.tolist()) == (
        list(range(12)),
        np.delete(range(12), 3).tolist(),
    )
    assert np.array_equal(np.delete(whole.rows, 3, axis=0), others.rows)


def test_test_records_stay_unread_where_public_ones_measure(make_scenario, tmp_path: Path) -> None:
    public = ("data.public_fraction=0.2", "evaluation.on='public'")
    document = run(make_scenario(*MODES["fine-tune"], *public), tmp_path, report=False)
    assert "personal" not in document["final"]


def test_federations_refuse_personal_models(make_scenario) -> None:
    asked = make_scenario(*MODES["ditto"])
    with pytest.raises(InputError, match="in simulations alone"):
        check_personal(asked)
    with pytest.raises(InputError, match="in simulations alone"):
        CLIENTS["run"](asked, False, "seeded", None)
