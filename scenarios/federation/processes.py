"""The processes of a federation that was started here: begun in sessions of their own, found again, ended.

Flower starts its own helpers in new sessions, so neither a process group nor a parent finds all of them.
Every process of a federation inherits a random mark in its environment, and by that each one is found,
also one whose parent has died; no other process can have it, so a pid that was given away again is never hit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.errors import RunError

MARK = "FEDPRIVACY_FEDERATION"
_PROC = Path("/proc")


@dataclass(frozen=True)
class Started:
    """A process that `up` started.

    Args:
        name: What it is: "superlink", "node-0", ...
        pid: Its id, which is its process group's and its session's too.
        began: When it began, in clock ticks since the machine did; None where the system does not say.
    """

    name: str
    pid: int
    began: int | None

    def runs(self) -> bool:
        """Whether it is there: a process of this id that began then, and is not a zombie."""
        if not _PROC.is_dir():
            return _exists(self.pid)
        return self.began is not None and _began(self.pid) == self.began


def start(
    name: str, command: Sequence[str], *, log: Path, cwd: Path, environment: Mapping[str, str]
) -> Started:
    """Starts a process in a session of its own, so that Ctrl-C in a terminal does not reach it.

    Args:
        name: What it is.
        command: Program and arguments.
        log: Where its output goes, readable by its owner alone.
        cwd: Where it works.
        environment: All of its environment.
    """
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as stream:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process.returncode = 0  # it outlives us: nobody here waits for it
    return Started(name, process.pid, _began(process.pid))


def living(mark: str, started: Sequence[Started]) -> list[int]:
    """The ids of all processes of a federation that are there, its children's children too.

    Args:
        mark: The federation's mark.
        started: Those that `up` started; where there is no /proc nothing else is known.
    """
    if not _PROC.is_dir():
        return [process.pid for process in started if process.runs()]
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and wanted in _environment(entry) and _began(int(entry.name)) is not None:
            found.append(int(entry.name))
    return sorted(found)


def end(mark: str, started: Sequence[Started], *, grace: float = 10.0) -> int:
    """Ends all processes of a federation: kindly first, then by force.

    Args:
        mark: The federation's mark.
        started: Those that `up` started.
        grace: Seconds that they have to end themselves.

    Returns:
        How many there were.

    Raises:
        RunError: if one is left.
    """
    there = set(living(mark, started))
    count = len(there)
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + seconds
        told: set[int] = set()
        while there and time.monotonic() < deadline:
            for pid in there - told:  # one that was begun meanwhile is told as well
                _tell(pid, number)
            told |= there
            time.sleep(0.1)
            _reap(started)
            there = set(living(mark, started))
    if there:
        raise RunError(f"these processes of the federation do not end: {', '.join(map(str, sorted(there)))}.")
    return count


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log, to be shown in an error."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 16384))
            text = stream.read().decode(errors="replace")
    except OSError as error:
        return f"({log}: {error.strerror})"
    return "\n".join(text.splitlines()[-lines:]) or f"({log} is empty)"


def _reap(started: Sequence[Started]) -> None:
    """Takes leave of children of this very process, which would stay as zombies."""
    for process in started:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _tell(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _environment(entry: Path) -> frozenset[bytes]:
    try:
        return frozenset((entry / "environ").read_bytes().split(b"\0"))
    except OSError:  # it ended, or is another account's
        return frozenset()


def _began(pid: int) -> int | None:
    """When a process began; None if there is none, or it is a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])
