"""Markdown of generated pages: cells of tables, and texts of the code that are shown as they are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_\[\]<>$#{}])")


def plain(text: str) -> str:
    """Returns a text of the code as Markdown on one line: `code` stays code, all else is shown as it is."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def code(text: object) -> str:
    """Returns a text as code."""
    return f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a table, with an empty line after it; its cells are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    cells = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells), ""]


def summary(item: object) -> str:
    """Returns the first paragraph of a docstring."""
    return (inspect.getdoc(item) or "").partition("\n\n")[0]
