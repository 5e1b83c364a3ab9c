"""The server's side of a record's way home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import server.record_upload
from fedprivacy.errors import RunError
from fedprivacy.io.log_transfer import MOST_BYTES, Arrivals
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from scenarios.engines.run_follower import _LONGEST
from server.record_upload import LogUpload, uploading

TOKEN = "5" * 32


@pytest.fixture
def log(monkeypatch) -> Iterator[list[str]]:
    """What is written to the run's log, without the pauses that Flower's uploader needs."""
    written: list[str] = []
    monkeypatch.setattr(server.record_upload, "_to_log", written.append)
    monkeypatch.setattr(server.record_upload, "_PAUSE", 0.0)
    return written


def arrived(log: list[str]) -> Arrivals:
    home = Arrivals(TOKEN)
    for line in log:
        home.feed(line)
    return home


def a_run(tmp_path: Path, weights: int = 10) -> RunDirectory:
    directory = RunDirectory.create(tmp_path, "small", 'name = "small"\n')
    directory.write_document({"schema": 1, "status": "running"})
    directory.append_event({"round": 0})
    for rounds in (1, 2):
        directory.save_checkpoint(Checkpoint(rounds, {"weights": np.zeros(weights)}, {}))
    return directory


def test_the_record_goes_home_with_its_newest_checkpoint(tmp_path: Path, log: list[str]) -> None:
    directory = a_run(tmp_path)
    with uploading({"record": TOKEN}) as upload:
        upload.begin(directory)
        upload.event({"round": 0, "first_failure": "x" * 100_000})
        directory.write_document({"schema": 1, "status": "finished"})
    result = arrived(log).whole()
    assert max(map(len, log)) < _LONGEST
    assert sorted(result.files) == [
        "checkpoint/round-000002.safetensors", "events.jsonl", "run.json", "scenario.toml",
    ]  # fmt: skip
    assert json.loads(result.files["run.json"])["status"] == "finished"
    assert result.path == str(directory.path)
    assert result.events == [{"round": 0, "first_failure": "x" * 100_000}]


def test_before_the_first_round_goes_what_is_charged_in_advance(tmp_path: Path, log: list[str]) -> None:
    """Should the log end there, it is known at home that the whole plan may have been released."""
    upload = LogUpload({"record": TOKEN})
    upload.begin(a_run(tmp_path))
    upload.on_begin()
    result = arrived(log).result()
    assert json.loads(result.files["run.json"])["status"] == "running"
    assert result.status is None


def test_a_run_that_fails_says_why(tmp_path: Path, log: list[str]) -> None:
    directory = a_run(tmp_path)

    def fail() -> None:
        with uploading({"record": TOKEN}) as upload:
            upload.begin(directory)
            raise RunError("round 0: all 3 clients failed. First: @record " + TOKEN)

    with pytest.raises(RunError, match="all 3 clients failed"):
        fail()
    result = arrived(log).whole()
    assert (result.status, result.error) == (
        "failed", "round 0: all 3 clients failed. First: @record " + TOKEN,
    )  # fmt: skip
    assert "run.json" in result.files


def test_a_run_that_could_not_begin_says_why_too(log: list[str]) -> None:
    with pytest.raises(ValueError, match="no such"), uploading({"record": TOKEN}):
        raise ValueError("no such thing")
    result = arrived(log).whole()
    assert (result.status, result.error, result.files) == ("failed", "ValueError: no such thing", {})


def test_nothing_is_written_where_nobody_asked(tmp_path: Path, log: list[str]) -> None:
    for config in ({}, {"record": ""}, {"record": "x"}, {"record": 7}):
        with uploading(config) as upload:
            upload.begin(a_run(tmp_path))
            upload.on_begin()
            upload.event({"round": 0})
    assert log == []


def test_a_model_that_is_too_large_stays_and_the_record_goes(tmp_path: Path, log: list[str]) -> None:
    directory = a_run(tmp_path, weights=MOST_BYTES // 8)
    with uploading({"record": TOKEN}) as upload:
        upload.begin(directory)
    result = arrived(log).whole()
    assert result.left_out == "checkpoint/round-000002.safetensors"
    assert sorted(result.files) == ["events.jsonl", "run.json", "scenario.toml"]
    assert result.status == "finished"


def test_a_line_begins_a_line_whatever_was_written_before(capsys) -> None:
    print("INFO: half a l", end="")
    upload = LogUpload({"record": TOKEN})
    server.record_upload._to_log(next(upload._sender.event({"round": 0})))
    assert capsys.readouterr().out.splitlines()[1].startswith("@record ")
