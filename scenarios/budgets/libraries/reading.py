"""Reads settings of another library out of a file (TOML, JSON or YAML) and of KEY=VALUE arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fedprivacy.errors import Finding, InputError, KeyPath, Problem, ScenarioError
from fedprivacy.io import bounded_json
from fedprivacy.io.regular_file import read_regular
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario import reading as scenario_files
from fedprivacy.scenario.bounds import MAX_BYTES, MAX_DEPTH
from fedprivacy.scenario.changes import parse_overrides

Lines = dict[KeyPath, int]
Locate = Callable[[dict[str, Any]], tuple[KeyPath, dict[str, Any]]]

_ASSIGNED = re.compile(r"[A-Za-z][A-Za-z0-9_-]*=")
# YAML 1.1 takes 1e-6 for text, since it has no point.
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
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
            document, lines = _parse_yaml(text)
        else:
            raise InputError(f"{file}: an unknown kind of file. {_REMEDY}")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        what = f"not YAML: {getattr(error, 'problem', None) or 'it cannot be parsed'}"
        raise ScenarioError([Problem("", what, "A line is `key: value`.", file, line)]) from None
    except (ValueError, RecursionError) as error:
        at = re.search(r"line (\d+)", str(error))
        what = f"cannot be parsed: {error}"
        raise ScenarioError([Problem("", what, _REMEDY, file, int(at[1]) if at else None)]) from None
    if not isinstance(document, dict):
        raise InputError(f"{file}: has no keys. {_REMEDY}")
    return document, lines


def _parse_yaml(text: str) -> tuple[Any, Lines]:
    lines: Lines = {}
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is not None:
        _mark(node, (), lines)
    return _with_numbers(yaml.safe_load(text)), lines


def _lines_of_json(text: str) -> Lines:
    """Returns the line of each key of a JSON text: JSON is YAML once its tabs are blanks."""
    lines: Lines = {}
    try:
        node = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
    except yaml.YAMLError:  # such as a key of a thousand letters: then errors name the key alone
        return {}
    if node is not None:
        _mark(node, (), lines)
    return lines


def _mark(node: yaml.Node, path: KeyPath, lines: Lines) -> None:
    if len(path) > MAX_DEPTH:  # or an anchor that contains itself
        raise ValueError("it is nested too deep")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            lines[*path, str(key.value)] = key.start_mark.line + 1
            _mark(value, (*path, str(key.value)), lines)
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            _mark(value, (*path, at), lines)


def _with_numbers(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return {key: _number(value) for key, value in document.items()}


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def _plain(key: str) -> str:
    return key.replace("-", "_")
