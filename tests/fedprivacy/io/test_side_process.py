"""A process beside the command: the same results, errors too, and none lost where it is killed."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.accounting.epsilon import _accounted
from fedprivacy.errors import InputError
from fedprivacy.io import side_process
from fedprivacy.io.processes import CAN_FORK
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.training.model_spec import model_spec

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


@pytest.mark.exhaustive
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


def test_it_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_process, "cores", lambda: 2)
    with side_process.started([]):
        pid = side_process.call("os:getpid")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


class Odd(Exception):
    """It is pickled, and cannot be read again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def odd() -> None:
    raise Odd("here", str(os.getpid()))


def unpicklable() -> object:
    return lambda: None


def test_errors_and_results_that_cannot_be_sent_are_met_here(beside: int, capfd) -> None:
    with pytest.raises(Odd, match=f"here and {os.getpid()}"):
        side_process.call(f"{__name__}:odd")
    assert callable(side_process.call(f"{__name__}:unpicklable"))
    assert side_process.call("os:getpid") == beside
    assert capfd.readouterr().err == ""


def test_a_module_that_cannot_be_imported_stops_nothing(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.setattr(side_process, "cores", lambda: 2)
    with side_process.started(["no_such_module"]):
        assert side_process.call("os:getpid") != os.getpid()
        with pytest.raises(ModuleNotFoundError):
            side_process.call("no_such_module:name")
    assert capfd.readouterr().err == ""


def test_where_the_system_refuses_a_process_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(side_process, "cores", lambda: 2)
    monkeypatch.setattr(os, "fork", refused)
    with side_process.started([]):
        assert side_process.call("os:getpid") == os.getpid()


def test_a_terminated_process_prints_nothing(beside: int, capfd) -> None:
    os.kill(beside, signal.SIGTERM)
    assert side_process.call("os:getpid") == os.getpid()
    assert capfd.readouterr().err == ""


def test_it_cleans_up_when_it_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd) -> None:
    mark = tmp_path / "left"
    mark.touch()
    monkeypatch.setattr(side_process, "cores", lambda: 2)
    with side_process.started([]):
        side_process.call("atexit:register", os.unlink, str(mark))
    assert not mark.exists()
    assert capfd.readouterr().err == ""


def test_noise_and_epsilon_are_those_of_this_process(
    monkeypatch: pytest.MonkeyPatch, make_scenario: Callable[..., Any]
) -> None:
    scenario = make_scenario("privacy.epsilon=2.0")
    here = plan_of(scenario, model_spec(scenario.model, (64,), 10, allow_code=False))
    account = here.spent()
    _accounted.cache_clear()
    monkeypatch.setattr(side_process, "cores", lambda: 2)
    with side_process.started([]):
        beside = plan_of(scenario, model_spec(scenario.model, (64,), 10, allow_code=False))
        assert beside == here
        assert beside.spent() == account
        with pytest.raises(InputError, match=r"requires less noise than"):
            here.calibrate(1e9)
