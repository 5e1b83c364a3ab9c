"""One self-contained HTML page for a result document: no script, no network, for screen and print."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError, RunError
from fedprivacy.io.atomic import FAILURES, replace_file
from fedprivacy.report.operator_only import operator_section
from fedprivacy.report.printing import html, page_of

__all__ = ["render", "write"]


def render(document: Mapping[str, Any], source: str = "report") -> str:
    """Renders the HTML page of a result document of any kind.

    Args:
        document: The content of `run.json`. Nothing in it is trusted: every text is escaped.
        source: The file that it came from, which errors name.

    Returns:
        A whole HTML document; the same document gives the same text.

    Raises:
        InputError: the schema or kind is unknown, or a field violates its schema.
    """
    return html(page_of(document, source), operator_section(document))


def write(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the page to `folder/report.html`, all of it or nothing.

    Returns:
        The path of the page.

    Raises:
        InputError: the document cannot be rendered, or the folder cannot be written.
        RunError: the machine failed, for example with a full disk.
    """
    text = render(document, str(folder / "run.json"))
    target = folder / "report.html"
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
