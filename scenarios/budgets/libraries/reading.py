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
# Without leading zeros, which YAML reads as octal and a command line as decimal.
_NUMBER = re.compile(r"[-+]?((0|[1-9](_?\d)*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_MAX_WHOLE = 2**63
# A line of YAML at the margin: a key and a value, and a comment. A value is nothing, a quoted text, a plain
# one, or what `_Unreadable` stands for: a list or table on one line, a block (| or >), an anchor, a tag.
_YAML = re.compile(
    r"""(?P<key>[A-Za-z_][\w-]*):(?:[ \t]+(?:"(?P<double>[^"\\]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<plain>[^\s"'#&*!|>%@`\[{?,-][^#]*?|[-+.]?\d[^#]*?)"""
    r"""|(?P<other>\[[^#]*\]|\{[^#]*\}|[|>][-+0-9]*|[&*!][^#"'\[{]*?)))?[ \t]*(?:[ \t]#.*)?"""
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "yes": True, "no": False, "null": None, "~": None}
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},\n]')
_REMEDY = "Name a .toml, .json or .yaml file of settings, or give KEY=VALUE."


class _Unreadable:
    """A value of YAML that is no number and no word; its key must have no part in the cost."""


@dataclass(frozen=True)
class Settings:
    """Settings as one flat table, and where each comes from.

    Args:
        table: Key -> value; each key has one name, whatever its alias or hyphens in the file.
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

    def problem(self, finding: Finding) -> Problem:
        """The finding as the user reads it, with its line or its argument."""
        key = str(finding.path[0]) if finding.path else ""
        if key in self.typed:
            return Problem(self.typed[key], finding.what, finding.remedy)
        value = f" = {finding.shown}" if finding.shown else ""
        what, remedy = finding.what, finding.remedy
        return Problem(dotted(finding.path) + value, what, remedy, self.file, self.lines.get(key))


def read(
    words: Sequence[str], known: Collection[str], locate: Locate, aliases: Mapping[str, str] | None = None
) -> Settings:
    """Reads at most one file and any number of KEY=VALUE, which replace keys of the file.

    Args:
        words: As the user typed them.
        known: The keys that have a part in the cost; others of a file are left unread, others that are typed
            stay in the table, where they are mistakes.
        locate: Finds the table of settings in a document; see `Library.locate`.
        aliases: Other names of known keys.

    Raises:
        InputError: Nothing was given, there are two files, one cannot be read, or a setting was given twice.
    """
    files = [word for word in words if not _ASSIGNED.match(word)]
    if len(files) > 1:
        raise InputError(f"{files[1]}: a second file. Name one, or write KEY=VALUE without blanks.")
    if not words:
        raise InputError(f"fedprivacy budget: no settings. {_REMEDY}")

    def name(key: str) -> str:
        plain = key.replace("-", "_")
        return (aliases or {}).get(plain, plain)

    of_file = _of_file(files[0], known, locate, name) if files else Settings()
    overrides, _ = parse_overrides([word for word in words if _ASSIGNED.match(word)])
    typed: dict[str, str] = {}
    table = dict(of_file.table)
    twice = []
    for each in overrides:
        key = name(str(each.path[0]))
        if key in typed:
            twice.append(Problem(each.label, f"given twice: {typed[key]} too", "Leave out one."))
        typed.setdefault(key, each.label)
        table[key] = None if each.value == "" else _number(each.value)
    if twice:
        raise ScenarioError(twice)
    return Settings(table, of_file.file, of_file.lines, typed, of_file.unread)


def _of_file(file: str, known: Collection[str], locate: Locate, name: Callable[[str], str]) -> Settings:
    document, lines = _parsed(file)
    try:
        path, implied = locate(document)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    inner: Any = document
    for part in path:
        inner = inner[part]
    table, places, spelt = dict(implied), dict[str, int](), dict[str, str]()
    unread, problems = set(), []
    for key, value in inner.items():
        line = lines.get((*path, key))
        if (setting := name(str(key))) not in known:
            unread.add(setting)
            continue
        if setting in spelt:
            first = f"{spelt[setting]} in line {places[setting]}" if setting in places else spelt[setting]
            problems.append(Problem(str(key), f"given twice: {first} too", "Remove one.", file, line))
        elif isinstance(value, _Unreadable):
            what = "a list, a table or more than one line, where a number or a word is needed"
            problems.append(Problem(str(key), what, "Write it as `key: value`.", file, line))
        spelt.setdefault(setting, str(key))
        if line is not None:
            places.setdefault(setting, line)
        table[setting] = _number(value) if isinstance(value, float) else value
    if problems:
        raise ScenarioError(problems)
    return Settings(table, file, places, unread=unread)


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
            document, lines = bounded_json.loads(text), _lines_of_json(text, file)
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
    """Returns the document of YAML with `key: value` at the margin, as all of pfl's configs have it.

    YAML as a whole is not read: its readers can run code, and its anchors grow without bound. Indented lines
    and lists belong to the key above them, whose value is then `_Unreadable`.
    """
    document: dict[str, Any] = {}
    lines: Lines = {}
    problems = []
    key = ""
    for number, row in enumerate(text.splitlines(), 1):
        line = row.rstrip()
        if not line or line.lstrip().startswith("#") or (line == "---" and not key):
            continue
        if key and (line[0] in " \t" or line == "-" or line.startswith("- ")):
            document[key] = _Unreadable()
            continue
        matched = _YAML.fullmatch(line)
        if matched is None:
            what = f"not of the form `key: value`: {on_one_line(line[:60])}"
            problems.append(Problem("", what, "Settings are numbers and words, without lists.", file, number))
            continue
        key = matched["key"]
        if key in document:
            what = f"given twice: line {lines[key,]} too"
            problems.append(Problem(key, what, "Remove one.", file, number))
        else:
            lines[key,] = number
            document[key] = _yaml_value(matched)
    if problems:
        raise ScenarioError(problems)
    return document, lines


def _yaml_value(matched: re.Match[str]) -> Any:
    """A number or a word; pfl hands quoted ones to its command line too, which reads numbers in them."""
    if matched["other"] is not None:
        return _Unreadable()
    quoted = matched["double"] if matched["double"] is not None else matched["single"]
    if quoted is not None:
        return _number(quoted)
    plain = matched["plain"] or "null"
    return _WORDS[plain.lower()] if plain.lower() in _WORDS else _number(plain)


def _lines_of_json(text: str, file: str = "") -> Lines:
    """Returns the line of each key of a valid JSON text.

    Raises:
        ScenarioError: A key is given twice: readers take the last one silently.
    """
    problems = []
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
            if (place := tuple(path)) in lines:
                what = f"given twice: line {lines[place]} too"
                problems.append(Problem(dotted(place), what, "Remove one.", file, line))
            lines.setdefault(place, line)
    if problems:
        raise ScenarioError(problems)
    return lines


def _number(value: Any) -> Any:
    """A number in a text as a number, and one without a fraction (7e6, 100.0) as a whole one."""
    if isinstance(value, str) and _NUMBER.fullmatch(value) and len(value) < 400:
        value = float(value) if re.search(r"[.eE]", value) else int(value)
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _MAX_WHOLE
    return int(value) if whole else value
