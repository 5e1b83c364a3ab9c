"""The processes of a local federation: started in new sessions, looked up, stopped.

Flower starts its own helpers in new sessions, so neither a process group nor a parent leads to all of them.
Every process of a federation inherits a random mark in its environment, which identifies it even if its
parent has died. No other process can have the mark, so a process id that was reused is never signalled.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from fedprivacy.errors import RunError

MARK = "FEDPRIVACY_FEDERATION"


@dataclass(frozen=True)
class Started:
    """A process that `up` started.

    Args:
        name: Its role: "superlink", "node-0", ...
        pid: Its id, which is its process group's and its session's too.
    """

    name: str
    pid: int

    def runs(self, mark: str) -> bool:
        """Whether it runs: a process of this id with the federation's mark, and no zombie."""
        try:
            return psutil.Process(self.pid).environ().get(MARK) == mark
        except psutil.Error:  # it has ended, or belongs to another account
            return False


def start(
    name: str, command: Sequence[str], *, log: Path, cwd: Path, environment: Mapping[str, str]
) -> Started:
    """Starts a process in a session of its own, so that Ctrl-C in a terminal does not reach it.

    Args:
        name: Its role.
        command: Program and arguments.
        log: The file for its output, readable by its owner alone.
        cwd: Its working directory.
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
    process.returncode = 0  # it outlives this process, which does not wait for it
    return Started(name, process.pid)


def living(mark: str) -> list[psutil.Process]:
    """All running processes of a federation, children of its children included.

    Args:
        mark: The federation's mark.
    """
    processes = psutil.process_iter(["environ"])  # no environment where it is another account's
    return [process for process in processes if (process.info["environ"] or {}).get(MARK) == mark]


def end(mark: str, *, grace: float = 10.0) -> int:
    """Ends all processes of a federation: with SIGTERM first, then with SIGKILL.

    Args:
        mark: The federation's mark.
        grace: Seconds until SIGKILL.

    Returns:
        How many there were.

    Raises:
        RunError: if one still runs.
    """
    running = living(mark)
    count = len(running)
    for signal, seconds in ((psutil.Process.terminate, grace), (psutil.Process.kill, 5.0)):
        deadline = time.monotonic() + seconds
        signalled: set[psutil.Process] = set()
        while running and time.monotonic() < deadline:
            for process in set(running) - signalled:  # also one that was started meanwhile
                try:
                    signal(process)
                except psutil.Error:  # it has just ended
                    continue
            signalled |= set(running)
            psutil.wait_procs(running, timeout=0.1)  # children of this very process are reaped
            running = living(mark)
    if running:
        numbers = ", ".join(str(process.pid) for process in running)
        raise RunError(f"these processes of the federation do not end: {numbers}.")
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
