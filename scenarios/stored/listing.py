"""Lists stored results: a row for each run directory of a folder.

Rows quote the public part of the records. `fedprivacy report` and `show` derive guarantees again, which takes
about a second for each run.
"""

from __future__ import annotations

import json
import os
import re
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedprivacy.documents.headline import primary_of
from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError
from fedprivacy.guarantees.observers import ALL_OBSERVERS
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.percentages import percent
from fedprivacy.io.toml_text import suggestion
from fedprivacy.records.run_directory import read_document
from fedprivacy.scenario import reading

TAGS = "tags.json"
MAX_TAGS = 20
BY_CELL = (
    "compare",
    "compare-statistics",
    "erm",
    "replay",
    "audit",
    "plan",
)  # each cell or attack has its own
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_FILTER = re.compile(r"([a-z_]+)(<=|>=|!=|=|<|>)(.*)")


class StoredError(InputError):
    """The problems of several stored results, one on each line."""

    several = True


@dataclass(frozen=True)
class Row:
    """A stored result in a list.

    Args:
        path: Its run directory.
        kind: that of the document, such as "run" or "compare".
        started: When it began, in UTC.
        unit: The unit of privacy and adjacency of its epsilons, as "client, replace-one".
        epsilons: Observer -> epsilon; None where nothing is guaranteed. Of results with several cells empty.
        guarantees: "whole" for the whole result, "by cell", or "not stated", as of unfinished work.
        accuracy: Of the last round of a run, or of a choice of settings; None otherwise, and where it is
            operator-only.
        answer: The first answer of a statistics run, or the score of a run of no classes, in words.
        operator: The values of `OPERATOR_COLUMNS`; None where they were not asked for.
    """

    path: Path
    name: str
    kind: str
    started: str
    status: str
    trust: str | None
    unit: str | None
    delta: float | None
    epsilons: Mapping[str, float | None]
    guarantees: str
    accuracy: float | None
    answer: str | None
    tags: tuple[str, ...]
    operator: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the row as a JSON object, each epsilon under its observer."""
        return {
            "run": self.path.name,
            "path": str(self.path),
            "name": self.name,
            "kind": self.kind,
            "started": self.started,
            "status": self.status,
            "trust": self.trust,
            "unit": self.unit,
            "delta": self.delta,
            "guarantees": self.guarantees,
            **{f"epsilon_{observer}": self.epsilons.get(observer) for observer in ALL_OBSERVERS},
            "accuracy": self.accuracy,
            "answer": self.answer,
            "tags": list(self.tags),
            **(self.operator or {}),
        }


COLUMNS = (
    "run", "path", "name", "kind", "started", "status", "trust", "unit", "delta", "guarantees",
    *(f"epsilon_{observer}" for observer in ALL_OBSERVERS), "accuracy", "answer", "tags",
)  # fmt: skip
OPERATOR_COLUMNS = ("seed", "command", "error", "seconds")
# The fields of a record that a row is made of; others may be large.
_QUOTED = (
    *("name", "kind", "started", "status", "scenario", "privacy", "final", "choice", "queries", "notes"),
    *("operator_only", "simulation_only"),
)


def rows_of(folder: Path, *, operator: bool = False) -> list[Row]:
    """Returns a row for each run directory in a folder, the newest first.

    Folders without a readable record are passed over.

    Args:
        folder: The folder.
        operator: Whether rows have operator-only values.

    Raises:
        InputError: if there is no such folder.
    """
    try:
        entries = [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        raise InputError(f"{folder}: no such folder. Name the folder of your run directories.") from None
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}. Name the folder of your run directories.") from error
    rows = []
    for entry in entries:
        with suppress(InputError):
            rows.append(row_of(entry, operator=operator))
    return sorted(rows, key=lambda row: (row.started, row.path.name), reverse=True)


def row_of(path: Path, *, operator: bool = False) -> Row:
    """Returns the row of one run directory.

    Args:
        path: The run directory.
        operator: As of `rows_of`.

    Raises:
        InputError: if it holds no readable record.
    """
    record = path / "run.json"
    if not (path / "scenario.toml").is_file() and not record.is_file():
        raise InputError(f"{path}: not a run directory. `fedprivacy list` names those in runs.")
    stored = read_document(record) if os.path.lexists(record) else _unfinished(path)
    quoted = {key: stored[key] for key in _QUOTED if key in stored}
    document = quoted if operator else public(quoted)
    scenario = _table(document.get("scenario"))
    privacy, final = _table(document.get("privacy")), _table(document.get("final") or document.get("choice"))
    stated = [_table(each) for each in _items(privacy.get("guarantees"))]
    first = stated[0] if stated else {}
    # The trust model of a comparison is that of each cell.
    whole = document.get("kind") in (None, "run", "statistics")
    requested = _table(scenario.get("privacy")) if whole else {}
    unit, adjacency = first.get("unit"), first.get("adjacency")
    return Row(
        path=path,
        name=_text(document.get("name")) or path.name,
        kind=_text(document.get("kind")) or "",
        started=_text(document.get("started")) or "",
        status=_text(document.get("status")) or "",
        trust=_text(first.get("trust") if stated else requested.get("trust")),
        unit=f"{unit}, {adjacency}" if isinstance(unit, str) and isinstance(adjacency, str) else None,
        delta=_number(first.get("delta")),
        epsilons={str(each.get("observer")): _number(each.get("epsilon")) for each in stated},
        guarantees="whole" if stated else "by cell" if document.get("kind") in BY_CELL else "not stated",
        accuracy=_number(final.get("accuracy")),
        answer=_answer(document) if document.get("kind") == "statistics" else _score(document),
        tags=tags_of(path),
        operator=_operator_columns(stored) if operator else None,
    )


def _operator_columns(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what only the operator may see in a list."""
    seed = document.get("seed", _table(document.get("scenario")).get("seed"))
    seconds = _number(_table(document.get("performance")).get("seconds"))
    command, error = _text(document.get("command")), _text(document.get("error"))
    number = seed if isinstance(seed, int) else None
    return dict(zip(OPERATOR_COLUMNS, (number, command, error, seconds), strict=True))


