"""A process beside the command: the same results, errors too, and none lost where it is killed."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator

import pytest

from fedprivacy.io import side_process
from fedprivacy.io.processes import CAN_FORK

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="processes cannot be forked here")


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(side_process, "cores", lambda: 2)
    with side_process.started(["json.tool"]):
        yield side_process.call("os:getpid")


def test_it_calls_functions_in_another_process(beside: int) -> None:
    assert beside != os.getpid()
    assert side_process.call("math:hypot", 3.0, 4.0) == 5.0


def test_errors_are_those_of_the_function(beside: int) -> None:
    with pytest.raises(ValueError, match="math domain error"):
        side_process.call("math:sqrt", -1.0)
    with pytest.raises(FileNotFoundError):
        side_process.call("os:stat", "no such file")
    assert side_process.call("os:getpid") == beside


def test_without_it_functions_are_called_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert side_process.call("os:getpid") == os.getpid()
    monkeypatch.setattr(side_process, "cores", lambda: 1)
    with side_process.started([]):
        assert side_process.call("os:getpid") == os.getpid()


def test_where_it_was_killed_the_work_is_done_here(beside: int) -> None:
    os.kill(beside, signal.SIGKILL)
    assert side_process.call("math:factorial", 5) == math.factorial(5)
    assert side_process.call("os:getpid") == os.getpid()


def test_a_forked_process_does_not_read_the_answers_of_its_parent(beside: int) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if side_process.call("os:getpid") == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert side_process.call("os:getpid") == beside


def test_an_answer_that_nobody_waited_for_is_not_the_next_one(beside: int) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            side_process.call("time:sleep", 60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert side_process.call("os:getpid") == os.getpid()


def test_it_ends_with_the_block_whatever_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_process, "cores", lambda: 2)
    started = time.monotonic()
    with side_process.started([]):
        pid = side_process.call("os:getpid")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert time.monotonic() - started < 30
