"""Whole runs and comparisons of models that predict numbers or labels, and what their input may not be."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from fedprivacy.errors import InputError
from fedprivacy.population.clients import population
from fedprivacy.records.run_record import BOUNDS_PUBLIC
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import load
from fedprivacy.verification.verify import checked_document
from scenarios.engines.launch import Engine
from scenarios.experiments.comparison import compare
from scenarios.runner import run
from scenarios.stored.listing import rows_of

TEXT = """
name = "numbers"
seed = 1
[data]
name = "synthetic"
records = 240
test_records = 80
features = 4
signal = 2.0
partition = "fixed-records"
records_per_client = 4
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 3
optimizer = "sgd"
[sampling]
name = "all"
[privacy]
trust = "central"
adjacency = "replace-one"
clipping_norm = 0.5
epsilon = 8.0
delta = 1e-4
"""
NUMBERS = ("data.task=regression", "data.target_low=-8.0", "data.target_high=8.0")
LABELS = ("data.task=multi-label", "data.targets=3")
DP_SGD = (
    "privacy.unit=example",
    "privacy.adjacency=add-remove",
    "training={batches='poisson', rate=0.5, steps=2, learning_rate=0.5}",
)
TRUSTS = {
    "none": ("privacy={trust='none'}",),
    "central": (),
    "local": ("privacy.trust=local",),
    "dp-sgd": ("privacy.trust=local", *DP_SGD),
    "dp-sgd of a server": (*DP_SGD, "training.steps=1"),
}


def scenario(*overrides: str) -> Scenario:
    return Scenario.from_text(TEXT, overrides=overrides)


def page(document: dict[str, Any]) -> str:
    return (Path(document["path"]) / "report.html").read_text()


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("trust", TRUSTS)
def test_the_guarantee_is_that_of_a_classification_of_the_same_dimension(trust: str, tmp_path: Path) -> None:
    """Two labels have as many outputs as two classes: the ledger is the same, to the last bit."""
    documents = [
        run(scenario(*task, *TRUSTS[trust]), tmp_path, report=False)
        for task in ((), ("data.task=multi-label", "data.targets=2"), (*NUMBERS, "data.targets=2"))
    ]
    for key in ("plan", "ledger", "privacy"):
        first, *others = [document[key] for document in documents]
        assert all(other == first for other in others), key
    _, labels, numbers = documents
    assert (labels["metric"], numbers["metric"]) == ("label_accuracy", "r2")
    assert numbers["final"]["accuracy"] is None
    assert numbers["final"]["score"] == numbers["rounds"][-1]["score"]
    assert set(numbers["final"]["measures"]) == {"rmse", "mean_absolute_error"}
    assert set(labels["final"]["measures"]) == {"label_f1", "label_auroc", "label_brier"}


def test_a_regression_learns_and_its_page_names_its_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    free = ("privacy={trust='none'}", "server.rounds=40", "data.records=2000")
    document = run(scenario(*NUMBERS, *free), tmp_path)
    # The noise of the targets has a deviation of 1, and x . theta one of 2: at best R2 is .8, and RMSE 1.
    assert 0.7 < document["final"]["score"] < 0.85
    assert document["final"]["measures"]["rmse"] == pytest.approx(1.0, abs=0.2)
    text = page(document)
    assert "R2 (higher is better)" in text
    assert "Measures beside R2" in text
    assert "ccuracy" not in text
    assert BOUNDS_PUBLIC in document["notes"]
    assert "were not read off clients" in text
    assert checked_document(Path(document["path"]))["final"] == document["final"]
    from scenarios.cli.display import show_run

    show_run(document)
    reached = f"R2 {100 * document['final']['score']:.1f} %"
    assert reached in capsys.readouterr().out
    [row] = rows_of(tmp_path)
    assert (row.accuracy, row.answer) == (None, reached)


@pytest.mark.parametrize("task", [(*NUMBERS, "training.loss=huber"), LABELS])
def test_a_comparison_is_of_the_primary_metric(task: tuple[str, ...], tmp_path: Path) -> None:
    document = compare(
        scenario(*task, "compare.trusts=['none','central']", "compare.seeds=[1,2]", "compare.epsilons=[8.0]"),
        tmp_path,
        workers=1,
    )
    title = "R2" if "huber" in task[-1] else "accuracy of labels"
    assert (BOUNDS_PUBLIC in document["notes"]) == (title == "R2")
    assert ("cut at 100 %" if title == "R2" else "cut at 0 and 100 %") in document["interval"]
    for cell in document["cells"]:
        assert cell["accuracy"] is None
        assert cell["score"]["mean"] == pytest.approx(np.mean(cell["scores"]))
        assert {*cell["curve"][0]} == {"round", "score"}
        assert all(figure["mean"] is not None for figure in cell["measures"].values())
    assert "reaches" in document["finding"] or "costs" in document["finding"]
    text = page(document)
    assert f"{title[0].upper()}{title[1:]} (higher is better)" in text
    if title == "R2":
        assert "ccuracy" not in text
    assert checked_document(Path(document["path"]))["cells"] == document["cells"]


def test_workers_and_messages_change_no_bit(tmp_path: Path) -> None:
    asked = scenario(*NUMBERS, "privacy.trust=local", "model={name='mlp', hidden=[3]}")
    finals = [
        run(asked, tmp_path / str(workers), report=False, engine=Engine(workers=workers))["final"]
        for workers in (1, 2)
    ]
    assert finals[0] == finals[1]


def saved(folder: Path, **changed: Any) -> str:
    stream = np.random.default_rng(0)
    x = stream.normal(size=(60, 3))
    arrays = {
        "x_train": x[:40],
        "y_train": 50 + 10 * x[:40, :2],
        "x_test": x[40:],
        "y_test": 50 + 10 * x[40:, :2],
        **changed,
    }
    path = folder / "data.npz"
    np.savez(path, **arrays)
    return str(path)


def from_file(path: str, *keys: str, name: str = "npz") -> Scenario:
    text = TEXT.replace(TEXT[TEXT.index("[data]") : TEXT.index("[model]")], "")
    data = ", ".join((f"name='{name}'", f"path='{path}'", "partition='iid'", "clients=8", *keys))
    return Scenario.from_text(text, overrides=(f"data={{{data}}}", "privacy.epsilon=8.0"))


BOUNDS = ("task='regression'", "target_low=30.0", "target_high=[60.0, 70.0]")


def test_targets_of_a_file_are_scaled_by_the_scenarios_bounds(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = population(from_file(path, *BOUNDS).data).dataset
    y = np.load(path)["y_train"]
    assert data.y.dtype == np.float32
    assert data.y == pytest.approx(np.clip((y - 30) / [30, 40], 0, 1), abs=1e-6)
    test = (np.load(path)["y_test"] - 30) / [30, 40]
    assert data.y_test == pytest.approx(test, abs=1e-6)
    assert (test > 1).any()  # held-out targets are not cut
    people = population(from_file(path, *BOUNDS, "public_fraction=0.5").data)
    public = people.partition.public
    expected = ((y - 30) / [30, 40])[public]
    assert people.held_out("public")[1] == pytest.approx(expected, abs=1e-6)  # neither are public ones
    assert (expected > 1).any()
    clients = np.setdiff1d(np.arange(len(y)), public)
    assert np.array_equal(people.dataset.y[clients], data.y[clients])
    # Another client's target changes no other.
    y[0] = 1e6
    other = population(from_file(saved(tmp_path, y_train=y), *BOUNDS).data).dataset
    assert np.array_equal(other.y[1:], data.y[1:])
    single = saved(tmp_path, y_train=y[:, 0], y_test=np.zeros(20))
    assert population(from_file(single, *BOUNDS[:2], "target_high=70").data).dataset.y.shape == (40, 1)


def test_public_synthetic_targets_are_not_cut() -> None:
    narrow = ("data.task=regression", "data.target_low=-1.0", "data.target_high=1.0")
    people = population(scenario(*narrow, "data.public_fraction=0.5").data)
    _, y = people.held_out("public")
    assert y.min() < 0
    assert y.max() > 1
    trained = np.delete(people.dataset.y, people.partition.public, axis=0)
    assert (trained.min(), trained.max()) == (0, 1)


def test_a_table_has_several_targets(tmp_path: Path) -> None:
    rows = ["age,height,weight,sick,tired"]
    stream = np.random.default_rng(0)
    for _ in range(40):
        age, height, weight = stream.integers(20, 80), stream.normal(170, 10), stream.normal(70, 10)
        rows.append(f"{age},{height:.1f},{weight:.1f},{int(age > 50)},{int(weight > 70)}")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(rows))
    numbers = ("task='regression'", "label=['height','weight']", "target_low=0.0", "target_high=250.0")
    data = population(from_file(str(path), *numbers, name="table").data).dataset
    assert (data.y.shape[1], data.x.shape[1], data.class_names) == (2, 3, ("height", "weight"))
    assert 0.5 < data.y[:, 0].mean() < 0.8
    labels = ("task='multi-label'", "label=['sick','tired']")
    data = population(from_file(str(path), *labels, name="table").data).dataset
    assert set(np.unique(data.y)) == {0.0, 1.0}
    with pytest.raises(InputError, match=r"height.*only 0 and 1"):
        from_file(str(path), "task='multi-label'", "label=['sick','height']", name="table")


REFUSED = {
    "no bounds": (("data.task=regression",), "data.target_low: missing"),
    "bounds in the wrong order": (
        (*NUMBERS[:2], "data.target_high=-9.0"),
        "data.target_high.*must be above target_low = -8",
    ),
    "bounds of classes": (("data.target_low=0.0",), "data.target_low.*only a regression predicts numbers"),
    "too many bounds": ((*NUMBERS[:2], "data.target_high=[1.0,2.0]"), "2 numbers for 1 targets"),
    "a loss of classes": (("training.loss=huber",), "training.loss.*only a regression"),
    "a threshold without Huber's loss": (
        (*NUMBERS, "training.huber_threshold=0.1"),
        "training.huber_threshold.*without Huber's loss",
    ),
    "targets of classes": (("data.targets=2",), "data.targets.*each record has one class"),
    "dealt by class": (
        (*NUMBERS, "data.partition=dirichlet"),
        "data.partition.*deal records by their classes",
    ),
    "an unknown task": (("data.task=ranking",), "data.task"),
}


@pytest.mark.parametrize(("overrides", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_the_task_is_refused(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario(*overrides)


FILES = {
    "a missing target": ({"y_test": np.full((20, 2), np.nan)}, BOUNDS, "y_test has 40 targets that are NaN"),
    "numbers as labels": ({}, ("task='multi-label'",), "y_train has the label .*holds 0 and 1 alone"),
    "numbers as classes": (
        {"y_train": np.full(40, 0.5), "y_test": np.zeros(20)},
        (),
        'y_train has the label 0.5.*data.task = "regression"',
    ),
    "other targets to test on": ({"y_test": np.zeros((20, 3))}, BOUNDS, "targets have shape"),
    "images as targets": ({"y_train": np.zeros((40, 2, 2))}, BOUNDS, "y_train has shape"),
    "words": ({"y_train": np.full(40, "a")}, BOUNDS, "y_train holds text.*Save real numbers"),
    "a number of classes": ({}, (*BOUNDS, "classes=3"), "data.classes.*has no classes"),
}


@pytest.mark.parametrize(("changed", "keys", "message"), FILES.values(), ids=FILES)
def test_a_file_that_does_not_fit_the_task_is_refused(
    changed: dict[str, Any], keys: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        from_file(saved(tmp_path, **changed), *keys)


def test_an_attack_and_a_choice_of_settings_need_classes() -> None:
    data = "data={name='synthetic', records=12000, partition='iid', clients=20, public_fraction=0.5"
    for name in ("white-box", "tuned"):
        file = Path(__file__).parents[2] / "scenarios" / f"{name}.toml"
        load(file, overrides=(f"{data}}}", "model={name='logistic'}"))
        with pytest.raises(InputError, match=r"data\.task"):
            load(file, overrides=(f"{data}, task='multi-label'}}", "model={name='logistic'}"))


def test_older_runs_are_read_and_a_classification_has_no_new_keys(tmp_path: Path) -> None:
    document = run(scenario(), tmp_path, report=False)
    assert "metric" not in document
    assert "score" not in json.dumps([document["rounds"], document["final"]])
    del document["scenario"]["data"]["task"]
    tables = {key: value for key, value in document["scenario"].items() if key != "compare"}
    text = tomli_w.dumps(tables).encode()
    document["scenario_digest"] = hashlib.blake2b(text, digest_size=16).hexdigest()
    (Path(document["path"]) / "run.json").write_text(json.dumps(document))
    assert checked_document(Path(document["path"]))["final"] == document["final"]
