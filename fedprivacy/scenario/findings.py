"""Mistakes in a scenario, from the place where they are found to the words that a user reads."""

from __future__ import annotations

import datetime
import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedprivacy.errors import Problem

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """One mistake: at which key, what is wrong, what to do, and the value if that helps."""

    path: Path
    what: str
    remedy: str = ""
    shown: str = ""  # the value as TOML, or nothing


# Keys that choose which other keys there are.
CHOICES = ("name", "partition", "scaling", "trust", "unit", "optimizer", "mechanism")


@dataclass(frozen=True)
class Override:
    """One `--set a.b=value`."""

    label: str
    path: Path
    value: Any


@dataclass(frozen=True)
class Places:
    """Where the keys of a scenario come from: lines of a file, and overrides.

    Args:
        file: The file as the user named it.
        lines: Path of a key -> its line.
        overrides: The `--set` options.
    """

    file: str = ""
    lines: Mapping[Path, int] | None = None
    overrides: Sequence[Override] = ()

    def problem(self, finding: Finding) -> Problem:
        """The finding as the user reads it, with its line or its `--set`."""
        value = f" = {finding.shown}" if finding.shown else ""
        for override in reversed(self.overrides):
            around = override.path[: len(finding.path)] == finding.path and finding.path not in (
                self.lines or {}
            )
            if around or finding.path[: len(override.path)] == override.path:
                rest = dotted(finding.path) + value + ": " if len(finding.path) > len(override.path) else ""
                return Problem(f"--set {override.label}", rest + finding.what, finding.remedy)
        for override in reversed(self.overrides):
            # What an override chooses (a partition, a trust model) may ask for a key that nobody gave.
            chose = override.path[-1] in CHOICES and override.path[:1] == finding.path[:1]
            if chose and finding.path not in (self.lines or {}):
                what = dotted(finding.path) + value + ": " + finding.what
                return Problem(f"--set {override.label}", what, finding.remedy)
        return Problem(
            dotted(finding.path) + value, finding.what, finding.remedy, self.file, self.line(finding.path)
        )

    def line(self, path: Path) -> int | None:
        """The line of a key, else of the innermost table around it that has one."""
        lines = self.lines or {}
        return next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)


def dotted(path: Path) -> str:
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
    """What a TOML value is, in words."""
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


def wrong_type(path: Path, value: Any, wanted: str, remedy: str = "") -> Finding:
    return Finding(path, f"{literal(value)} is {kind_of(value)}, {wanted} is needed", remedy)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest to a misspelt one, if one is near."""
    plain = {name.lower().replace("_", "-"): name for name in known}
    near = difflib.get_close_matches(word.lower().replace("_", "-"), plain, n=1)
    return plain[near[0]] if near else None


def suggestion(word: str, known: Sequence[str], quoted: bool = False) -> str:
    """`Did you mean this?`, or else all that is known."""
    show = literal if quoted else str
    near = closest(word, known)
    return f"Did you mean {show(near)}?" if near else f"Known here: {', '.join(map(show, known))}."
