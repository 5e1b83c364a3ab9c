"""Reads settings of another library out of a file (TOML, JSON or YAML) and of KEY=VALUE arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedprivacy.errors import Finding, InputError, KeyPath, Problem, ScenarioError
from fedprivacy.io import bounded_json
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.regular_file import read_regular
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario import reading as scenario_files
from fedprivacy.scenario.bounds import MAX_BYTES
from fedprivacy.scenario.changes import parse_overrides

Lines = dict[KeyPath, int]
Locate = Callable[[dict[str, Any]], tuple[KeyPath, dict[str, Any]]]

_ASSIGNED = re.compile(r"[A-Za-z][A-Za-z0-9_-]*=")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
# A line of flat YAML: a key, then nothing, a quoted text or a plain one, and a comment.
_YAML = re.compile(
    r"""(?P<key>[A-Za-z_][\w-]*):(?:[ \t]+(?:"(?P<double>[^"\\]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<plain>[^\s"'#&*!|>%@`\[{?,-][^#]*?|[-+.]?\d[^#]*?)))?[ \t]*(?:[ \t]#.*)?"""
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None}
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},\n]')
_REMEDY = "Name a .toml, .json or .yaml file of settings, or give KEY=VALUE."


@dataclass(frozen=True)
class Settings:
    """Settings as one flat table, and where each comes from.

    Args:
        table: Key -> value; hyphens of keys as underscores.
        file: The file as the user named it; empty without one.
        lines: Key -> its line in the file.
        typed: Key -> the argument that gives it.
        unread: The other keys of the file.
    """

    table: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)
    unread: Collection[str] = ()

    def problem(self, finding: Finding, aliases: Mapping[str, str]) -> Problem:
        """The finding as the user reads it, with its line or its argument."""
        key = str(finding.path[0]) if finding.path else ""
        names = [key, *(other for other, name in aliases.items() if name == key)]
        for name in names:
            if name in self.typed:
                return Problem(self.typed[name], finding.what, finding.remedy)
        line = next((self.lines[name] for name in names if name in self.lines), None)
        value = f" = {finding.shown}" if finding.shown else ""
        return Problem(dotted(finding.path) + value, finding.what, finding.remedy, self.file, line)


def read(words: Sequence[str], known: Collection[str], locate: Locate) -> Settings:
    """Reads at most one file and any number of KEY=VALUE, which replace keys of the file.

    Args:
        words: As the user typed them.
        known: The keys that have a part in the cost; others of a file are left unread, others that are typed
            stay in the table, where they are mistakes.
        locate: Finds the table of settings in a document; see `Library.locate`.

    Raises:
        InputError: Nothing was given, there are two files, or one cannot be read.
    """
    files = [word for word in words if not _ASSIGNED.match(word)]
    if len(files) > 1:
        raise InputError(f"{files[1]}: a second file. Name one, or write KEY=VALUE without blanks.")
    if not words:
        raise InputError(f"fedprivacy budget: no settings. {_REMEDY}")
    of_file = _of_file(files[0], known, locate) if files else Settings()
    overrides, _ = parse_overrides([word for word in words if _ASSIGNED.match(word)])
    typed = {_plain(str(each.path[0])): each for each in overrides}
    return Settings(
        {**of_file.table, **{key: _number(each.value) for key, each in typed.items()}},
        of_file.file,
        of_file.lines,
        {key: each.label for key, each in typed.items()},
        of_file.unread,
    )


def _of_file(file: str, known: Collection[str], locate: Locate) -> Settings:
    document, lines = _parsed(file)
    try:
        path, implied = locate(document)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    table: Any = document
    for part in path:
        table = table[part]
    plain = {_plain(str(key)): value for key, value in table.items()}
    places = {_plain(str(key)): lines[*path, key] for key in table if (*path, key) in lines}
    return Settings(
        {**implied, **{key: value for key, value in plain.items() if key in known}},
        file,
        places,
        unread={key for key in plain if key not in known},
    )


def _parsed(file: str) -> tuple[dict[str, Any], Lines]:
    """Returns the document of a file, and the line of each key in it."""
    try:
        text = read_regular(file, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file}: not text in UTF-8. {_REMEDY}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: cannot be read: {reason}. {_REMEDY}") from None
    suffix = Path(file).suffix.lower()
    try:
        if suffix == ".toml":
            document, places, _ = scenario_files.parse(text, file, ())
            return document, dict(places.lines or {})
        if suffix == ".json":
            document, lines = bounded_json.loads(text), _lines_of_json(text)
        elif suffix in (".yaml", ".yml"):
            document, lines = _parse_yaml(text, file)
        else:
            raise InputError(f"{file}: an unknown kind of file. {_REMEDY}")
    except (ValueError, RecursionError) as error:  # of JSON
        at = re.search(r"line (\d+)", str(error))
        what = f"cannot be parsed: {error}"
        raise ScenarioError([Problem("", what, _REMEDY, file, int(at[1]) if at else None)]) from None
    if not isinstance(document, dict):
        raise InputError(f"{file}: has no keys. {_REMEDY}")
    return document, lines


def _parse_yaml(text: str, file: str) -> tuple[dict[str, Any], Lines]:
    """Returns the document of flat YAML: `key: value`, as all of pfl's configs are.

    YAML as a whole is not read: its readers can run code, and its anchors grow without bound.
    """
    document: dict[str, Any] = {}
    lines: Lines = {}
    problems = []
    for number, row in enumerate(text.splitlines(), 1):
        line = row.rstrip()
        if not line or line.lstrip().startswith("#") or line == "---":
            continue
        matched = _YAML.fullmatch(line)
        if matched is None:
            what = f"not of the form `key: value`: {on_one_line(line[:60])}"
            problems.append(Problem("", what, "Settings are numbers and words, without lists.", file, number))
        elif matched["key"] in document:
            problems.append(Problem(matched["key"], "given twice", "Remove one.", file, number))
        else:
            lines[matched["key"],] = number
            document[matched["key"]] = _yaml_value(matched)
    if problems:
        raise ScenarioError(problems)
    return document, lines


def _yaml_value(matched: re.Match[str]) -> Any:
    quoted = matched["double"] if matched["double"] is not None else matched["single"]
    if quoted is not None:
        return quoted
    plain = matched["plain"] or "null"
    return _WORDS[plain.lower()] if plain.lower() in _WORDS else _number(plain)


def _lines_of_json(text: str) -> Lines:
    """Returns the line of each key of a valid JSON text."""
    lines: Lines = {}
    path: list[str | int] = []  # an object's current key, or an array's position, at each depth
    line, expects_key = 1, False
    for token in _JSON.findall(text):
        if token == "\n":
            line += 1
        elif token in "[{":
            path.append(0 if token == "[" else "")
            expects_key = token == "{"
        elif token in "]}":
            path.pop()
            expects_key = False
        elif token == ",":
            position = path[-1]
            expects_key = isinstance(position, str)
            if not isinstance(position, str):
                path[-1] = position + 1
        elif expects_key:
            path[-1], expects_key = json.loads(token), False
            lines[tuple(path)] = line
    return lines


def _number(value: Any) -> Any:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return value
    return int(value) if value.lstrip("+-").isdigit() and len(value) < 20 else float(value)


def _plain(key: str) -> str:
    return key.replace("-", "_")
