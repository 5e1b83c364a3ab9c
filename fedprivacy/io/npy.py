"""The .npy format, read from bytes that nobody vouches for.

numpy's own reader believes the header: it makes room for the shape that stands there before it looks for the
numbers, evaluates the header as Python, and takes an archive or a pickle for an array that begins like one.
Here a header is one of those that numpy writes for plain arrays, and an array is as large as its bytes.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAX_HEADER = 10_000  # bytes; numpy's own limit. A plain array's header has some 100.
MAX_DIMENSIONS = 32
_MAGIC = b"\x93NUMPY"
_LENGTHS = {
    (1, 0): 2,
    (2, 0): 4,
    (3, 0): 4,
}  # version -> bytes of the number that says how long the header is
_ENTRY = re.compile(
    r"\s*(['\"])(?P<key>descr|fortran_order|shape)\1\s*:"
    r"\s*(?:(['\"])(?P<text>[^'\"]*)\3|(?P<flag>True|False)|\((?P<shape>[0-9L, ]*)\))\s*(?:,|$)"
)
_TYPE = re.compile(r"[<>|=]?(?:[?bBO]|[biufcSUVO][0-9]{1,9}|[mM]8(?:\[[0-9]{0,6}[A-Za-z]{1,2}\])?)")
_SIZE = re.compile(r"([0-9]{1,18})L?")


@dataclass(frozen=True)
class Header:
    """What an array says of itself: its shape, its type, and whether its columns come first."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool

    @property
    def size(self) -> int:
        """How many bytes its numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize


def array_of(data: bytes) -> NDArray[Any]:
    """The array of a whole .npy file in memory, a copy of its own that may be changed.

    Raises:
        ValueError: it is none, or of objects (a pickle, never read), or not as long as its header says.
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
    """The header of an array, read up to where its numbers begin; also that of a pickle, which `kind` tells.

    Raises:
        ValueError: it is none.
    """
    begin = stream.read(8)
    width = _LENGTHS.get((begin[6], begin[7]), 0) if len(begin) == 8 else 0
    length = stream.read(width)
    size = int.from_bytes(length, "little")
    return _header(begin + length + stream.read(min(size, MAX_HEADER + 1)))[0]


def rows_of(data: bytes, header: Header, rows: int) -> NDArray[Any]:
    """Some rows of an array whose columns do not come first, or all of one whose columns do.

    Args:
        data: Exactly their bytes.
        header: Of the array.
        rows: How many.

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
    """The header at the beginning of an array, and where its numbers begin."""
    if len(data) < 8 or data[:6] != _MAGIC:
        raise ValueError("not an array in numpy's format")
    version = (data[6], data[7])
    width = _LENGTHS.get(version)
    if width is None:
        raise ValueError(f"version {version[0]}.{version[1]} of numpy's format is not known")
    size = int.from_bytes(data[8 : 8 + width], "little")
    text = data[8 + width : 8 + width + size]
    if size > MAX_HEADER:
        raise ValueError(f"the header of an array has {size} bytes, {MAX_HEADER} are allowed")
    if len(text) < size:
        raise ValueError("the header of an array is cut off")
    return _parse(text.decode("latin-1").strip()), 8 + width + size


def _parse(text: str) -> Header:
    found: dict[str, str] = {}
    inner, at = text[1:-1].strip(), 0
    while text[:1] + text[-1:] == "{}" and at < len(inner):
        entry = _ENTRY.match(inner, at)
        if entry is None or entry["key"] in found:
            break
        found[entry["key"]] = next(
            entry[name] for name in ("text", "flag", "shape") if entry[name] is not None
        )
        at = entry.end()
    else:
        if found.keys() == {"descr", "fortran_order", "shape"} and found["fortran_order"] in (
            "True",
            "False",
        ):
            return Header(_shape(found["shape"]), _type(found["descr"]), found["fortran_order"] == "True")
    raise ValueError(f"not the header of a plain array: {text[:100]}")


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    sizes = [_SIZE.fullmatch(part) for part in (parts[:-1] if parts[-1] == "" else parts)]
    if len(sizes) > MAX_DIMENSIONS or not all(sizes):
        raise ValueError(f"not the shape of an array: ({text[:100]})")
    return tuple(int(size[1]) for size in sizes if size)


def _type(text: str) -> np.dtype[Any]:
    if _TYPE.fullmatch(text):
        try:
            dtype = np.dtype(text)
        except TypeError:
            dtype = np.dtype("V0")
        if dtype.itemsize:
            return dtype
    raise ValueError(f"not the type of a plain array: {text[:100]!r}")
