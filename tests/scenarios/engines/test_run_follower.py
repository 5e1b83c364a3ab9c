"""A run followed through its log: real processes that write one, as Flower's command does."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

import scenarios.engines.run_follower as following
from fedprivacy.errors import RunError
from fedprivacy.io.log_transfer import Sender
from scenarios.engines.run_follower import Following
from scenarios.federation.control import Link

TOKEN = "4" * 32
# A shell, which starts at once on a busy machine too.
WRITE = 'wait=$1; shift; [ $# -eq 0 ] || printf "%s\\n" "$@"; exec sleep "$wait"'


class Logs:
    """A SuperLink's side of a run: its log at each reading, and its status at each question.

    Args:
        logs: The lines of each reading; the last goes on. `None` at the end of one: it stays open.
        statuses: What is said of the run each time; an error is raised. The last goes on.
    """

    link = Link("127.0.0.1:1")

    def __init__(self, logs: Sequence[Sequence[str | None]], statuses: Sequence[Any]) -> None:
        self.logs, self.statuses = list(logs), list(statuses)
        self.read: list[subprocess.Popen[bytes]] = []

    def log(self, run: int) -> subprocess.Popen[bytes]:
        lines = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]
        wait = "60" if lines and lines[-1] is None else "0"
        words = [line for line in lines if line is not None]
        self.read.append(subprocess.Popen(["sh", "-c", WRITE, "log", wait, *words], stdout=subprocess.PIPE))
        return self.read[-1]

    def status(self, run: int) -> tuple[str, str]:
        found = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(autouse=True)
def quickly(monkeypatch) -> None:
    for name, seconds in {"_SILENT": 0.5, "_GONE": 0.5, "_PENDING": 0.5}.items():
        monkeypatch.setattr(following, name, seconds)
    monkeypatch.setattr(following.time, "sleep", lambda seconds: None)


def record() -> list[str]:
    sender = Sender(TOKEN)
    events = (
        [line for number in range(3) for line in sender.event({"round": number})]
        if (begin := sender.begin("/far"))
        else []
    )
    return [begin, *events, *sender.file("run.json", b"{}"), sender.end("finished")]


def follow(logs: Logs) -> tuple[Any, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    result = Following(logs, 7, TOKEN, events.append).follow()  # type: ignore[arg-type]
    assert all(process.poll() is not None for process in logs.read)
    return result, events


def test_the_record_is_home_as_soon_as_its_end_is_there() -> None:
    result, events = follow(Logs([["INFO: hello", *record(), None]], [("running", "")]))
    assert result.files == {"run.json": b"{}"}
    assert [event["round"] for event in events] == [0, 1, 2]


def test_a_stream_that_breaks_is_read_again_from_its_beginning() -> None:
    whole = record()
    logs = Logs([whole[:3], whole[:4], whole], [("running", ""), RunError("away"), ("running", "")])
    result, events = follow(logs)
    assert result.status == "finished"
    assert [event["round"] for event in events] == [0, 1, 2]


def test_a_line_that_was_lost_on_the_way_is_fetched_again_once() -> None:
    whole = record()
    result, events = follow(Logs([[*whole[:2], *whole[3:]], whole], [("running", "")]))
    assert result.status == "finished"
    assert [event["round"] for event in events] == [0, 1, 2]
    with pytest.raises(RunError, match="line 2 of the record is missing"):
        follow(Logs([[*whole[:2], *whole[3:]]], [("running", "")]))


def test_a_run_that_ends_without_its_record_says_what_is_known() -> None:
    cases = {
        (
            "finished:failed",
            "ServerApp failed with exception: no room",
        ): r"failed: ServerApp failed .*no room",
        ("finished:stopped", ""): "was stopped",
        ("finished:completed", ""): "ended, but its record did not come home",
    }
    for status, said in cases.items():
        log = [record()[0], "\x1b[91mERROR\x1b[0m: the disk is full\x1b[2J"]
        with pytest.raises(
            RunError, match=rf"(?s)run 7 {said}.*is in /far on.*ERROR: the disk is full\\x1b\[2J"
        ):
            follow(Logs([log], [status]))


def test_a_superlink_that_is_gone_is_not_waited_for_long() -> None:
    with pytest.raises(RunError, match=r"(?s)SuperLink 127.0.0.1:1 is gone, and perhaps the run.*in /far on"):
        follow(Logs([[record()[0]]], [RunError("no answer")]))


def test_a_silent_log_is_held_to_the_runs_status() -> None:
    with pytest.raises(RunError, match="run 7 was stopped"):
        follow(Logs([[record()[0], None]], [("running", ""), ("finished:stopped", "")]))


def test_a_run_that_is_never_begun_ends() -> None:
    with pytest.raises(RunError, match="was not begun within"):
        follow(Logs([[]], [("pending", "")]))
