"""The file of an account: JSON lines in a chain of digests, written under a lock and only at the end.

Each line ends with the digest of all of it before, which includes the digest of the line above. So a changed
byte is noticed, wherever it is. The work that a line charges begins only after the line is on disk (fsync).

A line is written to a file beside (`FILE.next`) first, which is removed once the line is on disk. So a last
line that is torn, by a kill or a full disk, differs from one that was cut off later: where the file beside
has all of it, it charges work that never began, or only notes the end of a run. It is cut, under the lock,
before the next line is written. Without that the file is damaged. A last line that lacks nothing but its end
of line counts.

No chain shows that whole lines are missing at the end, as after restoring an old copy. A run directory names
its line (`account.json`), which a resumed run looks for.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedprivacy.errors import HeldError, InputError, RunError
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import keep_names
from fedprivacy.io.lock import locked
from fedprivacy.io.regular_file import check_regular, read_regular

MAX_BYTES = 2**26
PATIENCE = 60.0  # seconds that another process may take to enter
RESTORE = "Restore the file from a copy; no entry can be trusted while it is damaged."
_WAITS = (0.05, 0.3)  # seconds for a process to write what it began between two readings
_DIGEST = 32  # bytes
_END = re.compile(rb', "digest": "[0-9a-f]{%d}"\}' % (2 * _DIGEST))
_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True)
class Lines:
    """The lines of an account's file.

    Args:
        bodies: Of each line its table.
        digests: Of each line.
        size: The bytes of all lines, without a torn one.
        torn: The bytes of a torn last line.
        open_end: Whether the last line lacks its end of line.
    """

    bodies: tuple[dict[str, Any], ...] = ()
    digests: tuple[str, ...] = ()
    size: int = 0
    torn: int = 0
    open_end: bool = False

    @classmethod
    def parse(cls, data: bytes, path: Path, coming: bytes = b"") -> Lines:
        """Reads and checks the content of a file.

        Args:
            data: The content.
            path: The file's name.
            coming: The line that a process was writing, from the file beside; empty without one.

        Raises:
            InputError: a line is damaged; the message names its number.
        """
        *whole, tail = data.split(b"\n")
        bodies: list[dict[str, Any]] = []
        digests: list[str] = []
        for number, line in enumerate(whole, 1):
            body = _body(line, digests[-1] if digests else "")
            if body is None:
                raise InputError(
                    f"{path}:{number}: the line was changed: it does not fit its digest and the line above. "
                    f"{RESTORE}"
                )
            bodies.append(body)
            digests.append(body["digest"])
        size, open_end = len(data) - len(tail), False
        for end in (match.end() for match in _END.finditer(tail)):
            body = _body(tail[:end], digests[-1] if digests else "")
            if body is None:
                continue
            if end < len(tail):  # whole, with something in place of its end of line
                raise InputError(f"{path}:{len(bodies) + 1}: the end of the line was changed. {RESTORE}")
            bodies.append(body)
            digests.append(body["digest"])
            size, open_end = len(data), True
        if not bodies:
            raise InputError(
                f"{path}: not an account: it has no whole first line. Where its creation was cut off, remove "
                "it and create it again: fedprivacy account new"
            )
        # After a power cut some file systems leave zeros.
        if size < len(data) and not (coming and coming.startswith(data[size:].strip(b"\n").rstrip(b"\0"))):
            raise InputError(
                f"{path}:{len(bodies) + 1}: the line is cut off, and no process was writing it. Its work may "
                f"have run. {RESTORE}"
            )
        return cls(tuple(bodies), tuple(digests), size, len(data) - size, open_end)


def _body(line: bytes, previous: str) -> dict[str, Any] | None:
    """The table of a line; None where it does not fit its digest, or the line above."""
    end = _END.search(line, max(0, len(line) - 2 * _DIGEST - 20))
    if end is None or end.end() != len(line):
        return None
    stated = line[end.start() :].decode().split('"')[-2]
    if _digest(line[: end.start()]) != stated:
        return None
    try:
        body = bounded_json.loads(line)
    except ValueError:
        return None
    return body if isinstance(body, dict) and body.get("previous") == previous else None


def _digest(line: bytes) -> str:
    return hashlib.blake2b(line, digest_size=_DIGEST).hexdigest()


def _line(body: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """A line without its end, and its digest."""
    start = json.dumps({**body, "previous": previous}, allow_nan=False).encode()[:-1]
    digest = _digest(start)
    return start + f', "digest": "{digest}"}}'.encode(), digest


class OpenFile:
    """An account's file under its lock.

    Args:
        path: Its name.
        handle: Opened for reading and writing.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle
        size = os.fstat(handle).st_size
        if size > MAX_BYTES:
            raise InputError(f"{path}: larger than {MAX_BYTES >> 20} MB, so no account. Name another file.")
        self._next = _next(path)
        self.lines = Lines.parse(os.pread(handle, size, 0), path, _coming(path))

    def append(self, body: Mapping[str, Any]) -> str:
        """Writes a line; it is on disk when this returns.

        Args:
            body: Its table.

        Returns:
            The line's digest.

        Raises:
            InputError: the file would become too large.
            RunError: it cannot be written; then nothing of it stays, or a torn line that does not count.
        """
        line, digest = _line(body, self.lines.digests[-1])
        before = self.lines.size
        data = (b"\n" if self.lines.open_end else b"") + line + b"\n"
        if before + len(data) > MAX_BYTES:
            raise InputError(
                f"{self.path}: has reached its {MAX_BYTES >> 20} MB. Nothing was entered. Create another "
                "account, whose claim adds to this one's."
            )
        try:
            if self.lines.torn:  # while the file beside still has its line
                os.ftruncate(self._handle, before)
                os.fsync(self._handle)
            _write_beside(self._next, line)
            at = before
            while data:
                at, data = _written(self._handle, data, at)
            os.fsync(self._handle)
            self._next.unlink()
        except OSError as error:
            entered = "Nothing was entered"
            try:
                os.ftruncate(self._handle, before)
            except OSError:
                entered = "It may count as entered all the same"
            with suppress(OSError):
                os.fsync(self._handle)
                self._next.unlink(missing_ok=True)
            raise RunError(
                f"{self.path}: {error.strerror}. {entered}. Make room, or ask for the right to write in its "
                "folder, and start again."
            ) from error
        keep_names(self._next.parent)
        size = os.fstat(self._handle).st_size
        self.lines = Lines.parse(os.pread(self._handle, size, 0), self.path)
        return digest


