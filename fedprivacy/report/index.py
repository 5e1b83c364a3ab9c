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
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import printed
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.escape import printable
from fedprivacy.io.regular_file import open_regular
from fedprivacy.report import environment

FILE = "index.html"
GENERATOR = b'<meta name="generator" content="fedprivacy list">'
MOST = 2**30  # bytes of a page
HEAD = (
    "run", "started", "kind", "trust", "unit, adjacency", "epsilon: server", "participant", "outsider",
    "delta", "accuracy", "status", "tags",
)  # fmt: skip


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


def render(rows: Sequence[Mapping[str, Any]], reports: Sequence[bool]) -> str:
    """Renders the index page.

    Args:
        rows: A row for each stored result (`scenarios.stored.listing.Row.to_json`). No text in it is trusted.
        reports: Whether each has a report.

    Returns:
        A whole HTML document. Its only script sorts the table; the page's policy names the script's hash.
    """
    script = (Path(__file__).parent / "index.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shown = [_row(row, report) for row, report in zip(rows, reports, strict=True)]
    template = environment().get_template("index.html.j2")
    return printable(
        template.render(
            rows=shown,
            head=HEAD,
            caption="Press a heading to sort by it",
            script=Markup(script),
            script_hash=f"sha256-{digest}",
        )
    )


def write(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Writes `folder/index.html`, and returns its path.

    Raises:
        InputError: if the folder cannot be written, or holds an index.html that is not from here.
    """
    reports = [(Path(row["path"]) / "report.html").is_file() for row in rows]
    target = folder / FILE
    try:
        if os.path.lexists(target) and GENERATOR not in _begin(target):
            raise InputError(f"{target}: not a page of `fedprivacy list`. Move it to another place.")
        return replace_file(target, render(rows, reports).encode(errors="replace"))
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}. Choose a folder that you may write to.") from error


def _begin(path: Path) -> bytes:
    """Returns the first bytes of a page; nothing of a link, a pipe or a folder."""
    try:
        with open_regular(path, MOST, follow=False) as page:
            return page.read(1000)
    except (OSError, ValueError):
        return b""


def _row(row: Mapping[str, Any], report: bool) -> IndexRow:
    epsilons = [row[f"epsilon_{observer}"] for observer in OBSERVERS]
    missing = "no guarantee" if row["guarantees"] == "whole" else row["guarantees"]
    cells = (
        Cell(row["run"]),
        Cell(row["started"].replace("T", " ").removesuffix("+00:00") or "-"),
        Cell(row["kind"] or "-"),
        Cell(row["trust"] or "-"),
        Cell(row["unit"] or "-"),
        *(Cell(missing) if epsilon is None else Cell(printed(epsilon), epsilon) for epsilon in epsilons),
        Cell("-") if row["delta"] is None else Cell(f"{row['delta']:g}", row["delta"]),
        Cell("-") if row["accuracy"] is None else Cell(f"{row['accuracy']:.3f}", row["accuracy"]),
        Cell(row["status"] or "-"),
        Cell(", ".join(row["tags"]) or "-"),
    )
    return IndexRow(cells, f"{quote(os.fsencode(row['run']))}/report.html" if report else None)
