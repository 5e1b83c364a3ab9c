"""Run folders that somebody else made: links in them lead nowhere, and what is no file ends in our errors."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from fedprivacy.errors import FedPrivacyError, InputError, RunError
from fedprivacy.io.atomic import replace_file
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from fedprivacy.report import write
from fedprivacy.scenario import Scenario
from scenarios import runner
from scenarios.experiments import comparison
from scenarios.federation import state
from scenarios.federation.folder import check_folder, claim
from scenarios.jobs.cell_store import CellStore, digest_of


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, base_text: str) -> Path:
    scenario = Scenario.from_text(base_text, "base", ["server.rounds=2"])
    return Path(runner.run(scenario, tmp_path_factory.mktemp("runs"))["path"])


@pytest.fixture
def broken(finished: Path, tmp_path: Path) -> Path:
    """A run that can be gone on with: it was broken off after two rounds."""
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(document | {"status": "running"}))
    return folder


@pytest.mark.parametrize(
    "name",
    ["checkpoint", "events.jsonl", "report.html", "run.json", "run.json.1.part", "checkpoint/x", "new/a/b"],
)
@pytest.mark.parametrize("kind", ["file", "folder", "pipe"])
def test_no_link_in_a_run_folder_is_followed(broken: Path, tmp_path: Path, name: str, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(1, 5):
        (outside / f"round-{number:06d}.safetensors").write_text("mine")
    place = broken / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(outside if kind == "folder" else outside / "round-000001.safetensors")
    before = sorted(path.name for path in broken.iterdir())
    with pytest.raises(InputError):
        runner.resume(broken)
    assert sorted(path.name for path in broken.iterdir()) == before
    assert [file.read_text() for file in sorted(outside.iterdir())] == ["mine"] * 4


def test_a_link_to_a_run_folder_is_its_users(broken: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(broken)
    assert runner.resume(tmp_path / "latest")["status"] == "finished"


def test_a_link_that_comes_later_is_not_followed_either(broken: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (broken / "checkpoint").rename(outside)
    (broken / "checkpoint").symlink_to(outside)
    run, before = RunDirectory(broken), sorted(outside.iterdir())
    run.drop_checkpoints(after=0)
    assert run.load_checkpoint() is None
    with pytest.raises(NotADirectoryError):
        run.save_checkpoint(Checkpoint(9, {}, {}))
    (broken / "events.jsonl").unlink()
    (broken / "events.jsonl").symlink_to(outside / "events")
    with pytest.raises(OSError, match="symbolic links"):
        run.append_event({"round": 0})
    assert sorted(outside.iterdir()) == before


def test_a_pipe_in_place_of_the_scenario_is_to_be_removed(broken: Path) -> None:
    (broken / "scenario.toml").unlink()
    os.mkfifo(broken / "scenario.toml")
    with pytest.raises(InputError, match=r"scenario\.toml: a pipe inside .* Remove it"):
        runner.resume(broken)


@pytest.mark.parametrize(
    "name", ["run.json", "scenario.toml", "events.jsonl", "report.html", "lock", "checkpoint"]
)
def test_a_folder_where_a_file_belongs_ends_in_our_errors(broken: Path, name: str) -> None:
    place = broken / name
    if place.is_dir():
        shutil.rmtree(place)
        place.touch()
    else:
        place.unlink(missing_ok=True)
        place.mkdir()
    with pytest.raises((FedPrivacyError, NotADirectoryError)) as raised:
        runner.resume(broken)
    assert name in str(raised.value) or "not a run directory" in str(raised.value)


def test_a_lock_with_a_second_name_is_not_emptied(broken: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    os.link(tmp_path / "mine", broken / "lock")
    with pytest.raises(InputError, match=r"lock: a file with a second name, and no lock of ours. Remove it"):
        runner.resume(broken)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["../outside", "/etc", "a/../../outside"])
def test_cells_stay_below_their_comparison(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "run.json").write_text(json.dumps({"schema": 1}))
    base = tmp_path / "compare"
    base.mkdir()
    with pytest.raises(InputError, match="which is not below it"):
        comparison._document_of(base, {"run": name, "digest": comparison._digest(tmp_path / "outside")})


def test_a_cell_that_is_a_link_is_played_again(tmp_path: Path) -> None:
    cells = CellStore(tmp_path / "cells", digest_of("work"), 0.0)
    cells.keep("a", 1)
    [file] = cells.folder.iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="damaged"):
        cells.find("a")
    cells.keep("a", 2)
    assert cells.find("a") == 2
    assert json.loads((tmp_path / "elsewhere").read_text())["result"] == 1


def test_a_full_disk_under_the_report_is_no_mistake_of_the_user(finished: Path, monkeypatch) -> None:
    """The system's own error is given by hand: a full file system takes a mount."""
    document, error = json.loads((finished / "run.json").read_text()), OSError(28, "No space left on device")
    before = (finished / "report.html").read_bytes()

    def full(*given: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(
            RunError, match=r"No space left.*The record is whole: make room, .*: fedprivacy report"
        ) as raised:
            write(document, finished)
    assert raised.value.exit_code == 1
    assert (finished / "report.html").read_bytes() == before
    assert not list(finished.glob("*.part"))


FEDERATION = {
    "schema": 1, "address": "127.0.0.1:1", "root_certificates": None, "nodes": 1, "noise": "system",
    "scenario": None, "mark": "0" * 32, "processes": [{"name": "superlink", "pid": 2, "began": None}],
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, "1" * 100_000, "{}", "[]", "", "\ud800", "NaN",
        *(
            json.dumps(FEDERATION | change)
            for change in (
                {"nodes": 10**30}, {"nodes": -1}, {"nodes": 1e400}, {"nodes": True}, {"address": ["x"]},
                {"mark": "x"}, {"processes": [{"name": "a", "pid": -1, "began": None}]},
                {"processes": [{"name": "a", "pid": 1, "began": None}]},
                {"processes": [{"name": "a", "pid": 2**40, "began": None}]}, {"processes": {}},
            )
        ),
    ],
)  # fmt: skip
def test_a_federation_that_is_damaged_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "federation.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(InputError, match="damaged, so which processes belong to it is not known"):
        state.read(tmp_path)
    path.write_text(json.dumps(FEDERATION))
    assert state.read(tmp_path) is not None


def test_a_federation_is_a_file_and_its_folder_has_no_links(tmp_path: Path) -> None:
    path = tmp_path / "federation.json"
    os.mkfifo(path)
    with pytest.raises(InputError, match="a pipe, not a file"):
        state.read(tmp_path)
    path.unlink()
    claim(tmp_path)
    path.unlink()
    check_folder(tmp_path)
    replace_file(tmp_path / "scenario.toml", b"")
    (tmp_path / "logs").symlink_to("/etc")
    with pytest.raises(InputError, match="logs: a link inside"):
        check_folder(tmp_path)