def _score(document: Mapping[str, Any]) -> str | None:
    """Returns the primary metric of a run that predicts no classes, with its name; else None."""
    score = _number(_table(document.get("final")).get("score"))
    return None if score is None else f"{primary_of(_table(document.get('scenario'))).title} {percent(score)}"


def _answer(document: Mapping[str, Any]) -> str | None:
    """Returns the first answer with its query's name; None without a readable one."""
    from fedprivacy.documents.answers import Query
    from fedprivacy.report.statistics.answer import published

    try:
        query = Query.model_validate(next(iter(_items(document.get("queries"))), None))
        label, value, _ = published(query)
    except ValueError:
        return None
    name = query.name if label in ("", "chosen") else f"{query.name}, {label}"
    return f"{name}: {value}"[:200]


def _unfinished(path: Path) -> dict[str, Any]:
    """Returns what is known of work that has not written its record yet."""
    scenario = read_scenario(path / "scenario.toml")
    started = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime((path / "scenario.toml").stat().st_mtime))
    return {"name": scenario.get("name"), "status": "unfinished", "started": started, "scenario": scenario}


def read_scenario(path: Path) -> dict[str, Any]:
    """Returns the tables of a stored scenario.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        return tomllib.loads(reading.read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}.") from None


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


# ------------------------------------------------------------------ choosing rows

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def chosen(rows: Iterable[Row], filters: Sequence[str], sort: str | None) -> list[Row]:
    """Returns the rows that fit all filters, in an order.

    Args:
        rows: All rows.
        filters: Conditions such as "trust=local", "accuracy>0.9" or "tags=paper". A row without a value fits
            no condition but "!=".
        sort: A column; with "-" before it in falling order. None keeps the order.

    Raises:
        InputError: if a filter is not of this form, or a column is unknown.
    """
    conditions = [_condition(text) for text in filters]
    fitting = [row for row in rows if all(fits(row.to_json()) for fits in conditions)]
    if sort is None:
        return fitting
    column = _column(sort.lstrip("-"), f"--sort {sort}")
    known = [row for row in fitting if row.to_json()[column] is not None]
    order = sorted(known, key=lambda row: row.to_json()[column], reverse=sort.startswith("-"))
    return order + [row for row in fitting if row.to_json()[column] is None]


def _condition(text: str) -> Callable[[Mapping[str, Any]], bool]:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise InputError(
            f"--filter {text}: no condition. Write COLUMN=VALUE, or <, >, <=, >=, != in place of =."
        )
    column, sign, wanted = _column(match[1], f"--filter {text}"), match[2], match[3]
    compare = _COMPARISONS[sign]

    def fits(row: Mapping[str, Any]) -> bool:
        value = row[column]
        if isinstance(value, list):
            return (wanted in value) == (sign != "!=")
        if value is None:
            return sign == "!="
        if isinstance(value, float):
            try:
                return compare(value, float(wanted))
            except ValueError:
                raise InputError(f"--filter {text}: {wanted!r} is no number. Give one.") from None
        return compare(value, wanted)

    return fits


def _column(name: str, where: str) -> str:
    if name not in COLUMNS:
        raise InputError(f"{where}: no column {name!r}. {suggestion(name, COLUMNS)}")
    return name


# ------------------------------------------------------------------ tags


def tags_of(path: Path) -> tuple[str, ...]:
    """Returns the tags of a run directory."""
    with suppress(OSError, ValueError):
        tags = bounded_json.loads(bounded_json.read_bytes(path / TAGS, follow=False).decode())
        if isinstance(tags, list):
            return tuple(tag for tag in tags if isinstance(tag, str) and _TAG.fullmatch(tag))[:MAX_TAGS]
    return ()


def tag(path: Path, add: Sequence[str], remove: Sequence[str] = ()) -> tuple[str, ...]:
    """Adds tags to a run directory and removes others, and returns those that it has then.

    Raises:
        InputError: if it is no run directory or cannot be written, a tag is not one, or there would be too
            many.
    """
    row_of(path)
    if wrong := [name for name in add if not _TAG.fullmatch(name)]:
        raise InputError(f"{wrong[0][:100]!r}: not a tag. Use letters, digits, '.', '_' and '-', at most 40.")
    tags = tuple(dict.fromkeys([*(name for name in tags_of(path) if name not in remove), *add]))
    if len(tags) > MAX_TAGS:
        raise InputError(f"{path}: would have {len(tags)} tags. At most {MAX_TAGS} are possible.")
    try:
        replace_file(path / TAGS, json.dumps(tags).encode())
    except OSError as error:
        raise InputError(f"{path / TAGS}: {error.strerror}. Ask for the right to write there.") from error
    return tags
