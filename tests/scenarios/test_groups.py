"""Groups of test records from a file to the record, the page, the export and the Python result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedprivacy as fp
from fedprivacy.data import npz, record_columns
from fedprivacy.errors import ScenarioError
from fedprivacy.models.prediction import named_classes
from fedprivacy.population import groups
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.records.run_record import TESTED_NOTE
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import loads
from fedprivacy.training.model_spec import model_spec
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.replay import replay
from scenarios.experiments.comparison import compare
from scenarios.runner import resume, run
from scenarios.stored.export import public_tables

TEXT = """
name = "clinics"
seed = 1
[data]
name = "table"
path = "clinics.csv"
label = "sick"
drop = ["race"]
partition = "iid"
clients = 20
scaling = "bounds"
low = 0.0
high = [100.0, 1.0, 1.0, 1.0]
held_out = 0.5
[model]
name = "logistic"
[training]
learning_rate = 2.0
[server]
rounds = 4
[sampling]
name = "all"
[privacy]
trust = "central"
adjacency = "replace-one"
clipping_norm = 1.0
epsilon = 8.0
delta = 1e-3
[evaluation]
groups = ["sex", "race", "age"]
edges.age = [40, 60]
[compare]
trusts = ["none", "central"]
epsilons = [8.0]
seeds = [1, 2]
"""


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A table in the current folder; race is no feature, and a few records lack it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stream = np.random.default_rng(1)
    age, sex = stream.integers(20, 90, 400), stream.choice(["f", "m"], 400)
    race = stream.choice(["blue", "green", None], 400, p=[0.6, 0.38, 0.02])
    sick = np.where((age > 55) ^ (sex == "m") & (stream.random(400) < 0.3), "yes", "no")
    frame = pd.DataFrame({"age": age, "sex": sex, "race": race, "sick": sick, "pulse": stream.random(400)})
    frame.to_csv("clinics.csv", index=False)
    return frame


def scenario(*overrides: str) -> Scenario:
    return Scenario.from_text(TEXT, overrides=overrides)


def test_a_run_measures_its_final_model_by_group(tmp_path: Path) -> None:
    asked = scenario()
    document = run(asked, tmp_path / "out")
    final = document["final"]
    assert [column["column"] for column in final["groups"]] == ["sex", "race", "age"]
    labels = [[group["group"] for group in column["groups"]] for column in final["groups"]]
    assert labels == [["f", "m"], ["blue", "green", "missing"], ["below 40", "40 to 60", "60 and above"]]
    for column in final["groups"]:
        assert sum(group["records"] for group in column["groups"]) == 200
        right = sum(group["accuracy"] * group["records"] for group in column["groups"])
        assert right / 200 == pytest.approx(final["accuracy"])
    # The figures of a group are those of its records.
    people, path = population(asked.data), Path(document["path"])
    module = model_spec(asked.model, people.features, 2).build(0)
    weights = RunDirectory(path).load_checkpoint().tensors["weights"].astype(np.float32)
    right = named_classes(module, weights, people.dataset.x_test) == people.dataset.y_test
    men = people.dataset.x_test[:, people.dataset.feature_names.index("sex=m")] == 1
    assert final["groups"][0]["groups"][1]["accuracy"] == pytest.approx(right[men].mean())
    assert final["measures"]["balanced_accuracy"] == pytest.approx(
        np.mean([one["accuracy"] for one in final["per_class"]])
    )
    last = document["rounds"][-1]
    assert last["balanced_accuracy"] == pytest.approx(final["measures"]["balanced_accuracy"])
    page = (path / "report.html").read_text()
    assert "For whom does it work" in page
    # Four rounds teach it no more than the most frequent class, so that no group is served worst.
    assert "gaps between groups are those of their labels" in page
    assert checked_document(path)["final"] == json.loads((path / "run.json").read_text())["final"]


def test_no_training_record_is_read_for_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, read = scenario(), []
    original = npz.blocks

    def blocks(path: str, name: str) -> object:
        read.append(name)
        return original(path, name)

    record_columns._feature.cache_clear()
    monkeypatch.setattr(npz, "blocks", blocks)
    assert len(groups.held_out_groups(asked.data, asked.evaluation)) == 3
    assert set(read) == {"x_test"}


def test_groups_change_neither_noise_nor_model(tmp_path: Path) -> None:
    plain = TEXT.replace('groups = ["sex", "race", "age"]\nedges.age = [40, 60]', "")
    paths = [
        Path(run(asked, tmp_path / "out", report=False)["path"])
        for asked in (scenario(), Scenario.from_text(plain))
    ]
    first, second = (RunDirectory(path).load_checkpoint().tensors["weights"] for path in paths)
    assert np.array_equal(first, second)
    assert "groups" not in json.loads((paths[1] / "run.json").read_text())["final"]


class Stop(Exception):
    """A fault in the middle of a run."""


def test_a_resumed_run_has_the_same_figures(tmp_path: Path) -> None:
    whole = run(scenario(), tmp_path / "whole", report=False)

    def stop(event: dict) -> None:
        if event["round"] == 1:
            raise Stop

    with pytest.raises(Stop):
        run(scenario(), tmp_path / "broken", on_round=stop, report=False)
    [path] = (tmp_path / "broken").iterdir()
    assert "groups" not in json.loads((path / "run.json").read_text())["final"]  # of no final model
    assert resume(path, report=False)["final"] == whole["final"]


@pytest.mark.exhaustive
def test_a_comparison_has_the_groups_of_each_cell_over_its_seeds(tmp_path: Path) -> None:
    document = compare(scenario(), tmp_path / "out", workers=1)
    path = Path(document["path"])
    for cell in document["cells"]:
        runs = [json.loads((path / each / "run.json").read_text()) for each in cell["runs"]]
        accuracies = [each["final"]["groups"][1]["groups"][0]["accuracy"] for each in runs]
        group = cell["groups"][1]["groups"][0]
        assert (group["group"], group["accuracy"]["mean"]) == ("blue", pytest.approx(np.mean(accuracies)))
        assert cell["measures"]["auroc"]["mean"] > 0.5
    assert checked_document(path)["cells"] == document["cells"]
    assert "For whom does it work" in (path / "report.html").read_text()
    rows = public_tables(document)["groups"]
    assert {(row["trust"], row["column"], row["group"]) for row in rows} >= {("central", "race", "green")}
    # Whoever changes a group's figure contradicts the runs.
    document["cells"][0]["groups"][0]["groups"][0]["accuracy"]["mean"] = 0.99
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(Exception, match="groups"):
        checked_document(path)


def test_the_python_result_has_groups_and_measures(tmp_path: Path) -> None:
    Path("clinics.toml").write_text(TEXT)
    result = fp.run("clinics.toml", out=tmp_path / "out", workers=1, progress=False)
    assert result.groups["column"].tolist() == ["sex"] * 2 + ["race"] * 3 + ["age"] * 3
    assert set(result.groups) == {
        *("column", "group", "records", "accuracy", "balanced_accuracy", "gap", "low", "high", "few"),
    }
    assert set(result.measures) == {"balanced_accuracy", "f1", "auroc", "calibration_error", "brier"}
    names = [path.name.rpartition("-")[2] for path in result.export(tmp_path / "tables")]
    assert names == ["rounds.csv", "groups.csv"]
    exported = pd.read_csv(next((tmp_path / "tables").glob("*-groups.csv")))
    assert exported["accuracy"].tolist() == pytest.approx(result.groups["accuracy"].tolist())


def test_where_test_records_are_of_clients_no_group_is_exported(tmp_path: Path) -> None:
    text = TEXT.replace('drop = ["race"]', 'user = "race"').replace("clients = 20\n", "")
    text = text.replace('partition = "iid"', 'partition = "by-user"').replace("epsilon = 8.0", "epsilon = 8")
    frame = pd.read_csv("clinics.csv").dropna()
    frame.to_csv("clinics.csv", index=False)
    text = text.replace('adjacency = "replace-one"', 'adjacency = "replace-one"\nunit = "example"')
    document = run(Scenario.from_text(text), tmp_path / "out", report=False)
    assert TESTED_NOTE in document["notes"]
    assert [group["group"] for group in document["final"]["groups"][1]["groups"]] == ["blue", "green"]
    assert "groups" not in public_tables(document)


@pytest.mark.parametrize("tested", ["clients", "others"])
def test_users_are_measured_only_where_none_of_them_is_a_client(tested: str, tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    x = stream.normal(size=(200, 2)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    users = np.arange(200) // 5
    rest = users[:100] if tested == "clients" else users[100:]
    arrays = {"x_train": x[:100], "y_train": y[:100], "x_test": x[100:], "y_test": y[100:]}
    np.savez("users.npz", user_train=users[:100], user_test=rest, **arrays)
    data = "data={name='npz', path='users.npz', partition='by-user'}"
    plain = TEXT[: TEXT.index("[evaluation]")]
    final = run(Scenario.from_text(plain, overrides=[data]), tmp_path / "out", report=False)["final"]
    assert ("users" in final) == (tested == "others")
    if tested == "others":
        assert (final["users"]["users"], final["users"]["worst_users"]) == (20, 2)


def test_unknown_columns_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match='"rce": no such column') as caught:
        scenario("evaluation.groups=['sex', 'rce']", "evaluation.edges={age = [40]}")
    assert caught.value.exit_code == 2
    assert 'Did you mean "race"?' in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_column_cannot_have_the_name_of_groups_of_clients() -> None:
    with pytest.raises(ScenarioError, match=r'"privacy\.groups": is the name under which groups of clients'):
        scenario("evaluation.groups=['sex', 'privacy.groups']", "evaluation.edges={}")


ATTACK = """
[federation]
chunk_size = 1
[game]
victim = 0
members = 20
nonmembers = 20
[attacks.lira]
kind = "released"
methods = ["lira"]
references = 8
"""


def test_an_attack_states_the_exposure_of_groups_beside_their_accuracy(tmp_path: Path) -> None:
    text = TEXT[: TEXT.index("[compare]")].replace("clients = 20", "clients = 2\npublic_fraction = 0.5")
    text = text.replace("held_out = 0.5", "held_out = 0.3").replace("delta = 1e-3", "delta = 1e-5")
    dealt = 'partition = "fixed-records"\nrecords_per_client = 60'  # 20 records are of nobody
    text = text.replace('partition = "iid"\nclients = 2', dealt)
    asked = loads(text + ATTACK)
    document = replay(asked, tmp_path / "out", workers=1)
    [exposure] = document["exposures"]
    assert list(exposure["groups"]) == ["sex", "age"]  # race is no feature: no client's record has it here
    assert "exposures" in document["operator_only"]
    partition = population(asked.data).partition
    pool = np.sort(np.concatenate([partition.order, partition.public]))
    assert exposure["records"] == len(pool) == 260
    for grouping in groups.training_groups(asked.data, asked.evaluation):
        parts = exposure["groups"][grouping.column]
        counts = [parts[label]["records"] for label in grouping.labels]
        assert counts == np.bincount(grouping.codes[pool]).tolist()
        for key in ("accuracy", "reference_accuracy"):
            assert all(0.4 < part[key]["value"] <= 1 for part in parts.values())
    assert checked_document(Path(document["path"]))["exposures"] == document["exposures"]
    public, operator = (
        (Path(document["path"]) / name).read_text() for name in ("report.html", "operator.html")
    )
    assert "Who pays and who is exposed" in operator
    assert "Who pays and who is exposed" not in public


@pytest.mark.exhaustive
def test_groups_and_users_of_real_data(tmp_path: Path, real_data: Callable[[str], Path]) -> None:
    settings = {"data.path": str(real_data("mnist.npz")), "server.rounds": 1}
    result = fp.run("mnist-writers", set=settings, out=tmp_path, workers=1, progress=False)
    users = result.document["final"]["users"]
    assert (users["users"], users["worst_users"]) == (297, 30)
    assert users["worst"] < users["mean"]
    settings = {"data.path": str(real_data("heart_disease.npz")), "server.rounds": 1}
    result = fp.run("hospitals", set=settings, out=tmp_path, workers=1, progress=False)
    assert result.groups["column"].unique().tolist() == ["sex", "age"]
    assert "users" not in result.document["final"]  # they are the clients
