"""Exports hold public values: what the record marks operator-only is left out."""

from __future__ import annotations

import csv
import errno
import json
import tempfile
from pathlib import Path

import pandas as pd
import pytest

import fedprivacy as fp
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file
from fedprivacy.records.run_directory import read_document
from scenarios.stored import export as module
from scenarios.stored import tables
from scenarios.stored.export import SIMULATED, _csv, cell, export, public_tables
from scenarios.stored.tables import TABLES


def test_rounds_as_csv(stored: dict[str, Path], tmp_path: Path) -> None:
    (path,) = export(stored["plain"], tmp_path / "new", "csv")
    assert path.name == f"{stored['plain'].name}-rounds.csv"
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert row["round"] == "1"
    assert row["epsilon_server"] == ""
    assert (row["unit"], row["adjacency"], row["delta"]) == ("client", "replace-one", "1e-05")
    assert float(row["epsilon_outsider"]) == pytest.approx(2, abs=1e-3)


def test_a_proved_epsilon_of_an_audit_has_its_own_delta_and_confidence() -> None:
    guarantee = {"epsilon": None, "delta": None, "unit": "client", "adjacency": "replace-one"}
    observer = {
        "observer": "server",
        "guarantee": guarantee,
        "one_run": {"epsilon": 3.7, "ceiling": 4.8, "delta": 1e-5, "confidence": 0.95},
        "verdict": {"holds": None},
    }
    [row] = tables.observers({"observers": [observer]})
    assert row["claimed_epsilon"] is row["delta"] is None
    assert (row["proven_epsilon"], row["proven_delta"], row["proven_confidence"]) == (3.7, 1e-5, 0.95)


def test_cells_as_parquet(stored: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (path,) = export(stored["compare"], tmp_path, "parquet")
    table = pd.read_parquet(path)
    assert table["trust"].tolist() == ["none", "central"]
    assert table["unit"].tolist() == ["client", "client"]
    assert table["adjacency"].tolist() == ["replace-one", "replace-one"]
    assert table["delta"].tolist()[1] == 1e-5
    assert table["seeds"].tolist() == [1, 1]  # how many, not which


def test_attacks_and_their_curves(tmp_path: Path) -> None:
    small = {"game.members": 20, "game.nonmembers": 40, "model.hidden": [16], "attacks.passive.rounds": 2}
    result = fp.replay(
        "active-gradient-ascent",
        attacks=["passive"],
        rounds=2,
        set=small,
        out=tmp_path,
        progress=False,
        workers=1,
    )
    names = [path.name.removeprefix(result.path.name) for path in result.export(tmp_path / "tables")]
    assert names == ["-attacks.csv", "-roc.csv"]
    assert result.roc("passive").axes[0].lines
    with pytest.raises(InputError, match="no such attack"):
        result.roc("nope")


def test_of_a_survey_operator_only_values_are_left_out(stored: dict[str, Path]) -> None:
    document = read_document(stored["survey"] / "run.json")
    assert "queries[].answered" in document["operator_only"]
    (row,) = public_tables(document)["queries"]
    assert "answered" not in row
    assert row["simulation_true"] == 0.6
    assert "true" not in row
    assert "true" in SIMULATED["statistics"]


def test_every_hidden_field_is_left_out(stored: dict[str, Path]) -> None:
    """Whatever a record marks, even a field that a table is made of."""
    document = read_document(stored["plain"] / "run.json")
    assert "loss" in public_tables(document)["rounds"][0]
    document["operator_only"].append("rounds[].loss")
    assert "loss" not in public_tables(document)["rounds"][0]


def test_no_export_names_a_seed_or_a_digest(stored: dict[str, Path]) -> None:
    for path in stored.values():
        document = read_document(path / "run.json")
        text = json.dumps(public_tables(document))
        for key in ("noise_key", "scenario_digest", "command"):
            assert not document.get(key) or str(document[key]) not in text
        assert '"seed"' not in text


@pytest.mark.parametrize("kind", ["plain", "compare"])
def test_where_held_out_records_belong_to_clients_no_accuracy_is_exported(
    stored: dict[str, Path], kind: str
) -> None:
    document = read_document(stored[kind] / "run.json")
    whole = {column for rows in public_tables(document).values() for row in rows for column in row}
    document["notes"] = [*document["notes"], TESTED_NOTE]
    kept_out = whole - {column for rows in public_tables(document).values() for row in rows for column in row}
    assert kept_out >= ({"accuracy", "loss"} if kind == "plain" else {"accuracy"})
    assert not [column for column in kept_out if column.startswith("epsilon")]


def test_private_sizes_are_marked_as_known_to_the_simulation_alone() -> None:
    scenario = fp.scenario_for("star-wars-survey", set={
        "privacy.trust": "central", "privacy.adjacency": "add-remove", "compare.trusts": ["central"],
        "compare.clients": [50], "compare.repeats": 2, "compare.epsilons": [1.0],
    })  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        document = fp.compare(scenario, out=folder, workers=1, progress=False).document
    (rows,) = public_tables(document).values()
    assert "clients" not in rows[0]
    assert rows[0]["simulation_clients"] == 50


def test_nothing_is_written_over_or_half_written(stored: dict[str, Path], tmp_path: Path) -> None:
    export(stored["plain"], tmp_path, "csv")
    with pytest.raises(InputError, match="already exists"):
        export(stored["plain"], tmp_path, "csv")
    with pytest.raises(InputError, match="no such format"):
        export(stored["plain"], tmp_path, "xlsx")
    with pytest.raises(InputError):
        export(tmp_path, tmp_path, "csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Choose another folder"):
        export(stored["plain"], tmp_path / "file" / "in", "csv")
    assert len(list(tmp_path.iterdir())) == 2


def test_every_table_with_epsilons_states_their_terms(stored: dict[str, Path]) -> None:
    for path in stored.values():
        for rows in public_tables(read_document(path / "run.json")).values():
            for row in rows:
                if any(column.startswith("epsilon") for column in row):
                    assert row.keys() >= {"unit", "adjacency", "delta"}


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@x"])
def test_texts_are_no_formulas(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert cell("a\x1b[2J\n") == "a\\x1b[2J\\n"
    assert cell(-1.5) == -1.5


def test_headings_are_no_formulas_either() -> None:
    (head, values) = _csv([{"=cmd()": 1, "a\x1b": 2}]).decode().splitlines()
    assert head == "'=cmd(),a\\x1b"
    assert values == "1,2"


def test_files_of_others_stay_and_nothing_is_left_after_an_error(
    stored: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, written = stored["compare"], []
    two = {"first": tables.cells, "second": tables.cells}
    monkeypatch.setitem(tables.TABLES, "compare", two)

    def full(path: Path, content: bytes) -> Path:
        written.append(path)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace_file(path, content)

    monkeypatch.setattr(module, "replace_file", full)
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InputError, match="No space left"):
        export(run, tmp_path, "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert len(written) == 2

    link = tmp_path / f"{run.name}-second.csv"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="already exists"):
        export(run, tmp_path, "csv")
    assert {path.name for path in tmp_path.iterdir()} == {"mine", link.name}
    assert link.is_symlink()


def test_every_kind_of_result_has_tables() -> None:
    from scenarios.api.results import KINDS

    assert set(TABLES) == set(KINDS)
