"""Real commands that are killed at random moments and resumed until they finish."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

import psutil

LIMIT = 600.0  # seconds that one command may take
NOTHING = "nothing was begun in it"


class Broken(Exception):
    """A killed task did not resume correctly."""


@dataclass(frozen=True)
class Task:
    """A task that is started, killed and resumed.

    Args:
        name: For the summary.
        command: That of `fedprivacy`.
        text: The scenario.
        options: More words of each command.
    """

    name: str
    command: str
    text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Times:
    """The times of a task without a kill.

    Args:
        start: Seconds until it writes something.
        work: And from then on.
    """

    start: float
    work: float


@dataclass
class Killer:
    """Starts commands in process groups of their own, and kills them.

    Args:
        words: The first words of `fedprivacy`.
        environment: Of the processes.
        chance: Draws the moments.
        groups: Whether `words` start the process that does the work: else only that one is killed, whose
            number is in the lock.
    """

    words: Sequence[str]
    environment: dict[str, str]
    chance: random.Random
    groups: bool = True
    where: list[str] = field(default_factory=list)
    _last: subprocess.Popen[str] | None = None

    def whole(self, task: Task, folder: Path) -> tuple[Path, Times]:
        """Runs a task without a break: its directory, and how long that took."""
        began, out = time.monotonic(), folder / "whole"
        process = self._start(task, [str(_scenario(task, folder)), "--out", str(out)])
        while process.poll() is None and not _written(out):
            time.sleep(0.002)
        start = time.monotonic()
        output = self._end(process)
        if process.returncode:
            raise Broken(f"{task.name}: {output}")
        (path,) = out.iterdir()
        return path, Times(start - began, time.monotonic() - start)

    def broken(self, task: Task, folder: Path, times: Times, most: int) -> tuple[Path, int]:
        """Runs a task with breaks, at most so many.

        Returns:
            Its directory, and how often it was killed.
        """
        kills, path = 0, None
        out = folder / f"broken-{self.chance.randrange(10**9)}"
        while True:
            begin = [str(_scenario(task, folder)), "--out", str(out)]
            process = self._start(task, begin if path is None else ["--resume", str(path)])
            killed = kills < most and self._doom(process, out if path is None else path, times)
            output, directory = self._end(process), path or _only(out)
            if killed:
                kills += 1
                self.where.append(f"{task.name}: {_status_of(directory)}")
                path = directory
            elif process.returncode == 0 and directory is not None:
                return directory, kills
            elif path is not None and NOTHING in output and process.returncode == 2:
                # It was killed before anything was begun, which the next one has said: start it anew.
                path, out = None, folder / f"broken-{self.chance.randrange(10**9)}"
            else:
                raise Broken(f"{task.name}: {_words(process)} ended with {process.returncode}: {output}")

    def _start(self, task: Task, given: Sequence[str]) -> subprocess.Popen[str]:
        words = [*self.words, task.command, *given, *task.options, "--json"]
        self._last = subprocess.Popen(
            words,
            env=self.environment,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        return self._last

    def close(self) -> None:
        """Leaves nothing running that was started last."""
        if self._last is not None and self._last.poll() is None:
            os.killpg(self._last.pid, signal.SIGKILL)
            self._last.communicate()

    def _doom(self, process: subprocess.Popen[str], place: Path, times: Times) -> bool:
        """Kills a process at a random moment: of its start, or of its work. Whether it was still there."""
        if self.groups and self.chance.random() < 0.3:
            return self._wait(process, self.chance.uniform(0, times.start)) and self._kill(process, None)
        before, deadline = _written(place), time.monotonic() + LIMIT
        while (pid := _holder(place)) is None or not _runs(pid) or _written(place) == before:
            if process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                raise Broken(f"{_words(process)} does nothing")
            time.sleep(0.002)
        # Most of them early, so that one directory is killed several times.
        wait = times.work * self.chance.random() ** 2
        return self._wait(process, wait) and self._kill(process, pid)

    def _wait(self, process: subprocess.Popen[str], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if process.poll() is not None:
                return False
            time.sleep(min(0.001, max(0.0, end - time.monotonic())))
        return process.poll() is None

    def _kill(self, process: subprocess.Popen[str], pid: int | None) -> bool:
        try:
            if not self.groups:
                os.kill(pid or process.pid, signal.SIGKILL)
            elif self.chance.random() < 0.5:
                os.kill(process.pid, signal.SIGKILL)  # its workers have to notice by themselves
            else:
                os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return process.wait(LIMIT) == -signal.SIGKILL

    def _end(self, process: subprocess.Popen[str]) -> str:
        try:
            return process.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Broken(f"{_words(process)} does not end") from None


def _words(process: subprocess.Popen[str]) -> str:
    return shlex.join(map(str, process.args)) if isinstance(process.args, list) else "the command"


def _scenario(task: Task, folder: Path) -> Path:
    file = folder / "scenario.toml"
    file.write_text(task.text)
    return file


def _only(out: Path) -> Path | None:
    """The directory that a command has made."""
    folders = sorted(out.iterdir()) if out.is_dir() else []
    folders = [path for path in folders if not path.name.startswith("tmp")]  # of `check_out`
    return folders[0] if folders else None


def _holder(place: Path) -> int | None:
    """The process that a directory's lock file, or one directly below, names."""
    for file in (str(place / "lock"), *glob(f"{place}/*/lock")):  # pathlib's fails where folders vanish
        try:
            return int(Path(file).read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return None


def _written(place: Path) -> float:
    """When something was written in a directory last, in nanoseconds; 0 if never."""
    latest = 0
    for folder, _, names in os.walk(place):  # folders may vanish meanwhile
        for name in names:
            if name != "lock":
                with suppress(OSError):
                    latest = max(latest, os.stat(os.path.join(folder, name)).st_mtime_ns)
    return latest


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _status_of(path: Path | None) -> str:
    """In words what a killed process has left."""
    if path is None:
        return "no directory"
    cells = len(list(path.glob("cells/*.json")))
    rounds = len((path / "events.jsonl").read_text().splitlines()) if (path / "events.jsonl").exists() else 0
    has_started = (path / "run.json").exists() or (path / "begun.json").exists()
    parts = ", a part of a file" if list(path.rglob("*.part")) else ""
    if not has_started:
        return f"nothing begun{parts}"
    finished = (path / "run.json").exists() and status(path) == "finished"
    done = (
        "finished" if finished else f"{cells} cells" if (path / "begun.json").exists() else f"{rounds} rounds"
    )
    return f"{done}{'' if (path / 'report.html').exists() or not finished else ' without a report'}{parts}"


def status(path: Path) -> str:
    """The status in the record of a run."""
    return str(json.loads((path / "run.json").read_text())["status"])


def timeless(value: Any, *also: str) -> Any:
    """A document without times, places and memory.

    Args:
        value: JSON.
        also: More keys to leave out.
    """
    without = {"seconds", "started", "path", "command", "performance", "runs", "clients_per_second", *also}
    if isinstance(value, dict):
        return {key: timeless(item, *also) for key, item in value.items() if key not in without}
    return [timeless(item, *also) for item in value] if isinstance(value, list) else value


def leftovers(path: Path) -> Iterator[Path]:
    """Files that nobody should find in a directory that has finished."""
    for pattern in ("*.part", "lock", ".report.*"):
        yield from path.rglob(pattern)
