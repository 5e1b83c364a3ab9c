"""The files of cells that are done: kept, found, and not believed where they are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.errors import InputError
from scenarios.jobs.cell_store import CellStore, digest_of


@pytest.fixture
def cells(tmp_path: Path) -> CellStore:
    return CellStore(tmp_path / "cells", "origin", 0.0)


def double(number: float) -> list[float]:
    return [2 * number]


def test_a_result_comes_back_to_the_last_bit(cells: CellStore) -> None:
    assert cells.find("a cell") is None
    result = {"x": [0.1 + 0.2, 1e-300, None, "ä"], "n": 2**60}
    assert cells.keep("a cell", result) == result == cells.find("a cell")
    assert cells.find("another cell") is None
    [file] = cells.folder.iterdir()
    assert file.name.startswith("a-cell-")


def test_names_that_look_alike_are_other_cells(cells: CellStore) -> None:
    for key in ("a/b", "a-b", "a b", "x" * 200, "x" * 201):
        cells.keep(key, key)
    for key in ("a/b", "a-b", "a b", "x" * 200, "x" * 201):
        assert cells.find(key) == key


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-10],
        lambda text: "",
        lambda text: text.replace("0.5", "0.6"),
        lambda text: text.replace("origin", "origen", 1),
        lambda text: "[]",
        lambda text: "[" * 100_000 + "]" * 100_000,
        lambda text: json.dumps({**json.loads(text), "digest": 5}),
        lambda text: json.dumps({**json.loads(text), "origin": "other"}),
    ],
)
def test_what_is_damaged_or_foreign_is_played_again_and_not_believed(
    cells: CellStore, damage, capsys
) -> None:
    jobs: list[Any] = [("one", (0.25,)), ("two", (1.0,))]
    assert dict(cells.complete(double, list, jobs, 1)) == {0: [0.5], 1: [2.0]}
    [file] = cells.folder.glob("one-*")
    whole = file.read_text()
    file.write_text(damage(whole))
    with pytest.raises(InputError, match="damaged, or not of this work"):
        cells.find("one")
    assert list(cells.complete(double, list, jobs, 1)) == [(1, [2.0]), (0, [0.5])]
    assert f"{file}: damaged, or not of this work: run again." in capsys.readouterr().err
    assert json.loads(file.read_text())["digest"] != ""
    assert cells.find("one") == [0.5]


def test_cells_of_other_work_or_another_place_are_not_believed(cells: CellStore) -> None:
    cells.keep("one", 1)
    with pytest.raises(InputError, match="not of this work"):
        CellStore(cells.folder, "other", 0.0).find("one")
    [file] = cells.folder.glob("one-*")
    file.rename(cells._file("two"))
    with pytest.raises(InputError, match="not of this work"):
        cells.find("two")


def test_a_result_with_numbers_as_keys_is_read_again(cells: CellStore) -> None:
    """As JSON its keys are text, and ten sorts before two: the digest is that of what a reader gets."""
    kept = cells.keep("one", {2: 0.1, 10: float("nan")})
    assert list(kept) == ["2", "10"]
    assert cells.find("one")["2"] == 0.1


def test_a_result_that_its_reader_refuses_is_played_again(cells: CellStore) -> None:
    refused = []

    def read(result: list[float]) -> list[float]:
        if not refused:
            refused.append(result)
            raise InputError("what it names is gone")
        return result

    cells.keep("one", [7.0])
    assert list(cells.complete(double, read, [("one", (0.25,))], 1)) == [(0, [0.5])]
    assert refused == [[7.0]]


def test_time_goes_on_where_it_was_left(tmp_path: Path, monkeypatch) -> None:
    now = iter([130.0, 170.0])
    monkeypatch.setattr("scenarios.jobs.cell_store.time.time", lambda: next(now))
    cells = CellStore(tmp_path, "origin", 100.0)
    assert cells.seconds() == 0.0
    cells.keep("one", 1)
    cells.keep("two", 2)
    assert cells.seconds() == 70.0


@pytest.mark.parametrize("seconds", ["1e999", "-5", "NaN", "7e4", "[]", '"9"'])
def test_times_of_damaged_cells_are_not_believed(cells: CellStore, seconds: str) -> None:
    cells.keep("one", 1)
    cells.keep("two", 2)
    before = cells.seconds()
    [file] = cells.folder.glob("one-*")
    content = json.loads(file.read_text())
    text = file.read_text().replace(f'"seconds": {content["seconds"]}', f'"seconds": {seconds}')
    assert text != file.read_text()
    file.write_text(text)
    assert cells.seconds() <= before
    if seconds != "7e4":  # nor where the digest fits
        content["seconds"] = json.loads(seconds)
        del content["digest"]
        file.write_text(json.dumps({"digest": digest_of(content), **content}))
        assert cells.seconds() <= before
