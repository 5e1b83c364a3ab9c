"""The .npy format, read from untrusted bytes.

numpy's own reader trusts the header: it allocates the shape given there before it looks for the
numbers, and takes an archive or a pickle for an array that begins like one. Here numpy parses a short, flat
header; only plain arrays are accepted, and an array is as large as its bytes.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

MAX_HEADER = 10_000  # bytes; numpy's own limit. A plain array's header has some 100.
MAX_DIMENSIONS = 32
_MAX_SIZE = 10**18
# Version -> bytes of the header's length. Version 3.0 differs from 2.0 in the encoding of field names alone.
_LENGTHS = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
# numpy passes a header to Python's parser, where nested expressions overflow the stack of a small thread.
_FLAT = re.compile(rb"""\s*\{(?:[\s,:0-9]|True|False|'[^'\\]*'|"[^"\\]*"|\([\s,0-9]*\))*\}\s*""")
_PYTHON_2 = re.compile(rb"(?<=[0-9])L")  # as in (3L, 2L); numpy reads such a header with a warning


@dataclass(frozen=True)
class Header:
    """Shape and type of an array, and whether its columns come first."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool

    @property
    def size(self) -> int:
        """The bytes that its numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize


def array_of(data: bytes) -> NDArray[Any]:
    """Reads a whole .npy file in memory into a new array.

    Raises:
        ValueError: it is no array, or one of objects (a pickle, never read), or contradicts its header.
    """
    header, start = _header(data[: MAX_HEADER + 12])
    _check_plain(header)
    if len(data) - start != header.size:
        raise ValueError(
            f"the header of an array says {header.size} bytes, and {len(data) - start} follow it"
        )
    flat = (
        np.frombuffer(memoryview(data)[start:], header.dtype).copy()
        if header.size
        else np.empty(0, header.dtype)
    )
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def header_of(stream: IO[bytes]) -> Header:
    """Reads the header of an array, also of an array of objects, up to where its numbers begin.

    Raises:
        ValueError: it is no header.
    """
    begin = stream.read(npy_format.MAGIC_LEN)
    width = _LENGTHS.get((begin[6], begin[7]), 0) if len(begin) == npy_format.MAGIC_LEN else 0
    length = stream.read(width)
    size = int.from_bytes(length, "little")
    return _header(begin + length + stream.read(min(size, MAX_HEADER + 1)))[0]


def rows_of(data: bytes, header: Header, rows: int) -> NDArray[Any]:
    """Reads some rows of an array, or all of them where its columns come first.

    Args:
        data: Exactly their bytes.
        header: Of the array.
        rows: The number of rows.

    Raises:
        ValueError: an array of objects is a pickle.
    """
    _check_plain(header)
    shape = (rows, *header.shape[1:])
    flat = np.frombuffer(data, header.dtype) if data else np.empty(0, header.dtype)
    return flat.reshape(shape, order="F" if header.fortran else "C")


def _check_plain(header: Header) -> None:
    if header.dtype.hasobject:
        raise ValueError("an array of objects is a pickle, which is never read")


def _header(data: bytes) -> tuple[Header, int]:
    """Parses the header at the beginning of an array; returns it and where the numbers begin."""
    if len(data) < npy_format.MAGIC_LEN or not data.startswith(npy_format.MAGIC_PREFIX):
        raise ValueError("not an array in numpy's format")
    version = (data[6], data[7])
    width = _LENGTHS.get(version)
    if width is None:
        raise ValueError(f"version {version[0]}.{version[1]} of numpy's format is not known")
    start = npy_format.MAGIC_LEN + width
    size = int.from_bytes(data[npy_format.MAGIC_LEN : start], "little")
    if size > MAX_HEADER:
        raise ValueError(f"the header of an array has {size} bytes, {MAX_HEADER} are allowed")
    text = data[start : start + size]
    if len(text) < size:
        raise ValueError("the header of an array is cut off")
    return _parsed(data[npy_format.MAGIC_LEN : start], text), start + size


@lru_cache(maxsize=64)  # the messages of a round have the same few headers
def _parsed(length: bytes, text: bytes) -> Header:
    """Parses a header.

    Args:
        length: The bytes of its length, by which numpy's reader of the version knows where it ends.
        text: The header.
    """
    flat = _PYTHON_2.sub(b" ", text)
    if not _FLAT.fullmatch(flat):
        raise _no_plain(flat)
    stream = io.BytesIO(length + flat)
    parse = npy_format.read_array_header_1_0 if len(length) == 2 else npy_format.read_array_header_2_0
    try:
        shape, fortran, dtype = parse(stream, max_header_size=MAX_HEADER)
    except Exception as error:  # whatever Python's parser and numpy's types raise
        raise _no_plain(flat) from error
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise _no_plain(flat)
    if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and 0 <= n < _MAX_SIZE for n in shape):
        raise ValueError(f"not the shape of an array: {str(shape)[:100]}")
    return Header(shape, dtype, fortran)


def _no_plain(text: bytes) -> ValueError:
    return ValueError(f"not the header of a plain array: {text[:100].decode('latin-1').strip()}")
