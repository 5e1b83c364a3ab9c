"""Keys and values as TOML writes them, and the known word that is nearest to a misspelt one."""

from __future__ import annotations

import datetime
import difflib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from fedprivacy.errors import KeyPath


def dotted(path: KeyPath) -> str:
    """A path as TOML writes it: `compare.central.server.rounds`, `compare.seeds[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += ("." if text else "") + (part if bare else literal(part))
    return text


def literal(value: Any) -> str:
    """A value as TOML writes it, on one line, cut if it is long."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    elif isinstance(value, datetime.date | datetime.time):
        text = value.isoformat()
    elif isinstance(value, list | tuple):
        text = "[" + ", ".join(map(literal, value)) + "]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{dotted((key,))} = {literal(item)}" for key, item in value.items()) + "}"
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:50] + " ..."


def kind_of(value: Any) -> str:
    """The type of a TOML value, in words."""
    words: list[tuple[type | tuple[type, ...], str]] = [
        (bool, "a yes-or-no value"),
        (int, "a whole number"),
        (float, "a number with a decimal point"),
        (str, "text"),
        (list, "a list"),
        (dict, "a section"),
        ((datetime.date, datetime.time), "a date or time"),
    ]
    return next((word for kind, word in words if isinstance(value, kind)), "something else")


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest to a misspelt one, if one is near."""
    plain = {name.lower().replace("_", "-"): name for name in known}
    near = difflib.get_close_matches(word.lower().replace("_", "-"), plain, n=1)
    return plain[near[0]] if near else None


def suggestion(word: str, known: Sequence[str], quoted: bool = False) -> str:
    """`Did you mean this?`, or else all known names."""
    show = literal if quoted else str
    near = closest(word, known)
    return f"Did you mean {show(near)}?" if near else f"Known here: {', '.join(map(show, known))}."
