"""Parses untrusted JSON within bounds on its size, depth and numbers.

Python's own reader takes NaN and Infinity, numbers of thousands of digits and halves of characters, each of
which fails later, where nobody expects it; and any depth up to where the interpreter gives up.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from fedprivacy.io.regular_file import read_regular

MAX_BYTES = 2**28  # of a file: a run of a million rounds has some 200 MB
# Two letters that are a list or a table take a hundred bytes. A run of a million rounds has half of these.
MAX_TABLES = 2**23
MAX_ELEMENTS = 2**25
MAX_DEPTH = 64  # a ledger has events nested 20 deep, with a list around each


def loads(text: str | bytes, *, finite: bool = True) -> Any:
    """Parses a JSON text, whose whole numbers have 64 bits at most.

    Args:
        text: The text; as bytes it is UTF-8.
        finite: Whether its other numbers must be finite.

    Raises:
        ValueError: it is not JSON, or not within these bounds.
    """
    _count(text if isinstance(text, str) else text.decode("latin-1"))  # the marks are the same there
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    _check(document, finite)
    return document


def read(path: Path) -> Any:
    """Parses a JSON file; see `loads`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON in UTF-8, or larger than 256 MB, or not within the bounds of `loads`.
    """
    return loads(read_bytes(path).decode("utf-8"))


def read_bytes(path: Path, *, follow: bool = True) -> bytes:
    """Reads a regular file of at most 256 MB; see `read_regular`."""
    return read_regular(path, MAX_BYTES, follow=follow)


def _count(text: str) -> None:
    """Checks, before parsing, that the result takes bounded memory."""
    if text.count("[") + text.count("{") > MAX_TABLES:
        raise ValueError(f"it has more than {MAX_TABLES:,} lists and tables")
    if text.count(",") > MAX_ELEMENTS:
        raise ValueError(f"it has more than {MAX_ELEMENTS:,} elements")


def _check(data: Any, finite: bool) -> None:
    level = [data]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            kind = type(value)  # the reader makes no others, and this runs millions of times
            if kind is str:
                if not value.isascii():
                    value.encode()  # half a character has no bytes
            elif kind is dict:
                below += value
                below += value.values()
            elif kind is list:
                below += value
            elif kind is int:
                if value.bit_length() > 64:
                    raise ValueError("it has a whole number of more than 64 bits")
            elif kind is float and finite and not math.isfinite(value):
                raise ValueError("it has a number that is not finite")
        if not below:
            return
        level = below
    raise ValueError("it is nested too deep")
