"""Atomic, durable writes of files."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"
# Failures of the machine, whatever its user requested.
FAILURES = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "ENOMEM", "EMFILE", "ENFILE", "ESTALE")
    if hasattr(errno, name)
}
# A name that is taken, by a link above all, is not written through.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def replacing(target: Path, mode: int = 0o666, *, strict: bool = False) -> Iterator[BinaryIO]:
    """Writes a file atomically: at any time, also after a crash, readers see the old content or the new.

    Args:
        target: The file; its folder exists. A link of this name is replaced; the file that it leads to stays.
        mode: Its permissions, less what the user's mask takes away.
        strict: Whether it is an error if the folder, and so the file's name, cannot be synchronised.

    Yields:
        The stream to write its whole content to.

    Raises:
        OSError: It cannot be written; nothing of it is left.
    """
    # Random, since two threads, or two containers with the same process number, may write one file at a time.
    part = target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}{PART}")
    handle = os.open(part, _NEW, mode)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    keep_names(target.parent, strict=strict)


def replace_file(target: Path, data: bytes, mode: int = 0o666, *, strict: bool = False) -> Path:
    """Writes a file atomically and returns its path; see `replacing`.

    Args:
        target: The file; its folder exists.
        data: Its whole content.
        mode: Its permissions.
        strict: Whether a folder that cannot be synchronised is an error.

    Raises:
        OSError: It cannot be written; nothing of it is left.
    """
    with replacing(target, mode, strict=strict) as stream:
        stream.write(data)
    return target


def keep_names(folder: Path, *, strict: bool = False) -> None:
    """Synchronises the names in a folder: after a power cut a file without its name is lost.

    Args:
        folder: The folder.
        strict: Whether a failure is an error: some systems cannot open a folder, some file systems not
            synchronise it.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        if strict:
            raise


def sweep_parts(folder: Path) -> None:
    """Removes the partial files of processes that were killed while they wrote into a folder.

    Only the process that holds the folder alone (`lock.alone`) may do so.
    """
    for pattern in (f"*{PART}", ".report.*.html"):  # the second: of earlier versions
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
