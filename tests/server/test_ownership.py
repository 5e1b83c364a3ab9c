"""A run of `flwr run` holds its directory: nobody else begins to work there while it does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict
from warm import ENVIRONMENT, warm

import server.record_upload
from clients.app import app as client_app
from fedprivacy.errors import HeldError, InputError
from fedprivacy.records.ownership import take_up_run
from scenarios.engines.embedded import EmbeddedGrid
from server.app import app as server_app


class Meanwhile(EmbeddedGrid):
    """A grid that calls somebody with the run's directory when the first messages go out."""

    def __init__(self, out: Path, look: Callable[[Path], Any], config: dict[str, Any]) -> None:
        super().__init__(client_app, [{}], config)
        self.out, self.look, self.seen = out, look, []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        if not self.seen:
            [path] = self.out.iterdir()
            self.seen.append((path, self.look(path)))
        return super().push_messages(messages)


def play(out: Path, text: str, look: Callable[[Path], Any], **more: str) -> Meanwhile:
    """Plays a scenario as `flwr run` does, and has somebody look while it is under way."""
    config = {"scenario": text, "out": str(out), **more}
    grid = Meanwhile(out, look, config)
    context = Context(
        run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config=config
    )
    server_app(grid, context)
    return grid


def resume(path: Path) -> subprocess.CompletedProcess[str]:
    """What another process is told that goes on with a run."""
    return subprocess.run(
        [*warm(), "run", "--resume", str(path)], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )


def held(path: Path) -> bool:
    try:
        with take_up_run(path):
            return False
    except HeldError:
        return True


@pytest.mark.exhaustive
def test_another_process_is_refused_while_the_run_is_under_way(make_scenario, tmp_path: Path) -> None:
    [(path, refused)] = play(tmp_path, make_scenario().to_toml(), resume).seen
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"{path}: process {os.getpid()} is at work on it.")
    assert not (path / "lock").exists()
    after = resume(path)  # it is no longer held; what `flwr run` began is gone on with by nobody
    assert after.returncode == 2
    assert "made by `flwr run`" in after.stderr


def test_statistics_are_held_too(make_statistics, tmp_path: Path) -> None:
    [(path, refused)] = play(tmp_path, make_statistics().to_toml(), held).seen
    assert refused
    assert not held(path)


def test_a_run_that_fails_lets_go(make_scenario, tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        assert held(path)
        raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        play(tmp_path, make_scenario().to_toml(), fail)
    [path] = tmp_path.iterdir()
    assert not held(path)


def test_it_is_held_until_the_record_is_home(make_scenario, tmp_path: Path, monkeypatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(server.record_upload, "_PAUSE", 0.0)
    monkeypatch.setattr(
        server.record_upload, "_to_log", lambda line: seen.extend(map(held, tmp_path.iterdir()))
    )
    play(tmp_path, make_scenario().to_toml(), lambda path: None, record="5" * 32)
    assert len(seen) > 5
    assert all(seen)
