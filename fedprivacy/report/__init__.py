"""The HTML pages of a result document, each one offline file without script, for screen and print.

report.html is public. operator.html has what only the operator may see, and is not passed on.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError, RunError
from fedprivacy.io.atomic import FAILURES, replace_file
from fedprivacy.report.files import OPERATOR, PUBLIC
from fedprivacy.report.operator_only import operator_page
from fedprivacy.report.printing import html, page_of

__all__ = ["OPERATOR", "PUBLIC", "is_written", "render", "write"]


def render(document: Mapping[str, Any], source: str = "report", *, operator: bool = False) -> str:
    """Renders the HTML page of a result document of any kind.

    Args:
        document: The content of `run.json`. Nothing in it is trusted: every text is escaped.
        source: The file that it came from, which errors name.
        operator: Whether the operator-only part is on the page too, which must not be passed on then.

    Returns:
        A whole HTML document; the same document gives the same text.

    Raises:
        InputError: the schema or kind is unknown, or a field violates its schema.
    """
    if operator:
        return html(*operator_page(document, source, merged=True))
    return html(page_of(document, source), None)


def is_written(folder: Path) -> bool:
    """Whether both pages are in a run directory."""
    return all((folder / name).exists() for name in (PUBLIC, OPERATOR))


def write(document: Mapping[str, Any], folder: Path, *, merged: bool = False) -> Path:
    """Writes `folder/report.html`, which is public, and `folder/operator.html`, each whole or not at all.

    Args:
        document: The content of `run.json`.
        folder: The run directory.
        merged: Whether operator.html has the public part too.

    Returns:
        The path of the public page.

    Raises:
        InputError: the document cannot be rendered, or the folder cannot be written.
        RunError: the machine failed, for example with a full disk.
    """
    source = str(folder / "run.json")
    operator = html(*operator_page(document, source, merged=merged))
    # The public page comes last: where it is, both are.
    _replace(folder, OPERATOR, operator)
    return _replace(folder, PUBLIC, render(document, source))


def _replace(folder: Path, name: str, text: str) -> Path:
    target = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A lone surrogate in a name is not a reason to lose the report.
        return replace_file(target, text.encode(errors="replace"))
    except OSError as error:
        what = f"{target}: cannot be written: {error.strerror or error}."
        if error.errno in FAILURES:
            again = f"fedprivacy report {shlex.quote(str(folder))}"
            raise RunError(
                f"{what} The record is whole: make room, then write the page by: {again}"
            ) from None
        raise InputError(f"{what} Choose a folder that you may write to, or remove what is there.") from None
