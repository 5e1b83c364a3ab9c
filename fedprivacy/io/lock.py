"""One process at a time works on a run directory; the kernel lets go of the lock when a process dies."""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedprivacy.errors import HeldError
from fedprivacy.io.regular_file import NotRegular, check_regular, read_regular

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]

FILE = "lock"
PATIENCE = 10.0  # seconds for the workers of a process that was killed to end: they notice at once
# What a link leads to is somebody's file, and is not written.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_NO_LOCK, _RIGHTS = (NotRegular, IsADirectoryError), "Ask for the right to write in this run directory."
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds a run directory: a second process that wants it is refused.

    Processes forked meanwhile hold it too, until all of them have ended, so that nobody writes beside a
    worker of a process that was killed.

    Args:
        folder: The directory; a file `lock` in it says who holds it, and is removed at the end.

    Raises:
        HeldError: another process works on it, or it cannot be written, or `lock` is no plain file.
    """
    path = folder / FILE
    try:
        handle = _held(path)
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
        _unlock(handle)  # of all that was forked, too
        os.close(handle)


def _held(path: Path) -> int:
    """A handle on the lock's file, locked."""
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
            elif _same(handle, path):  # else whoever held it before has removed the file that was opened here
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _wait(path: Path, deadline: float) -> None:
    """Waits a little for workers of a dead process to end, or for the holder to say who it is."""
    holder = _holder(path)
    if time.monotonic() > deadline or (holder is not None and _may_live(*holder)):
        raise HeldError(
            f"{path.parent}: {_named(holder)} is at work on it. Wait until it has ended, or end it; a second "
            "one is refused meanwhile."
        )
    time.sleep(0.05)


def _lock(handle: int) -> bool:
    """Whether the file is ours now. Where there are no locks it is, with a warning."""
    if fcntl is None:  # pragma: no cover
        _warn("this system")
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        _warn("the file system")
    return True


def _unlock(handle: int) -> None:
    if fcntl is not None:
        with suppress(OSError):  # as where there are no locks
            fcntl.flock(handle, fcntl.LOCK_UN)


def _warn(what: str) -> None:
    print(
        f"Warning: {what} has no locks: see to it yourself that no second process works on this run.",
        file=sys.stderr,
    )


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> tuple[int, str] | None:
    """The process that says to hold it, and its machine; None where nobody says so (yet)."""
    try:
        number, host = read_regular(path, 4096, follow=False).decode().split()
        return int(number), host
    except (OSError, ValueError):
        return None


def _named(holder: tuple[int, str] | None) -> str:
    if holder is None:
        return "another process"
    number, host = holder
    return f"process {number}" + ("" if host == socket.gethostname() else f" on {host}")


def _may_live(number: int, host: str) -> bool:
    """Whether a process may be at work still; those on other machines may."""
    if host != socket.gethostname():
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
