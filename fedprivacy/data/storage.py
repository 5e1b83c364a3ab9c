"""Scaled records of a file: in memory where they are small, else written once and memory-mapped.

Large records are scaled block by block into a float32 file under the user's cache folder
($XDG_CACHE_HOME or ~/.cache, in `fedprivacy`), named by the source file's path, size and time of
change and by its processing. It is a copy of private data, readable by its owner only, and may be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from fedprivacy.data.npz import MAX_BYTES, blocks, header_of, stamp
from fedprivacy.data.scaling import Scaling
from fedprivacy.errors import InputError
from fedprivacy.io import npy
from fedprivacy.io.atomic import replacing
from fedprivacy.io.regular_file import open_regular

OWNER_ONLY = 0o600  # the mode of a copy of private data
LARGE = 2**28  # bytes of float32
SLOW = 2**24  # bytes of float32 in packings that take seconds to unpack
_SLOW_PACKINGS = (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
# Pages are private and not written, so the system need not have memory ready for all of them.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


def records(path: str, name: str, scaling: Scaling) -> NDArray[np.float32]:
    """An array of records, scaled, float32, shape (records, *used features).

    Raises:
        NpzError: if the file cannot be read.
        InputError: if values are missing and may not be, or if the cache folder cannot be written.
    """
    header = header_of(path, name)
    features = header.shape[1:] if scaling.columns is None else (len(scaling.columns),)
    shape = (header.shape[0], *features)
    scaled = (scaling(block) for block in blocks(path, name))
    size = 4 * math.prod(shape)
    if size <= (SLOW if header.packing in _SLOW_PACKINGS else LARGE):
        x, start = np.empty(shape, np.float32), 0
        for block in scaled:
            x[start : start + len(block)] = block
            start += len(block)
        return x
    what = repr((stamp(path), name, scaling.key))
    file = folder() / f"{hashlib.blake2b(what.encode(), digest_size=16).hexdigest()}.npy"
    try:
        if not file.exists():
            _write(file, shape, scaled)
        return mapped(file)
    except OSError as error:
        raise InputError(
            f"{file.parent}: {error.strerror or error}. It keeps scaled records of {path}, "
            f"{size / 1e9:.1f} GB: make room, or set XDG_CACHE_HOME to another folder."
        ) from error


def mapped(file: Path) -> NDArray[np.float32]:
    """The float32 array of a .npy file, its pages read as they are used.

    Pages are private: torch wants an array that could be written, but nothing reaches the file.
    """
    with open_regular(file, MAX_BYTES) as opened:
        header, offset = npy.header_of(opened), opened.tell()
        if header.dtype != np.float32 or offset + header.size != os.fstat(opened.fileno()).st_size:
            raise OSError(f"{file} is damaged; remove it")
        pages = mmap.mmap(
            opened.fileno(),
            0,
            flags=mmap.MAP_PRIVATE | _NO_RESERVE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
        )
    return np.frombuffer(pages, np.float32, offset=offset).reshape(header.shape)


def folder() -> Path:
    """Where copies of data are kept."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "fedprivacy"


def converted(key: object, source: str, make: Callable[[], Mapping[str, NDArray[Any]]]) -> str:
    """The path of the .npz file that a source is made into, made where it is not there yet.

    Args:
        key: Identifies the content; changes whenever the source or its settings do.
        source: The source's name, for messages.
        make: Makes the arrays.

    Raises:
        InputError: if the cache folder cannot be written.
    """
    name = hashlib.blake2b(repr(key).encode(), digest_size=16).hexdigest()
    target = folder() / f"{name}.npz"
    if target.exists():
        return str(target)
    arrays = dict(make())
    for array, values in arrays.items():
        if values.dtype.hasobject:  # they would be pickled
            raise InputError(f"{source}: {array} holds objects. Give numbers.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(target, OWNER_ONLY) as opened:
            np.savez(opened, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise InputError(
            f"{target.parent}: {error.strerror or error}. It keeps the records of {source}: make room, "
            "or set XDG_CACHE_HOME to another folder."
        ) from error
    return str(target)


def stamp_of(path: str) -> object:
    """Changes when a file does; None where it is not there, which reading it explains."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return os.path.abspath(path), status.st_size, status.st_mtime_ns


def _write(file: Path, shape: tuple[int, ...], scaled: Iterator[NDArray[np.float32]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(file, OWNER_ONLY) as opened:
        write_array_header_1_0(
            opened, {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": shape}
        )
        for block in scaled:
            opened.write(np.ascontiguousarray(block).data)
