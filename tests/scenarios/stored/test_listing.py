"""Stored results as rows: filters, orders, tags, and folders that somebody prepared."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from scenarios.stored.listing import chosen, row_of, rows_of, tag, tags_of


@pytest.fixture
def copied(stored: dict[str, Path], tmp_path: Path) -> Path:
    """A folder with one run that a test may change."""
    return Path(shutil.copytree(stored["plain"], tmp_path / "runs" / "plain"))


def edited(path: Path, **changes: object) -> Path:
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(document | changes))
    return path


def names(rows: list) -> list[str]:
    return [row.path.name for row in rows]


def test_a_row_quotes_the_record(stored: dict[str, Path]) -> None:
    row = row_of(stored["plain"])
    assert (row.name, row.kind, row.status, row.trust) == ("digits", "run", "finished", "central")
    assert row.unit == "client, replace-one"
    assert row.epsilons["server"] is None
    assert row.epsilons["outsider"] == pytest.approx(2, abs=1e-3)
    assert row.accuracy == json.loads((stored["plain"] / "run.json").read_text())["final"]["accuracy"]
    assert row.guarantees == row_of(stored["none"]).guarantees == "whole"
    survey = row_of(stored["survey"])
    assert survey.accuracy is None
    assert re.fullmatch(r"[\w-]+(, .+)?: [\d.,]+( %)?", survey.answer)
    assert row.answer is None
    assert row_of(stored["compare"]).guarantees == "by cell"
    assert row_of(stored["compare"]).trust is None  # each of its cells has its own
    text = json.dumps(row.to_json())
    assert not [key for key in ("seed", "noise_key", "command", "digest") if key in text]


def test_the_newest_is_first(stored: dict[str, Path], folder: Path) -> None:
    rows = rows_of(folder)
    assert len(rows) == len(stored)
    assert [row.started for row in rows] == sorted((row.started for row in rows), reverse=True)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["trust=none"], {"none"}),
        (["trust!=central", "kind=run"], {"none"}),
        (["epsilon_outsider>2.5"], {"weaker"}),
        (["epsilon_outsider>=0.5", "epsilon_outsider<=1.5"], {"survey"}),
        (["delta<0.000005", "delta>0"], {"other-delta"}),
        (["unit=client, zero-out"], {"other-adjacency"}),
        (["kind=compare"], {"compare"}),
        (["accuracy<0"], set()),
    ],
)
def test_filters(stored: dict[str, Path], folder: Path, filters: list[str], expected: set[str]) -> None:
    assert set(names(chosen(rows_of(folder), filters, None))) == {stored[name].name for name in expected}


def test_orders_put_rows_without_a_value_last(stored: dict[str, Path], folder: Path) -> None:
    for sort in ("accuracy", "-accuracy"):
        values = [row.accuracy for row in chosen(rows_of(folder), [], sort)]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=sort.startswith("-"))
        assert values[len(known) :] == [None, None]


@pytest.mark.parametrize(
    ("filters", "sort", "expected"),
    [
        (["accuracy"], None, "no condition"),
        (["nope=1"], None, "no column 'nope'"),
        (["accuracy>x"], None, "'x' is no number"),
        ([], "acuracy", "Did you mean accuracy"),
    ],
)
def test_wrong_filters_and_orders_are_refused(
    stored: dict, folder: Path, filters: list, sort: str | None, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        chosen(rows_of(folder), filters, sort)


def test_tags(copied: Path) -> None:
    assert tag(copied, ["paper", "v1"]) == ("paper", "v1")
    assert tag(copied, ["v2"], ["v1"]) == tags_of(copied) == ("paper", "v2")
    assert names(chosen(rows_of(copied.parent), ["tags=v2"], None)) == ["plain"]
    assert names(chosen(rows_of(copied.parent), ["tags=v1"], None)) == []
    for wrong in (["a b"], ["<x>"], ["x" * 41], [""], [f"t{at}" for at in range(21)]):
        with pytest.raises(InputError):
            tag(copied, wrong)
    assert tags_of(copied) == ("paper", "v2")


def test_tags_are_not_written_through_a_link(copied: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text('["theirs"]')
    (copied / "tags.json").symlink_to(mine)
    assert tag(copied, ["paper"]) == ("paper",)
    assert mine.read_text() == '["theirs"]'
    (copied / "tags.json").unlink()
    (copied / "tags.json").mkdir()
    with pytest.raises(InputError, match=r"tags\.json"):
        tag(copied, ["paper"])


@pytest.mark.parametrize("text", ["{}", '["a b", 3, "ok"]', "[" * 100_000, '"x"', "\udc80", "nul"])
def test_tags_that_somebody_wrote(copied: Path, text: str) -> None:
    (copied / "tags.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert set(tags_of(copied)) <= {"ok"}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ["x"], "kind": 3, "status": None, "started": {}},
        {"privacy": [1], "final": "x", "scenario": None},
        {"privacy": {"guarantees": [3, {"observer": [1], "epsilon": "x", "unit": 7}]}},
        {"privacy": {"guarantees": {"a": 1}}, "final": {"accuracy": True}},
        {"final": {"accuracy": 10**18}, "name": "x" * 10_000},
    ],
)
def test_records_of_any_form_have_a_row_or_are_passed_over(copied: Path, changes: dict) -> None:
    edited(copied, **changes)
    (row,) = rows_of(copied.parent)
    json.dumps(row.to_json(), allow_nan=False)
    assert len(row.name) <= 200
    chosen([row], ["accuracy>0"], "epsilon_outsider")


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"schema": 99}', '{"schema": 1, "final": {"accuracy": 1e999}}', "[" * 10**5]
)
def test_damaged_records_are_passed_over(copied: Path, content: str) -> None:
    (copied / "run.json").write_text(content)
    assert rows_of(copied.parent) == []


def test_links_and_other_things_are_not_followed(copied: Path, stored: dict[str, Path]) -> None:
    parent = copied.parent
    (parent / "link").symlink_to(stored["plain"])
    (parent / "file").write_text("x")
    (parent / "empty").mkdir()
    (parent / "pipe").mkdir()
    os.mkfifo(parent / "pipe" / "run.json")
    (parent / "pipe" / "scenario.toml").write_text('name = "x"')
    assert names(rows_of(parent)) == ["plain"]


def test_unfinished_work_is_listed(copied: Path) -> None:
    (copied / "run.json").unlink()
    (row,) = rows_of(copied.parent)
    assert (row.name, row.status, row.trust, row.accuracy) == ("digits", "unfinished", "central", None)
    assert row.started
    assert row.guarantees == "not stated"


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        rows_of(tmp_path / "no")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Name the folder"):
        rows_of(tmp_path / "file")


@pytest.mark.exhaustive
def test_five_hundred_runs_have_a_row_each(copied: Path) -> None:
    for at in range(499):
        (copied.parent / f"run-{at}").mkdir()
        for name in ("run.json", "scenario.toml"):
            os.link(copied / name, copied.parent / f"run-{at}" / name)
    assert len(rows_of(copied.parent)) == 500


@pytest.mark.exhaustive
def test_rows_need_neither_torch_nor_flower(stored: dict[str, Path], folder: Path) -> None:
    code = f"import sys, fedprivacy; print(len(fedprivacy.runs({str(folder)!r})), {{'torch', 'flwr'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(stored)} set()\n"
