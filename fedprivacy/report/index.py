"""The index page of stored results: one offline page with a sortable table and links to the reports."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from fedprivacy.errors import InputError
from fedprivacy.guarantees.observers import ALL_OBSERVERS, ANALYST
from fedprivacy.guarantees.statement import printed
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.escape import printable
from fedprivacy.io.percentages import percent
from fedprivacy.io.regular_file import open_regular
from fedprivacy.report import environment, words
from fedprivacy.report.page_names import OPERATOR, PUBLIC

FILE, OPERATOR_FILE = "index.html", "operator.html"
GENERATOR = b'<meta name="generator" content="fedprivacy list">'
MOST = 2**30  # bytes of a page
HEAD = ("run", "started", "kind", "trust", "unit, adjacency")
HEAD_END = ("delta", "accuracy or score", "status", "tags")
OPERATOR_HEAD = ("seed", "command", "error", "seconds")  # and the keys of a row


@dataclass(frozen=True)
class Cell:
    """A text, and the number that it is sorted by; None: by the text."""

    text: str
    key: float | None = None


@dataclass(frozen=True)
class IndexRow:
    """The cells of a stored result, and the address of its report where there is one."""

    cells: tuple[Cell, ...]
    link: str | None


def render(rows: Sequence[Mapping[str, Any]], reports: Sequence[bool], *, operator: bool = False) -> str:
    """Renders the index page.

    Args:
        rows: A row for each stored result (`scenarios.stored.listing.Row.to_json`). No text in it is trusted.
        reports: Whether each has a report.
        operator: Whether rows have operator-only values, so that the page must not be passed on.

    Returns:
        A whole HTML document. Its only script sorts the table; the page's policy names the script's hash.
    """
    script = (Path(__file__).parent / "index.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = OPERATOR if operator else PUBLIC
    shuffled = any(row.get(f"epsilon_{ANALYST}") is not None for row in rows)
    observers = [name for name in ALL_OBSERVERS if name != ANALYST or shuffled]
    shown = [
        _row(row, observers, page if report else None, operator)
        for row, report in zip(rows, reports, strict=True)
    ]
    first, *others = observers
    head = (*HEAD, f"epsilon: {first}", *others, *HEAD_END)
    template = environment().get_template("index.html.j2")
    return printable(
        template.render(
            rows=shown,
            head=(*head, *(OPERATOR_HEAD if operator else ())),
            caution=words.OPERATOR_HEADING if operator else "",
            caption="Press a heading to sort by it",
            script=Markup(script),
            script_hash=f"sha256-{digest}",
        )
    )


def write(folder: Path, rows: Sequence[Mapping[str, Any]], *, operator: bool = False) -> Path:
    """Writes `folder/index.html`, or of rows with operator-only values `operator.html`; returns its path.

    Raises:
        InputError: if the folder cannot be written, or holds such a file that is not from here.
    """
    page = OPERATOR if operator else PUBLIC
    reports = [(Path(row["path"]) / page).is_file() for row in rows]
    target = folder / (OPERATOR_FILE if operator else FILE)
    try:
        if os.path.lexists(target) and GENERATOR not in _begin(target):
            raise InputError(f"{target}: not a page of `fedprivacy list`. Move it to another place.")
        return replace_file(target, render(rows, reports, operator=operator).encode(errors="replace"))
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}. Choose a folder that you may write to.") from error


def _begin(path: Path) -> bytes:
    """Returns the first bytes of a page; nothing of a link, a pipe or a folder."""
    try:
        with open_regular(path, MOST, follow=False) as page:
            return page.read(1000)
    except (OSError, ValueError):
        return b""


def _row(row: Mapping[str, Any], observers: Sequence[str], page: str | None, operator: bool) -> IndexRow:
    missing = "no guarantee" if row["guarantees"] == "whole" else row["guarantees"]
    cells = (
        Cell(row["run"]),
        Cell(row["started"].replace("T", " ").removesuffix("+00:00") or "-"),
        Cell(row["kind"] or "-"),
        Cell(row["trust"] or "-"),
        Cell(row["unit"] or "-"),
        *(_epsilon(row, observer, missing) for observer in observers),
        Cell("-") if row["delta"] is None else Cell(f"{row['delta']:g}", row["delta"]),
        _quality(row),
        Cell(row["status"] or "-"),
        Cell(", ".join(row["tags"]) or "-"),
        *(_plain(row[key]) for key in (OPERATOR_HEAD if operator else ())),
    )
    return IndexRow(cells, f"{quote(os.fsencode(row['run']))}/{page}" if page else None)


def _epsilon(row: Mapping[str, Any], observer: str, missing: str) -> Cell:
    epsilon = row.get(f"epsilon_{observer}")
    if epsilon is None:
        return Cell("-" if observer == ANALYST else missing)  # most results have no shuffler
    return Cell(printed(epsilon), epsilon)


def _quality(row: Mapping[str, Any]) -> Cell:
    """The accuracy of a run, or the score of one that predicts no classes, with its metric."""
    if row["accuracy"] is not None:
        return Cell(percent(row["accuracy"]), row["accuracy"])
    return Cell((row["kind"] == "run" and row.get("answer")) or "-")


def _plain(value: Any) -> Cell:
    return Cell("-" if value is None else str(value), value if isinstance(value, int | float) else None)
