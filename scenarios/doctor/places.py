"""Folders, room on disks, and ports."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from scenarios.doctor.check import FAILURE, OK, WARNING, Check

ROOM, LITTLE_ROOM = 10**9, 10**8  # bytes
SHARED = 64 * 2**20
# Flower's own are 9091 to 9094; at 18000 the SuperLink of a federation on this machine listens.
PORTS = (9091, 9092, 9093, 9094, 18000)
HOST = "127.0.0.1"


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

    found = [part.strip() for text in texts for part in text.split(",")]
    for part in found:
        if not (part.isascii() and part.isdigit() and len(part) < 6 and 1 <= int(part) <= 65535):
            raise InputError(
                f"--ports {part[:40]}: must be a whole number from 1 to 65535, or several: 9091,9092."
            )
    return list(dict.fromkeys(map(int, found)))


def ports(numbers: Sequence[int]) -> Iterator[Check]:
    """Whether a deployment on this machine can listen where it would."""
    taken = {number: why for number in numbers if (why := _taken(number)) is not None}
    for number, why in taken.items():
        remedy = f"`ss -ltnp 'sport = :{number}'` says who listens there: end it, or choose another port."
        yield Check(f"port {number}", FAILURE, f"{HOST}:{number}: {why}", remedy)
    free = [str(number) for number in numbers if number not in taken]
    if free:
        yield Check("ports", OK, f"free on {HOST}: {', '.join(free)}")


def _taken(number: int) -> str | None:
    """Why nothing can listen on a port; None where it can."""
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