def _written(handle: int, data: bytes, at: int) -> tuple[int, bytes]:
    count = os.pwrite(handle, data, at)
    return at + count, data[count:]


def create(path: Path, body: Mapping[str, Any]) -> str:
    """Creates a file with its first line, and returns the line's digest.

    Raises:
        InputError: the name is taken, or the file cannot be made.
        RunError: it cannot be written; it is removed again.
    """
    line, digest = _line(body, "")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o600)
    except FileExistsError:
        raise InputError(
            f"{path}: there already, and an account is never written anew. Choose another name."
        ) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}. Choose another name.") from error
    try:
        data, at = line + b"\n", 0
        while data:
            at, data = _written(handle, data, at)
        os.fsync(handle)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise RunError(f"{path}: {error.strerror}. No account was created. Make room.") from error
    finally:
        os.close(handle)
    keep_names(path.parent)
    return digest


def read(path: Path) -> Lines:
    """Reads a file, without its lock: a line that another process is writing counts as torn.

    Raises:
        InputError: it cannot be read, or is damaged.
    """
    for wait in (*_WAITS, None):
        coming = _coming(path)
        try:
            data = read_regular(path, MAX_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {_reason(error)}. Name an account's file.") from error
        try:
            return Lines.parse(data, path, coming)
        except InputError:
            if wait is None or data.endswith(b"\n"):
                raise
            time.sleep(wait)  # a process may have begun to write in between
    raise AssertionError


def _next(path: Path) -> Path:
    """The file beside, with the line that is being written."""
    real = path.resolve()
    return real.with_name(f"{real.name}.next")


def _write_beside(path: Path, line: bytes) -> None:
    """Writes a line to the file beside; it is on disk when this returns."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags, 0o600), "wb") as stream:
        stream.write(line)
        stream.flush()
        os.fsync(stream.fileno())
    keep_names(path.parent)


def _coming(path: Path) -> bytes:
    """The line that a process is writing, or was when it was killed; empty without one."""
    try:
        return read_regular(_next(path), MAX_BYTES, follow=False)
    except (OSError, ValueError, RuntimeError):  # the last: a loop of links
        return b""


@contextmanager
def opened(path: Path) -> Iterator[OpenFile]:
    """Opens a file and holds its lock.

    Raises:
        InputError: it cannot be opened, locked or read, or it is damaged.
        HeldError: another process holds it for a minute.
    """
    try:
        check_regular(os.stat(path), path)  # opening a device may already act on it
        handle = os.open(path, os.O_RDWR | _CLOEXEC)
    except OSError as error:
        raise InputError(f"{path}: {_reason(error)}. Name an account's file that you may write.") from error
    with ExitStack() as stack:
        stack.callback(os.close, handle)
        check_regular(os.fstat(handle), path)
        try:
            stack.enter_context(locked(handle, PATIENCE))
        except TimeoutError as error:
            raise HeldError(
                f"{path}: another process is entering a plan. Wait until it has ended."
            ) from error
        except OSError as error:
            raise HeldError(
                f"{path}: {_reason(error)}: it cannot be locked. Keep it on a file system with locks."
            ) from error
        try:
            replaced = not os.path.samestat(os.fstat(handle), os.stat(path))
        except OSError:
            replaced = True
        if replaced:
            raise HeldError(f"{path}: was replaced or removed meanwhile. Try again.")
        yield OpenFile(path, handle)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
