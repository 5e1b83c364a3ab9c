"""Comparisons and replays that are killed go on by cell, to the same document."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_and_resume import ATTACKED
from benchmarks.killing import timeless
from fedprivacy.errors import HeldError, InputError
from fedprivacy.io.lock import alone
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import load, loads
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.verification.verify import checked_document
from scenarios.attacks import attacker_seats
from scenarios.attacks.replay import replay
from scenarios.experiments.comparison import compare
from scenarios.experiments.statistics_comparison import compare as sweep
from scenarios.jobs.manifest import manifest_in

TRAINED = """name = "trained"
seed = 1
[data]
name = "synthetic"
records = 60
test_records = 50
features = 4
partition = "iid"
clients = 12
[model]
name = "logistic"
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
epsilon = 1.0
delta = 1e-3
[federation]
chunk_size = 5
[compare]
trusts = ["central", "local"]
epsilons = [8.0]
seeds = [3, 4]
"""
ASKED = """name = "asked"
seed = 5
[data]
name = "bits"
clients = 40
share = 0.6
[queries.seen]
kind = "mean-of-bits"
[privacy]
trust = "central"
epsilon = 1.0
[compare]
trusts = ["local", "central"]
epsilons = [0.5, 2.0]
repeats = 12
"""
PLAYS: dict[str, Callable[..., dict[str, Any]]] = {"trained": compare, "asked": sweep, "attacked": replay}
TEXTS = {"trained": TRAINED, "asked": ASKED, "attacked": ATTACKED}
CELLS = {"trained": 6, "asked": 8, "attacked": 4}


class Killed(BaseException):
    """Nothing in the code catches it."""


def scenario(name: str) -> Any:
    return loads(TEXTS[name])


def killed(name: str, out: Path, after: int, resume: Path | None = None) -> Path:
    """The directory of one that was killed when so many cells were done: nothing closed it."""
    cells = []

    def stop(label: str, done: int, total: int) -> None:
        if not label.startswith("trained "):
            cells.append(label)
        if len(cells) == after:
            raise Killed

    options = {"on_attack" if name == "attacked" else "on_run": stop}
    with pytest.raises(Killed):
        PLAYS[name](scenario(name), out, workers=1, resume=resume, **options)
    path = resume or next(out.iterdir())
    (path / "run.json").unlink()
    (path / "report.html").unlink()
    return path


def go_on(name: str, path: Path, workers: int = 1) -> tuple[dict[str, Any], list[str]]:
    """The document, and the labels of the runs that were trained and the cells that were played or found."""
    told: list[str] = []
    options = {"on_attack" if name == "attacked" else "on_run": lambda label, *_: told.append(label)}
    scenario = load(path / "scenario.toml")
    assert isinstance(scenario, Scenario | Statistics)
    return PLAYS[name](scenario, path.parent, workers=workers, resume=path, **options), told


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> Callable[[str], dict[str, Any]]:
    """The documents of those that nobody broke off."""
    found: dict[str, dict[str, Any]] = {}

    def whole(name: str) -> dict[str, Any]:
        if name not in found:
            found[name] = PLAYS[name](scenario(name), tmp_path_factory.mktemp(name), workers=1)
        return found[name]

    return whole


def files(path: Path) -> dict[str, int]:
    """When each cell was written."""
    return {file.name: file.stat().st_mtime_ns for file in (path / "cells").iterdir()}


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", ["trained", "asked", "attacked"])
def test_what_was_killed_goes_on_by_cell_to_the_same_document(wholes, tmp_path: Path, name: str) -> None:
    whole = wholes(name)
    path = killed(name, tmp_path, 1)
    first = files(path)
    assert len(first) == 1
    killed(name, tmp_path, 3, path)  # killed while it goes on, too
    before = files(path)
    assert len(before) == 3
    assert first.items() <= before.items()
    [damaged, *others] = sorted(before)
    file = path / "cells" / damaged
    file.write_text(file.read_text().replace('"seconds": ', '"seconds": 1', 1))
    document, told = go_on(name, path)
    after = files(path)
    assert len(after) == CELLS[name]
    assert {one: after[one] for one in others} == {one: before[one] for one in others}
    assert after[damaged] != before[damaged]
    assert not [label for label in told if label.startswith("trained ")]
    assert timeless(document) == timeless(whole)
    assert json.loads((path / "run.json").read_text()) == json.loads(json.dumps(document))
    assert timeless(checked_document(path)) == timeless(whole)
    assert (path / "report.html").exists()
    assert not list(path.rglob("*.part"))
    assert not (path / "lock").exists()
    finished = (path / "run.json").read_bytes()
    (path / "report.html").unlink()
    assert timeless(go_on(name, path)[0]) == timeless(whole)
    assert (path / "run.json").read_bytes() == finished
    assert (path / "report.html").exists()


@pytest.mark.exhaustive
def test_a_cell_that_was_killed_in_the_middle_goes_on_from_its_checkpoint(
    wholes, tmp_path: Path, monkeypatch
) -> None:
    """And one whose record was changed after it had finished is run again."""
    path = killed("trained", tmp_path, 2)
    [first, _] = sorted((path / "central-epsilon-8").iterdir())
    document = json.loads((first / "run.json").read_text())
    (first / "run.json").write_text(json.dumps({**document, "final": {**document["final"], "accuracy": 1.0}}))
    saved, kept = RunDirectory.save_checkpoint, []

    def stop(self: RunDirectory, checkpoint: Any) -> None:
        saved(self, checkpoint)
        if "local" in str(self.path) and checkpoint.rounds == 2:
            kept.append((self.path, (self.path / "run.json").read_text()))
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunDirectory, "save_checkpoint", stop)
        with pytest.raises(Killed):
            go_on("trained", path)
    [(half, running)] = kept
    (half / "run.json").write_text(running)  # what a process that was killed leaves
    rounds = []
    monkeypatch.setattr(
        RunDirectory,
        "save_checkpoint",
        lambda self, one: (rounds.append((self.path, one.rounds)), saved(self, one)),
    )
    found, _ = go_on("trained", path)
    assert timeless(found) == timeless(wholes("trained"))
    assert [number for where, number in rounds if where == half] == [3]
    assert not first.exists()
    assert {len(list((path / label).iterdir())) for label in ("central-epsilon-8", "local-epsilon-8")} == {2}
    # Its rounds are those of the whole one, to the last bit of each loss.
    for cell, other in zip(found["cells"], wholes("trained")["cells"], strict=True):
        for run, same in zip(cell["runs"], other["runs"], strict=True):
            mine = RunDirectory(path / run).document()
            theirs = RunDirectory(Path(wholes("trained")["path"]) / same).document()
            for key in ("rounds", "ledger", "noise_key"):
                assert timeless(mine[key]) == timeless(theirs[key])


@pytest.mark.exhaustive
def test_a_run_that_finished_before_its_cell_was_written_is_taken_as_it_is(
    wholes, tmp_path: Path, monkeypatch
) -> None:
    path = killed("trained", tmp_path, 1)
    [cell] = (path / "cells").iterdir()
    cell.unlink()
    [first] = (path / "central-epsilon-8").iterdir()
    before = (first / "run.json").read_bytes()
    document, _ = go_on("trained", path)
    assert timeless(document) == timeless(wholes("trained"))
    assert (first / "run.json").read_bytes() == before
    assert str(first.relative_to(path)) in document["cells"][0]["runs"]


@pytest.mark.exhaustive
def test_a_run_that_another_process_works_on_is_neither_removed_nor_closed(wholes, tmp_path: Path) -> None:
    path = killed("trained", tmp_path, 1)
    [cell] = (path / "cells").iterdir()
    cell.unlink()
    [live] = (path / "central-epsilon-8").iterdir()
    document = json.loads((live / "run.json").read_text())
    (live / "run.json").write_text(json.dumps({**document, "status": "running"}))
    before = (live / "run.json").read_bytes()
    with alone(live), pytest.raises(HeldError, match="is at work on it"):
        go_on("trained", path)
    assert (live / "run.json").read_bytes() == before
    (live / "lock").symlink_to(tmp_path / "elsewhere")  # nor one whose lock cannot be had
    with pytest.raises(InputError, match="lock: a link inside"):
        go_on("trained", path)
    assert (live / "run.json").read_bytes() == before
    (live / "lock").unlink()
    assert timeless(go_on("trained", path)[0]) == timeless(wholes("trained"))


@pytest.mark.exhaustive
def test_an_attack_that_is_played_again_asks_the_same_and_costs_nothing_more(
    wholes, tmp_path: Path, monkeypatch
) -> None:
    """Killed after its clients have answered, and before anything was written of it; and trained again."""
    heard: list[tuple[str, bytes]] = []
    real = attacker_seats.attack_from_seat

    def listen(setup, branch, tensors, see, spent) -> Any:
        def both(sight: Any) -> None:
            heard.append(
                (f"{branch.key} {setup.scenario.seed} {sight.round}", sight.update.numpy().tobytes())
            )
            see(sight)

        return real(setup, branch, tensors, both, spent)

    def deaf(*given: Any) -> Any:
        listen(*given)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(attacker_seats, "attack_from_seat", deaf)
        with pytest.raises(Killed):
            replay(scenario("attacked"), tmp_path, workers=1)
    [path] = tmp_path.iterdir()
    (path / "run.json").unlink()
    accounts = [(path / f"run-{seed}" / "spent.json").read_bytes() for seed in (1, 2)]
    answers = dict(heard)
    assert answers
    assert b"[]" not in accounts
    [stored] = (path / "run-1" / "checkpoint").iterdir()
    stored.write_bytes(stored.read_bytes()[:-1])
    heard.clear()
    monkeypatch.setattr(attacker_seats, "attack_from_seat", listen)
    document, told = go_on("attacked", path)
    assert [label for label in told if label.startswith("trained ")] == ["trained epsilon 8, seed 1"]
    again = dict(heard)
    assert {key: again[key] for key in answers} == answers
    assert len(again) == len(heard)  # no round twice
    assert [(path / f"run-{seed}" / "spent.json").read_bytes() for seed in (1, 2)] == accounts
    assert timeless(document) == timeless(wholes("attacked"))
    whole = Path(wholes("attacked")["path"])
    assert [(whole / f"run-{seed}" / "spent.json").read_bytes() for seed in (1, 2)] == accounts


def test_an_account_that_is_gone_is_never_begun_anew(tmp_path: Path) -> None:
    path = killed("attacked", tmp_path, 1)
    (path / "run-1" / "spent.json").unlink()
    shutil.rmtree(path / "run-1" / "checkpoint")
    with pytest.raises(InputError, match=r"spent\.json: missing or damaged"):
        go_on("attacked", path)
    assert not (path / "run-1" / "spent.json").exists()


@pytest.mark.exhaustive
def test_a_replay_of_stored_runs_goes_on_with_them(wholes, tmp_path: Path) -> None:
    stored = tmp_path / "stored"
    shutil.copytree(wholes("attacked")["path"], stored)
    asked = scenario("attacked").model_copy(
        update={"attacks": {"climb": scenario("attacked").attacks["climb"]}}
    )

    def stop(*_: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        replay(asked, tmp_path / "out", workers=1, stored=stored, on_attack=stop)
    [path] = (tmp_path / "out").iterdir()
    assert manifest_in(path, "replay")["facts"]["stored"] == str(stored)
    (path / "run.json").unlink()
    again = load(path / "scenario.toml")
    assert isinstance(again, AttackScenario)
    document = replay(again, tmp_path, workers=1, stored=stored, resume=path)
    [climb] = [one for one in wholes("attacked")["attacks"] if one["name"] == "climb"]
    assert timeless(document["attacks"]) == timeless([climb])


def test_the_message_to_who_interrupts_has_the_command_that_goes_on(tmp_path: Path, capsys) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "it's here"
    with pytest.raises(KeyboardInterrupt):
        sweep(scenario("asked"), out, workers=1, on_run=stop)
    [path] = out.iterdir()
    assert f"Resume with: fedprivacy compare --resume {shlex.quote(str(path))}\n" in capsys.readouterr().err
    assert RunDirectory(path).document()["status"] == "interrupted"
    assert go_on("asked", path)[0]["status"] == "finished"


def test_a_damaged_document_of_finished_work_is_made_again_of_its_cells(
    wholes, tmp_path: Path, capsys
) -> None:
    path = tmp_path / "work"
    shutil.copytree(wholes("asked")["path"], path)
    before = files(path)
    (path / "run.json").write_text('{"schema": 1, "stat')
    document, _ = go_on("asked", path)
    assert timeless(document) == timeless(wholes("asked"))
    assert files(path) == before
    assert "run.json: damaged" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["scenario", "versions", "data", "begun", "no begun", "nothing"])
def test_what_is_not_what_it_began_with_is_refused(tmp_path: Path, change: str) -> None:
    path = killed("asked", tmp_path, 1)
    file, text = path / "scenario.toml", (path / "begun.json").read_text()
    begun = json.loads(text)
    message = {
        "scenario": "changed since the work began",
        "versions": r"begun with numpy 1\.0 \(here",
        "data": "the data changed since the work began",
        "begun": r"begun\.json: damaged",
        "no begun": "written by a version without stored cells",
        "nothing": "nothing was begun in it: .*fedprivacy compare .*scenario.toml",
    }[change]
    if change == "scenario":
        file.write_text(file.read_text().replace("share = 0.6", "share = 0.7"))
    elif change == "versions":
        begun["versions"]["numpy"] = "1.0"
        (path / "begun.json").write_text(json.dumps(begun))
    elif change == "data":
        (path / "begun.json").write_text(json.dumps({**begun, "data": "other"}))
    elif change == "begun":
        (path / "begun.json").write_text(text[:-20])
    else:
        (path / "begun.json").unlink()
        if change == "no begun":
            (path / "run.json").write_text('{"schema": 1, "kind": "compare-statistics"}')
    cells = files(path)
    with pytest.raises(InputError, match=message):
        go_on("asked", path)
    assert files(path) == cells


def test_a_directory_of_another_kind_says_by_which_command_it_goes_on(wholes) -> None:
    path = Path(wholes("trained")["path"])
    with pytest.raises(InputError, match=r"a compare\. Resume it with: fedprivacy compare --resume"):
        manifest_in(path, "replay")
    run = path / wholes("trained")["cells"][0]["runs"][0]
    with pytest.raises(InputError, match=r"a run\. Resume it with: fedprivacy run --resume"):
        manifest_in(run, "compare")
