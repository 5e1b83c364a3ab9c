"""Files that are written whole or not at all, and are still there after a power cut."""

from __future__ import annotations

import os
from pathlib import Path

PART = ".part"


def replace_file(target: Path, data: bytes) -> Path:
    """Writes a file atomically: readers, and whoever comes after a crash, see the old content or the new.

    Args:
        target: The file; its folder exists.
        data: Its whole content.
    """
    part = target.with_name(f"{target.name}.{os.getpid()}{PART}")
    try:
        with part.open("wb") as stream:
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
    for pattern in (f"*{PART}", ".report.*.html"):
        for left in folder.glob(pattern):
            left.unlink(missing_ok=True)
