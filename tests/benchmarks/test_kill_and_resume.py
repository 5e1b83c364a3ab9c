"""Real runs, killed at random moments and gone on with: a small version of the benchmark."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from warm import ENVIRONMENT, warm

from benchmarks import kill_and_resume
from benchmarks.kill_and_resume import facts_of, shares, tasks, torture
from benchmarks.killing import Broken, Killer


@pytest.mark.exhaustive
@pytest.mark.slow
def test_runs_that_are_killed_end_with_the_same_bits_ledger_and_events(tmp_path: Path) -> None:
    killer = Killer(warm(), ENVIRONMENT, random.Random(3), groups=False)
    for number, (name, kills) in enumerate({"central run": 2, "local run": 2}.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert len(torture(tasks(30)[name], kills, killer, folder)) >= kills


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_end_that_differs_is_noticed(tmp_path: Path, monkeypatch) -> None:
    def changed(path: Path) -> dict:
        found = facts_of(path)
        if "broken" in path.parent.name:
            found["document"]["ledger"]["rounds"] += 1
        return found

    monkeypatch.setattr(kill_and_resume, "facts_of", changed)
    killer = Killer(warm(), ENVIRONMENT, random.Random(3), groups=False)
    with pytest.raises(Broken, match="other document"):
        torture(tasks(5)["central run"], 1, killer, tmp_path)
    [path] = (tmp_path / "whole").iterdir()
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**document, "rounds": []}))
    with pytest.raises(Broken, match="tell of other rounds"):
        facts_of(path)


def test_each_task_is_killed_and_runs_most() -> None:
    found = shares(36, list(tasks(60)))
    assert sum(found.values()) >= 36
    assert found["local run"] == found["central run"] > found["replay"] > 0
