"""`fedprivacy import`: from a table to a data set and a scenario that run."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedprivacy.data import tables
from fedprivacy.errors import InputError
from fedprivacy.io.escape import printable
from fedprivacy.scenario import Scenario
from scenarios.authoring import import_table as module
from scenarios.authoring.import_table import Imported, import_table


@pytest.fixture
def hospitals(tmp_path: Path) -> Path:
    stream = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "age": stream.integers(20, 90, 120),
            "chol": np.where(stream.random(120) < 0.1, np.nan, 200.0),
            "sex": stream.choice(["f", "m"], 120),
            "hospital": np.repeat(["Ulm", "Bern", "Linz", "Graz"], 30),
        }
    )
    path = tmp_path / "Heart Disease.csv"
    table.assign(sick=np.where(table.age > 55, "yes", "no")).to_csv(path, index=False)
    return path


def imported(path: Path, **changes: object) -> Imported:
    options = {"label": "sick", "client": "hospital", "test": "0.2", "drop": [], "bounds": [], "name": None}
    return import_table(path, **{**options, "out": path.parent / "out", **changes})


def test_the_scenario_is_ready_and_names_what_is_released(hospitals: Path) -> None:
    result = imported(hospitals)
    assert result.scenario.name == "heart-disease.toml"
    scenario = Scenario.read(result.scenario)
    assert scenario.data.partition == "by-user"
    assert scenario.privacy.unit == "example"
    text = result.scenario.read_text()
    assert "Read off the records, and so released" in text
    assert text.startswith("# Written by `fedprivacy import ")
    notes = " ".join(result.notes)
    for part in (
        "classes were read off",
        "sex: its 2 categories",
        "missing values became 0",
        "bounds of age, chol",
        "held out",
        "Test records belong to clients",
        "names of the 4 clients",
    ):
        assert part in notes
    assert result.data.stat().st_mode & 0o77 == 0  # personal data
    assert result.command == shlex.join(["fedprivacy", "run", str(result.scenario)])


def test_public_bounds_and_dropped_columns(hospitals: Path) -> None:
    result = imported(hospitals, bounds=["age=0:120"], drop=["chol"])
    scenario = Scenario.read(result.scenario)
    assert scenario.data.high[0] == 120
    assert "released" not in result.scenario.read_text()
    assert "--bounds age=0:120" in result.scenario.read_text()


def test_a_file_of_test_records(hospitals: Path) -> None:
    table = pd.read_csv(hospitals)
    table.iloc[:100].to_csv(hospitals.parent / "train.csv", index=False)
    table.iloc[100:].to_csv(hospitals.parent / "test.csv", index=False)
    result = imported(hospitals.parent / "train.csv", test=str(hospitals.parent / "test.csv"))
    with np.load(result.data) as content:
        assert (len(content["y_train"]), len(content["y_test"])) == (100, 20)


def test_test_records_of_other_owners_are_not_the_clients(hospitals: Path) -> None:
    table = pd.read_csv(hospitals)
    last = table.hospital == "Graz"
    table[~last].to_csv(hospitals.parent / "train.csv", index=False)
    table[last].to_csv(hospitals.parent / "test.csv", index=False)
    result = imported(hospitals.parent / "train.csv", test=str(hospitals.parent / "test.csv"))
    assert not any("Test records" in note for note in result.notes)
    assert "Graz" not in result.scenario.read_text()


def test_one_client_is_named_in_the_singular(hospitals: Path) -> None:
    table = pd.read_csv(hospitals)
    table[table.hospital == "Graz"].to_csv(hospitals.parent / "one.csv", index=False)
    notes = imported(hospitals.parent / "one.csv").notes
    assert any("The name of the only client is in one.toml" in note for note in notes)


def test_without_a_column_of_clients_each_record_is_one(hospitals: Path) -> None:
    result = imported(hospitals, client=None, drop=["hospital"])
    scenario = Scenario.read(result.scenario)
    assert (scenario.data.partition, scenario.privacy.unit) == ("one-per-example", "client")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"label": "sik", "client": "clinic", "drop": ["x"]}, ["'sik'", "'clinic'", "'x'"]),
        (
            {"test": "1.5", "bounds": ["age", "age=2:1", "age=0:inf"]},
            ["--test 1.5", "--bounds age:", "--bounds age=2:1", "age=0:inf"],
        ),
        ({"bounds": ["age=0:100", "age=0:120"]}, ["--bounds age=0:120: this column has bounds already"]),
        ({"bounds": ["aeg=0:1", "b=0:1"]}, ["'aeg'", "'b'", "age"]),
        ({"test": "nowhere.csv"}, ["no such file"]),
        ({"name": "../x"}, ["../x"]),
    ],
)
def test_mistakes_come_at_once_and_nothing_is_written(
    hospitals: Path, changes: dict, expected: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        imported(hospitals, **changes)
    assert all(text in str(caught.value) for text in expected), str(caught.value)
    assert not (hospitals.parent / "out").exists()


def test_nothing_is_written_over(hospitals: Path) -> None:
    imported(hospitals)
    with pytest.raises(InputError, match="already exists"):
        imported(hospitals)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), InputError("x")]
)
def test_nothing_is_half_written(
    hospitals: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(module.Brought, "text", fail)
    with pytest.raises((InputError, KeyboardInterrupt)):
        imported(hospitals)
    assert not list((hospitals.parent / "out").iterdir())


def test_names_from_a_table_are_text_in_the_scenario(tmp_path: Path) -> None:
    table = pd.DataFrame({'a"]\nname = "evil': range(50), "b": [0, 1] * 25})
    table.to_csv(tmp_path / "t.csv", index=False)
    scenario = Scenario.read(imported(tmp_path / "t.csv", label="b", client=None).scenario)
    assert scenario.name == "t"


@pytest.mark.parametrize("seed", range(8))
def test_a_scenario_can_be_read_whatever_its_columns_are_called(tmp_path: Path, seed: int) -> None:
    stream = np.random.default_rng(seed)
    acting = [*"\n\r\t\"'\\\x7f\x85\u2028\u202e]#=`", "\x1b[2J"]
    hostile = ["".join(stream.choice([*acting, "a", "é"], 6)) + str(at) for at in range(5)]
    label, owner, number, text, *_ = hostile
    folder = tmp_path / f"o{hostile[4]}"
    table = pd.DataFrame(
        {
            label: stream.choice([f"yes\n{number}", "no\x1b"], 60),
            owner: np.repeat([f"\n[privacy]\nepsilon = 9\u202e{at}" for at in range(3)], 20),
            number: stream.integers(2, 9, 60),
            text: stream.choice(['"""\n[data]', "\x00#"], 60),
        }
    )
    folder.mkdir()
    path = folder / f"{text}.csv"
    table.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    table = tables.read_table(path)  # whose names have become those that CSV can hold
    names = list(table.columns)
    result = imported(path, label=names[0], client=names[1], name="hostile", out=folder)
    scenario = Scenario.read(result.scenario)
    assert (scenario.name, scenario.privacy.epsilon) == ("hostile", 4)
    written = result.scenario.read_text()
    assert printable(written) == written
    assert all("\n" not in note for note in result.notes)
    with pytest.raises(InputError) as caught:
        imported(path, label=names[0], client=names[1], name="other", drop=["\nno"], out=folder)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("owners", "unit"), [(19, "example"), (20, "client"), (24, "client")])
def test_from_twenty_owners_on_clients_are_protected_and_not_named(
    tmp_path: Path, owners: int, unit: str
) -> None:
    """Of 20 owners 4 are held out: the 16 who train are protected as the 20 would be."""
    names = [f"owner-{at}" for at in range(owners) for _ in range(10)]
    table = pd.DataFrame({"age": range(len(names)), "hospital": names, "sick": [0, 1] * (len(names) // 2)})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = imported(tmp_path / "t.csv", bounds=["age=0:120"])
    assert Scenario.read(result.scenario).privacy.unit == unit
    assert ("owner-1" in result.scenario.read_text()) == (unit == "example")
    assert any("names of the" in note for note in result.notes) == (unit == "example")


def test_a_folder_that_toml_cannot_name_is_refused(hospitals: Path) -> None:
    with pytest.raises(InputError, match="Unicode"):
        imported(hospitals, out=hospitals.parent / "o\udcff")
