"""Removal takes run directories alone, all of them or none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.io.lock import alone
from scenarios.stored.listing import tag
from scenarios.stored.removal import check_removable, remove


@pytest.fixture
def copied(stored: dict[str, Path], tmp_path: Path) -> Path:
    """A folder with one run that a test may change."""
    return Path(shutil.copytree(stored["plain"], tmp_path / "runs" / "plain"))


def unfinished(copied: Path) -> Path:
    """A directory of a run whose process ended before any work."""
    path = copied.parent / "20260101-100000-digits-0a1b2c"
    path.mkdir()
    shutil.copy(copied / "scenario.toml", path)
    return path


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_each_kind_of_result_with_all_that_a_run_makes_is_removed(
    stored: dict[str, Path], tmp_path: Path
) -> None:
    for name, path in stored.items():
        copy = Path(shutil.copytree(path, tmp_path / name))
        tag(copy, ["paper"])
        (copy / "figures").mkdir()
        (copy / "figures-operator").mkdir()
        for made in (
            "figures-operator/a.svg",
            f"{name}-operator-values.parquet",
            "figures/captions.txt",
            "figures/a.svg",
            f"{name}-rounds.csv",
            "run.json.7-0123abcd.part",
        ):
            (copy / made).write_text("x")
    remove(*(tmp_path / name for name in stored))
    assert not files(tmp_path)


def test_unfinished_work_is_removed(copied: Path) -> None:
    remove(unfinished(copied))
    (copied / "run.json").unlink()
    remove(copied)
    assert not files(copied.parent)


def test_a_removal_takes_the_run_alone(copied: Path) -> None:
    other = Path(shutil.copytree(copied, copied.parent / "other"))
    remove(copied, copied, copied.parent / "other" / ".." / "plain")
    assert list(copied.parent.iterdir()) == [other]


def test_links_and_folders_that_are_no_runs_are_not_removed(copied: Path, tmp_path: Path) -> None:
    link, plain, mine = tmp_path / "link", tmp_path / "plain", tmp_path / "mine"
    link.symlink_to(copied)
    plain.mkdir()
    mine.mkdir()
    shutil.copy(copied / "scenario.toml", mine)
    before = files(tmp_path)
    with pytest.raises(InputError) as caught:
        remove(link, plain, mine, copied, tmp_path / "missing")
    assert len(str(caught.value).splitlines()) == 4
    assert files(tmp_path) == before


@pytest.mark.parametrize("stray", [["scenario.toml"], ["scenario.toml", "run.json"]])
def test_a_folder_of_runs_is_no_run(copied: Path, stray: list[str]) -> None:
    for name in stray:
        shutil.copy(copied / name, copied.parent)
    before = files(copied.parent)
    with pytest.raises(InputError):
        remove(copied.parent)
    assert files(copied.parent) == before


@pytest.mark.parametrize("name", ["thesis.tex", "data/table.csv", "checkpoint/mine.txt", "cells/notes.md"])
def test_a_run_directory_with_files_of_others_stays(copied: Path, name: str) -> None:
    (copied / name).parent.mkdir(exist_ok=True)
    (copied / name).write_text("x")
    before = files(copied)
    with pytest.raises(InputError, match="which no run makes"):
        remove(copied)
    assert files(copied) == before


def test_a_link_in_a_run_directory_is_refused(copied: Path, stored: dict[str, Path]) -> None:
    (copied / "elsewhere").symlink_to(stored["plain"])
    with pytest.raises(InputError, match="elsewhere"):
        remove(copied)
    assert (stored["plain"] / "run.json").is_file()


def test_a_record_of_something_else_makes_no_run_directory(copied: Path) -> None:
    for text in ('{"schema": 1}', '{"schema": 1, "kind": "list"}', "{}", "["):
        (copied / "run.json").write_text(text)
        with pytest.raises(InputError):
            check_removable([copied])


def test_the_folder_that_one_is_in_stays(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (copied, copied / "checkpoint"):
        monkeypatch.chdir(place)
        for path in (Path(), copied):
            with pytest.raises(InputError):
                remove(path)
    assert (copied / "run.json").is_file()


def test_of_several_none_is_removed_where_one_is_worked_on(copied: Path) -> None:
    other = Path(shutil.copytree(copied, copied.parent / "other"))
    with alone(other), pytest.raises(InputError, match="at work on it"):
        remove(copied, other)
    assert (copied / "run.json").is_file()
    assert not (copied / "lock").exists()


def test_a_run_of_a_comparison_is_not_removed_twice(stored: dict[str, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(stored["compare"], tmp_path / "compare"))
    inner = next(record.parent for record in path.rglob("run.json") if record.parent != path)
    with pytest.raises(InputError, match="inside another"):
        remove(path, inner)
    assert inner.is_dir()
