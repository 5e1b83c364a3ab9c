"""Processors, memory, forked processes, folders, room on disks, and ports."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from scenarios.doctor.check import FAILURE, OK, WARNING, Check, ProbeFailed, probe

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
ROOM, LITTLE_ROOM = 10**9, 10**8  # bytes
SHARED = 64 * 2**20
# Flower's own are 9091 to 9094; at 18000 the SuperLink of a federation on this machine listens.
PORTS = (9091, 9092, 9093, 9094, 18000)
HOST = "127.0.0.1"


def cores() -> Iterator[Check]:
    """Checks the number of processors, and how many of them this process may use."""
    there = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    quota = _quota()
    text = f"{there} cores" + (f", {usable} of them allowed here" if usable < there else "")
    if quota is not None:
        text += f", a limit of {quota:g} by the control group"
    effective = max(1, int(min(usable, quota or usable)))
    if effective < there:
        remedy = f"Give --workers {effective}: as many as there are cores is the default, and too many here."
        yield Check("cores", WARNING, text, remedy)
    else:
        yield Check("cores", OK, text)
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
    """Checks the free memory, within the limit of the control group."""
    free = _free()
    if free < LITTLE:
        status = FAILURE if free < TOO_LITTLE else WARNING
        remedy = "End other programs, or take fewer --workers: a small run takes some 500 MB."
        yield Check("memory", status, f"{free / 1e9:.1f} GB are free", remedy)
    else:
        yield Check("memory", OK, f"{free / 1e9:.1f} GB are free")


def _free() -> int:
    import psutil

    free = int(psutil.virtual_memory().available)
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            left = int((_GROUP / most).read_text()) - int((_GROUP / used).read_text())
        except (OSError, ValueError):
            continue
        free = min(free, left)
    return free


def fork() -> Iterator[Check]:
    """Whether processes can be forked, and see memory together."""
    less = "Runs use one process: fewer clients a second, and the same numbers."
    if not hasattr(os, "fork"):
        yield Check("fork", WARNING, "this system cannot fork", less)
        return
    try:
        right = probe(_FORK) == "child"
    except ProbeFailed as error:
        yield Check("fork", FAILURE, f"a process cannot be forked: {error}", "Raise the limit: ulimit -u.")
        return
    if right:
        yield Check("fork", OK, "works, with shared memory")
    else:
        yield Check("fork", FAILURE, "processes do not see memory together", "Run with --workers 1.")


def out(folder: Path) -> Iterator[Check]:
    """Whether run directories can be made."""
    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import check_out

    name = "folder of runs"
    try:
        check_out(folder)
    except InputError as error:
        what, _, remedy = str(error).partition(". ")
        yield Check(name, FAILURE, what, remedy or "Choose another with --out.")
        return
    yield _room(name, folder, "Make room, or choose another folder with --out.")


def cache() -> Iterator[Check]:
    """The folder for copies of large data."""
    from fedprivacy.data.storage import folder

    yield _writable(
        "cache folder", folder(), "Set XDG_CACHE_HOME to a folder that you may write to.", WARNING
    )


def temporary() -> Iterator[Check]:
    """The folder for temporary files, and the memory that processes share as files."""
    remedy = "Set TMPDIR to a folder that you may write to."
    try:
        yield _writable("temporary files", Path(tempfile.gettempdir()), remedy, FAILURE)
    except FileNotFoundError as error:
        yield Check("temporary files", FAILURE, str(error), remedy)
    shared = Path("/dev/shm")
    if shared.is_dir():
        room = shutil.disk_usage(shared).total
        if room < SHARED:
            what = f"/dev/shm has {room / 2**20:.0f} MB"
            yield Check("shared memory", WARNING, what, "Ray wants more: docker run --shm-size=1g.")
        else:
            yield Check("shared memory", OK, f"/dev/shm has {room / 2**20:,.0f} MB")


def _writable(name: str, folder: Path, remedy: str, status: str) -> Check:
    """Tries a file, in the first folder above that is there."""
    there = next(above for above in (folder, *folder.parents) if above.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as opened:
            opened.write(b"fedprivacy")
            opened.flush()
    except OSError as error:
        return Check(name, status, f"{folder}: {error.strerror or error}", remedy)
    return _room(name, folder, remedy)


def _room(name: str, folder: Path, remedy: str) -> Check:
    folder = folder.absolute()
    free = shutil.disk_usage(next(above for above in (folder, *folder.parents) if above.exists())).free
    what = f"{folder}, {free / 1e9:.1f} GB free"
    if free < ROOM:
        return Check(name, FAILURE if free < LITTLE_ROOM else WARNING, what, remedy)
    return Check(name, OK, what)


def ports_of(texts: Sequence[str]) -> list[int]:
    """The ports that `--ports` names.

    Raises:
        InputError: one is none.
    """
    from fedprivacy.errors import InputError

    ports = [part.strip() for text in texts for part in text.split(",")]
    for part in ports:
        if not (part.isascii() and part.isdigit() and len(part) < 6 and 1 <= int(part) <= 65535):
            raise InputError(
                f"--ports {part[:40]}: must be a whole number from 1 to 65535, or several: 9091,9092."
            )
    return list(dict.fromkeys(map(int, ports)))


def ports(numbers: Sequence[int]) -> Iterator[Check]:
    """Whether a deployment on this machine can listen where it would."""
    taken = {number: why for number in numbers if (why := _taken(number)) is not None}
    for number, why in taken.items():
        remedy = f"`ss -ltnp 'sport = :{number}'` shows the process: end it, or choose another port."
        yield Check(f"port {number}", FAILURE, f"{HOST}:{number}: {why}", remedy)
    free = [str(number) for number in numbers if number not in taken]
    if free:
        yield Check("ports", OK, f"free on {HOST}: {', '.join(free)}")


def _taken(number: int) -> str | None:
    """The reason why a port cannot be used; None where it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        if os.name == "posix":
            tried.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # as servers do, after others have ended
        try:
            tried.bind((HOST, number))
            tried.listen(1)
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return None
