"""Processors, memory, and whether processes can be forked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from scenarios.doctor.check import FAILURE, OK, WARNING, Check
from scenarios.doctor.probe import ProbeFailed, probe

LITTLE, TOO_LITTLE = 2**30, 2**28  # bytes of free memory; importing everything takes some 400 MB
_GROUP = Path("/sys/fs/cgroup")
_FORK = """
import mmap, os
shared = mmap.mmap(-1, 8)
child = os.fork()
if child == 0:
    shared[:5] = b"child"
    os._exit(0)
os.waitpid(child, 0)
found = shared[:5].decode()
"""


def cores() -> Iterator[Check]:
    """How many processors there are, and how many of them this process may use."""
    there = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    quota = _quota()
    found = f"{there} cores" + (f", {usable} of them allowed here" if usable < there else "")
    if quota is not None:
        found += f", a limit of {quota:g} by the control group"
    effective = max(1, int(min(usable, quota or usable)))
    if effective < there:
        remedy = f"Give --workers {effective}: as many as there are cores is the default, and too many here."
        yield Check("cores", WARNING, found, remedy)
    else:
        yield Check("cores", OK, found)
    yield from _threads(there)


def _threads(there: int) -> Iterator[Check]:
    given = os.environ.get("OMP_NUM_THREADS")
    if given is None:
        yield Check("threads", OK, "OMP_NUM_THREADS is not set: a run takes one thread a process")
    elif not re.fullmatch(r"[0-9]{1,6}(,[0-9]{1,6})*", given.strip()) or int(given.split(",")[0]) < 1:
        remedy = "Set it to 1, or unset it."
        yield Check("threads", FAILURE, f"OMP_NUM_THREADS = {given[:40]!r} is no number of threads", remedy)
    elif int(given.split(",")[0]) > there:
        what = f"OMP_NUM_THREADS = {given}, there are {there} cores: threads would wait for each other"
        yield Check("threads", WARNING, what, "Set it to 1.")
    else:
        yield Check("threads", OK, f"OMP_NUM_THREADS = {given}")


def _quota() -> float | None:
    """Cores that the control group grants, or None without a limit."""
    try:
        words = (_GROUP / "cpu.max").read_text().split()
        return None if words[0] == "max" else int(words[0]) / int(words[1])
    except (OSError, ValueError, IndexError, ZeroDivisionError):
        pass
    try:
        quota, period = (
            int((_GROUP / "cpu" / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period")
        )
        return quota / period if quota > 0 and period > 0 else None
    except (OSError, ValueError):
        return None


def memory() -> Iterator[Check]:
    """How much memory is free, within the limit of the control group."""
    free = _free()
    if free is None:
        yield Check("memory", OK, "how much is free is not told on this system")
    elif free < LITTLE:
        status = FAILURE if free < TOO_LITTLE else WARNING
        remedy = "End other programs, or take fewer --workers: a small run takes some 500 MB."
        yield Check("memory", status, f"{free / 1e9:.1f} GB are free", remedy)
    else:
        yield Check("memory", OK, f"{free / 1e9:.1f} GB are free")


def _free() -> int | None:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = int(found[1]) * 1024 if found else None
    except OSError:
        free = None
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            left = int((_GROUP / most).read_text()) - int((_GROUP / used).read_text())
        except (OSError, ValueError):
            continue
        free = left if free is None else min(free, left)
    return free


def fork() -> Iterator[Check]:
    """Whether processes can be forked, and see memory together."""
    less = "Runs go on in one process: fewer clients a second, and the same numbers."
    if not hasattr(os, "fork"):
        yield Check("fork", WARNING, "this system cannot fork", less)
        return
    try:
        right = probe(_FORK) == "child"
    except ProbeFailed as error:
        yield Check("fork", FAILURE, f"a process cannot be forked: {error}", "Raise the limit: ulimit -u.")
        return
    if right:
        yield Check("fork", OK, "works, with memory that both sides see")
    else:
        yield Check("fork", FAILURE, "processes do not see memory together", "Run with --workers 1.")
