"""A table as `data.path`: made once into a private .npz file, with every problem at its key."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedprivacy.data.source import SourceError
from fedprivacy.data.table_file import TableSource, file
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario
from fedprivacy.verification.verify import checked_document
from scenarios.authoring.import_table import import_table
from scenarios.runner import run

TEXT = """
name = "visits"
seed = 3
[data]
name = "table"
path = "visits.csv"
label = "sick"
user = "clinic"
partition = "by-user"
scaling = "bounds"
low = 0.0
high = [100.0, 1.0, 1.0]
[model]
name = "logistic"
[server]
rounds = 2
[training]
learning_rate = 1.0
[sampling]
name = "all"
[privacy]
trust = "central"
unit = "example"
adjacency = "replace-one"
clipping_norm = 1.0
epsilon = 4.0
delta = 1e-4
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    random = np.random.default_rng(1)
    age = random.integers(20, 90, 200)
    pd.DataFrame(
        {
            "age": age,
            "smoker": random.choice(["yes", "no"], 200),
            "clinic": random.choice(["Bern", "Graz", "Linz"], 200),
            "sick": np.where(age + random.normal(0, 10, 200) > 55, "yes", "no"),
        }
    ).to_csv("visits.csv", index=False)
    return tmp_path


def source(**changes: object) -> TableSource:
    keys = {"path": "visits.csv", "label": "sick", "user": "clinic", "held_out": 0.2, **changes}
    return TableSource.of(keys)


def test_a_table_is_made_once_and_again_when_it_changes(here: Path) -> None:
    first = file(source())
    before = Path(first).stat().st_mtime_ns
    assert file(source()) == first
    assert Path(first).stat().st_mtime_ns == before
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
    assert file(source(drop=["smoker"])) != first
    table = pd.read_csv("visits.csv")
    table["age"] += 1
    table.to_csv("visits.csv", index=False)
    os.utime("visits.csv", ns=(1, 1))
    assert file(source()) != first


def test_it_is_the_file_that_import_writes(here: Path) -> None:
    imported = import_table(
        Path("visits.csv"),
        label="sick",
        client="clinic",
        test="0.2",
        drop=(),
        bounds=(),
        name="npz",
        out=here,
    )
    with np.load(file(source())) as made, np.load(imported.data) as written:
        assert set(made) == set(written)
        assert all(np.array_equal(made[name], written[name]) for name in made)


def test_a_run_on_a_table_can_be_verified_again(here: Path) -> None:
    document = run(Scenario.from_text(TEXT), here / "runs")
    assert document["plan"]["population"] == 3
    assert TESTED_NOTE in document["notes"]  # held-out records are of the same clinics
    folder = Path(document["path"])
    assert checked_document(folder)["privacy"] == document["privacy"]
    Path("visits.csv").unlink()  # a record is verified without its data
    assert checked_document(folder)["privacy"] == document["privacy"]


def test_test_records_may_be_a_second_table(here: Path) -> None:
    pd.read_csv("visits.csv").head(50).to_csv("test.csv", index=False)
    with np.load(file(source(test="test.csv"))) as made:
        assert len(made["y_train"]) == 200
        assert len(made["y_test"]) == 50


def test_every_problem_is_reported_with_its_line(here: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(TEXT, "mine.toml", ["data.label=none", "data.user=nobody"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert all("data.path: visits.csv: has no column" in line for line in lines)
    with pytest.raises(ScenarioError, match="no such file"):
        Scenario.from_text(TEXT, "mine.toml", ["data.path=nothing.csv"])
    with pytest.raises(ScenarioError, match="Name it: user"):
        Scenario.from_text(TEXT.replace('user = "clinic"\n', ""), "mine.toml")
    with pytest.raises(SourceError, match="leaves no records"):
        file(source(held_out=1e-9))


def test_its_records_are_read_by_the_server_too() -> None:
    """On a federation no guarantee is claimed against a server that has read the table itself."""
    from server.app import _FILES

    assert "table" in _FILES
