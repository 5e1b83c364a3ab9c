"""Files that are written whole or not at all, and are still there after a power cut."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

PART = ".part"
# What the machine lacks, whatever its user asked for.
FAILURES = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "ENOMEM", "EMFILE", "ENFILE", "ESTALE")
    if hasattr(errno, name)
}
# A name that is taken, by a link above all, is not written through.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def replace_file(target: Path, data: bytes, mode: int = 0o666) -> Path:
    """Writes a file atomically: readers, and whoever comes after a crash, see the old content or the new.

    Args:
        target: The file; its folder exists. A link of this name is replaced, and what it leads to left alone.
        data: Its whole content.
        mode: Who may read and write it, less what the user's mask takes away.

    Raises:
        OSError: It cannot be written; nothing of it is left.
    """
    part = target.with_name(f"{target.name}.{os.getpid()}{PART}")
    with suppress(FileNotFoundError):  # of an earlier process of this number, or put there
        part.unlink()
    handle = os.open(part, _NEW, mode)
    try:
        with open(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, target)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    keep_names(target.parent)
    return target


def keep_names(folder: Path) -> None:
    """Has the names in a folder written to the disk; its files' content is by itself not found again."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # no folder can be opened on some systems
        return
    try:
        os.fsync(handle)
    except OSError:  # nor synchronised on some file systems
        pass
    finally:
        os.close(handle)


def sweep_parts(folder: Path) -> None:
    """Removes what processes that were killed in the middle of writing have left in a folder.

    Only whoever holds the folder alone (`lock.alone`) may do so.
    """
    for pattern in (f"*{PART}", ".report.*.html"):  # the second: of earlier versions
        for left in folder.glob(pattern):
            left.unlink(missing_ok=True)
