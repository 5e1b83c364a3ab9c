"""Opens files that a user names: regular files only, up to a size limit.

A path may lead to an endless device, to a pipe without a writer, or to a folder, and may be replaced between
a check and the opening. So the size and kind are checked on the open file, and opening never blocks.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Never acquire a controlling terminal, and never wait for a pipe's writer; no effect on regular files.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_STEP = 2**16
_UNITS = (("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10))


LOOP = ("a link that leads back to itself", "Correct the path.")


class NotRegular(OSError):
    """A device, a pipe, a socket or a link where a file belongs; `strerror` names it."""


class TooLarge(ValueError):
    """A file beyond the limit of its reader."""


def open_regular(path: str | Path, limit: int, *, follow: bool = True) -> BinaryIO:
    """Opens a regular file for reading.

    Args:
        path: The file.
        limit: The most bytes that it may have.
        follow: Whether it may be a link.

    Raises:
        OSError: It cannot be opened, or is no regular file; a folder is an IsADirectoryError.
        TooLarge: It has more bytes.
        ValueError: It is not the name of a file.
    """
    check_regular(os.stat(path, follow_symlinks=follow), path)  # opening a device may already act on it
    handle = os.open(path, _FLAGS | (0 if follow else _NO_FOLLOW))
    try:
        status = os.fstat(handle)
        check_regular(status, path)
        if status.st_size > limit:
            raise TooLarge(f"it is larger than {printed_size(limit)}")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | Path, limit: int, *, follow: bool = True) -> bytes:
    """Reads a whole regular file; see `open_regular`."""
    data = bytearray()
    with open_regular(path, limit, follow=follow) as opened:
        step = os.fstat(opened.fileno()).st_size + _STEP
        while more := opened.read(step):  # system files report size 0, others may grow
            data += more
            if len(data) > limit:
                raise TooLarge(f"it is larger than {printed_size(limit)}")
            step = _STEP
    return bytes(data)


def check_regular(status: os.stat_result, path: str | Path) -> None:
    """Refuses everything but regular files.

    Args:
        status: Its `os.stat_result`.
        path: Its name, for the error.

    Raises:
        IsADirectoryError: It is a folder.
        NotRegular: It is a device, a pipe, a socket or a link.
    """
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
    raise NotRegular(errno.EINVAL, f"{kind_of(status)}, not a file", str(path))


def is_loop(error: BaseException) -> bool:
    """Whether links lead round in a circle, so that nothing can be opened (`LOOP`)."""
    return isinstance(error, OSError) and error.errno == errno.ELOOP


def kind_of(status: os.stat_result) -> str:
    """Names the kind of a path that is neither a regular file nor a folder."""
    if stat.S_ISLNK(status.st_mode):
        return "a link"
    if stat.S_ISFIFO(status.st_mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(status.st_mode) else "a device"


def printed_size(size: int) -> str:
    """Writes a size that is a power of two as people read it.

    >>> printed_size(2**28)
    '256 MB'
    """
    return next((f"{size >> bits} {unit}" for unit, bits in _UNITS if size >> bits), f"{size} bytes")
