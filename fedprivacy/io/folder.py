"""Writes and deletes inside an untrusted folder without following links in it.

The folder itself may be reached by a link, which is its user's. A link below it leads where the author of the
folder wants to: to files that a run would overwrite, or remove as its old checkpoints.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePath
from typing import BinaryIO

from fedprivacy.errors import InputError
from fedprivacy.io.regular_file import check_regular, kind_of

_APPEND = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)


def check_tree(top: Path, depth: int | None = None) -> None:
    """Refuses a folder that has more in it than regular files and folders.

    Args:
        top: The folder; itself it may be a link.
        depth: How many levels of folders are looked at; None for all.

    Raises:
        InputError: There is a link, a pipe, a device or a socket below it, or it cannot be looked at.
    """
    waiting = [(top, 1)]
    while waiting:
        folder, level = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if depth is None or level < depth:
                            waiting.append((Path(entry.path), level + 1))
                    elif not entry.is_file(follow_symlinks=False):
                        _refuse(entry, top)
        except FileNotFoundError:  # another process has just removed it
            continue
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}. Ask for the right to read it.") from error


def _refuse(entry: os.DirEntry[str], top: Path) -> None:
    try:
        kind = kind_of(entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return
    raise InputError(
        f"{entry.path}: {kind} inside {top}, where only files and folders belong: it may lead to what must "
        "not be written or removed. Remove it, or put what it stands for in its place."
    )


def is_below(name: str) -> bool:
    """Whether a name leads to something below the folder that it is seen from, links left aside."""
    path = PurePath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def make_inner(folder: Path) -> bool:
    """Makes a folder inside another, unless it is there.

    Returns:
        Whether it was made now.

    Raises:
        OSError: It cannot be made, or something else is there, such as a link to a folder.
    """
    try:
        folder.mkdir()
    except FileExistsError:
        if not is_inner(folder):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder of its own", str(folder)) from None
        return False
    return True


def is_inner(folder: Path) -> bool:
    """Whether a folder is there, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(folder).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def open_append(path: Path) -> BinaryIO:
    """Opens a file of a folder to write at its end; it is made if it is not there.

    Raises:
        OSError: It cannot be opened, or is a link, a pipe, or anything else than a regular file.
    """
    handle = os.open(path, _APPEND, 0o666)
    try:
        check_regular(os.fstat(handle), path)
        return os.fdopen(handle, "ab")
    except BaseException:
        os.close(handle)
        raise
