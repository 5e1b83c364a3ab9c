"""Locks between processes: the kernel releases them when the last process that holds them ends.

The lock is filelock's, of a file or folder that is opened here. filelock's own `FileLock` would open the path
itself: it takes a pipe or a second name of somebody's file for a lock, drops the lock in forked workers, and
where the system has no locks leaves a file that outlives its process.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor, unlock_descriptor

from fedprivacy.errors import HeldError
from fedprivacy.io.regular_file import NotRegular, check_regular, read_regular

FILE = "lock"
PATIENCE = 10.0  # seconds for the workers of a killed process to end: they notice at once
_STEP = 0.02  # seconds between two attempts
# A link is not followed: the file that it leads to would be overwritten.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_NO_LOCK, _RIGHTS = (NotRegular, IsADirectoryError), "Ask for the right to write in this run directory."
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def locked(handle: int, patience: float | None = None) -> Iterator[None]:
    """Holds the lock of an open file or folder; waits while another process holds it.

    Args:
        handle: Of the file or folder; the caller closes it.
        patience: Seconds to wait; None: without limit.

    Raises:
        TimeoutError: another process holds it for longer.
        OSError: the file system has no locks.
    """
    deadline = None if patience is None else time.monotonic() + patience
    while not lock_descriptor(handle, blocking=False):
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock")
        time.sleep(_STEP)
    try:
        yield
    finally:
        _unlock(handle)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds a run directory: a second process that wants it is refused.

    Processes forked meanwhile hold it too, until all of them have ended, so that nobody writes beside a
    worker of a process that was killed.

    Args:
        folder: The directory; a file `lock` in it names the holder, and is removed at the end.

    Raises:
        HeldError: another process works on it, or it cannot be written, or `lock` is no plain file.
    """
    path = folder / FILE
    try:
        handle = _acquire(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise HeldError(f"{path}: a link, and no lock of ours. Remove it.") from error
        remedy = "Remove it." if isinstance(error, _NO_LOCK) or error.errno == errno.EMLINK else _RIGHTS
        raise HeldError(f"{path}: {error.strerror}. {remedy}") from error
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()} {socket.gethostname()}\n".encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        _unlock(handle)  # of all forked processes, too
        os.close(handle)


def _acquire(path: Path) -> int:
    """Opens the lock's file and locks it; returns its handle."""
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = os.open(path, _FLAGS, 0o644)
        try:
            status = os.fstat(handle)
            check_regular(status, path)
            if status.st_nlink > 1:  # another name of somebody's file, which would be emptied
                raise OSError(errno.EMLINK, "a file with a second name, and no lock of ours")
            if not _lock(handle):
                _wait(path, deadline)
            elif _is_at(handle, path):  # else the previous holder has removed the file that was opened here
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _wait(path: Path, deadline: float) -> None:
    """Waits a little for workers of a dead process to end, or for the holder to write its name."""
    holder = _holder(path)
    if time.monotonic() > deadline or (holder is not None and _may_live(*holder)):
        raise HeldError(
            f"{path.parent}: {_describe(holder)} is at work on it. Wait until it has ended, or end it; a "
            "second one is refused meanwhile."
        )
    time.sleep(_STEP)


def _lock(handle: int) -> bool:
    """Tries to lock a file. On a file system without locks it warns and reports success."""
    try:
        return lock_descriptor(handle, blocking=False)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    print(
        "Warning: the file system has no locks: see to it yourself that no second process works on this run.",
        file=sys.stderr,
    )
    return True


def _unlock(handle: int) -> None:
    with suppress(OSError):  # as where there are no locks
        unlock_descriptor(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> tuple[int, str] | None:
    """The process named in the lock's file, and its machine; None where no name is there (yet)."""
    try:
        number, host = read_regular(path, 4096, follow=False).decode().split()
        return int(number), host
    except (OSError, ValueError):
        return None


def _describe(holder: tuple[int, str] | None) -> str:
    if holder is None:
        return "another process"
    number, host = holder
    return f"process {number}" + ("" if host == socket.gethostname() else f" on {host}")


def _may_live(number: int, host: str) -> bool:
    """Whether a process may still run; those on other machines may."""
    if host != socket.gethostname():
        return True
    import psutil  # here, so that the check-up runs where it is missing

    try:
        return psutil.pid_exists(number)
    except OverflowError:  # larger than any number of a process
        return False
