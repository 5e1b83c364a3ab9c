"""Bounds on the size and depth of a scenario's text, checked before parsing.

A TOML reader makes tables as it goes: of a megabyte of `a.a.a.a ...` it would take hours, and any walk
through such tables afterwards overflows Python's own stack. This goes once over the text, and need
not know more of TOML than where strings and comments end.
"""

from __future__ import annotations

import re
from typing import Any

MAX_BYTES = 2**20
MAX_DEPTH = 20  # brackets within brackets, and parts of a dotted key
MAX_KEYS = 5_000
MAX_ELEMENTS = 50_000  # of all lists together
MAX_BITS = 64

# Possessive: the text is gone over once. Of a string without an end the quote alone is passed over.
_TOKENS = re.compile(
    r"#[^\n]*+"
    r'|"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|(?P<mark>[\[\]{}.,=\n])",
    re.DOTALL,
)


class TooMuch(ValueError):
    """A text beyond a bound, which the message names."""


def check_text(text: str) -> None:
    """Checks that a TOML text is within bounds.

    Raises:
        TooMuch: it is not.
    """
    if len(text) > MAX_BYTES:
        raise TooMuch("larger than 1 MB")
    depth = dots = keys = elements = 0
    for token in _TOKENS.finditer(text):
        mark = token["mark"]
        if mark is None:
            continue
        if mark == ".":
            dots += 1
        else:
            dots = 0
        if mark in "[{":
            keys += depth == 0
            depth += 1
        elif mark in "]}":
            depth = max(0, depth - 1)
        keys += mark == "="
        elements += mark == ","
        if max(depth, dots) > MAX_DEPTH:
            raise TooMuch("nested too deep")
        if keys > MAX_KEYS:
            raise TooMuch(f"more than {MAX_KEYS:,} keys and sections")
        if elements > MAX_ELEMENTS:
            raise TooMuch(f"more than {MAX_ELEMENTS:,} elements in lists")


def wide_number(value: Any, path: tuple[str | int, ...] = ()) -> tuple[str | int, ...] | None:
    """The path of the first integer with more bits than TOML allows, or None."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return path
    return next((wide for key, item in items if (wide := wide_number(item, (*path, key))) is not None), None)
