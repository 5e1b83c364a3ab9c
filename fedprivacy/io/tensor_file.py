"""Reads untrusted safetensors files: checks bounds before it parses the whole header.

Format: https://huggingface.co/docs/safetensors (8 bytes: the length of the header; JSON; the data)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.io.regular_file import open_regular

Tensors = Mapping[str, NDArray[Any]]

MAX_BYTES = 2**34
MAX_HEADER = 10**8  # bytes; the limit of safetensors itself
MAX_TENSORS = 10_000  # a checkpoint has some ten; each takes its reader tens of microseconds
_QUOTES = 10 * MAX_TENSORS + 100  # of a tensor's name, three keys and type; and of some entries of metadata
_COMMAS = 70 * MAX_TENSORS  # a shape has 64 numbers at most


def check_tensor_file(path: Path) -> None:
    """Refuses a file that would take its reader minutes.

    Args:
        path: The file; no link is followed.

    Raises:
        OSError: It cannot be opened, or is no regular file.
        ValueError: It is too large, cut off, has more than `MAX_TENSORS` tensors, or more entries of
            metadata, nested parts or numbers than that many tensors can have.
    """
    with open_regular(path, MAX_BYTES, follow=False) as stream:
        _check(stream)


def read_tensor_file(path: Path) -> bytes:
    """The bytes of a file that a user names, of which the header has been checked; links are followed.

    Raises:
        OSError: As `check_tensor_file`.
        ValueError: As `check_tensor_file`.
    """
    with open_regular(path, MAX_BYTES) as stream:
        _check(stream)
        stream.seek(0)
        return stream.read(MAX_BYTES)


def _check(stream: BinaryIO) -> None:
    size = int.from_bytes(stream.read(8), "little")
    if size > MAX_HEADER:
        raise ValueError(f"its header has more than {MAX_HEADER} bytes")
    if size > os.fstat(stream.fileno()).st_size - 8:
        raise ValueError("it is cut off in its header")
    _check_header(stream.read(size))


def _check_header(header: bytes) -> None:
    """Counts what a header is made of, each in one pass of C code, since its reader is slow."""
    header = header.replace(rb"\\", b"").replace(rb"\"", b"")  # each quote left begins or ends a text
    if header.count(b'"') > _QUOTES:
        raise ValueError(f"its header has more names than {MAX_TENSORS:,} tensors have")
    outside = b"".join(header.split(b'"')[::2])
    # Each tensor has two lists, of its shape and its place, and is a table.
    if outside.count(b"[") > 2 * MAX_TENSORS or outside.count(b"{") > MAX_TENSORS + 2:
        raise ValueError(f"it has more than {MAX_TENSORS:,} tensors")
    if outside.count(b",") > _COMMAS:
        raise ValueError(f"its header has more numbers than the shapes of {MAX_TENSORS:,} tensors")


def stored_array(tensors: Tensors, name: str, like: NDArray[Any]) -> NDArray[Any]:
    """An array of a checkpoint, of the shape and type of the one that it replaces.

    Raises:
        InputError: there is none.
    """
    array = tensors.get(name)
    if array is None or array.shape != like.shape or array.dtype != like.dtype:
        has = "none" if array is None else f"{array.dtype} {array.shape}"
        raise InputError(
            f"the checkpoint is damaged: it should hold {name} as {like.dtype} {like.shape}, it holds {has}. "
            "Remove it, or start a new run."
        )
    return array
