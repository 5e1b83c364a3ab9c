"""One self-contained HTML page for a result document: no script, no network, for screen and print."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.estimates import EstimatesDocument
from fedprivacy.documents.kinds import read
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.run import RunDocument
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.errors import InputError, RunError
from fedprivacy.io.atomic import FAILURES, replace_file
from fedprivacy.io.escape import printable
from fedprivacy.report import audit, compare, downloads, run, tune
from fedprivacy.report.attacks import run as run_attacks
from fedprivacy.report.blocks import Page, Section
from fedprivacy.report.estimates import page as estimates
from fedprivacy.report.operator_only import operator_section
from fedprivacy.report.statistics import compare as compare_statistics
from fedprivacy.report.statistics import run as run_statistics

__all__ = ["render", "write"]

_HERE = Path(__file__).parent


# Kind of document -> its page, from the document and whether its record has an error and a command.
PAGES: Mapping[str, Callable[..., Page]] = {
    RunDocument.KIND: run.page,
    CompareDocument.KIND: compare.page,
    StatisticsDocument.KIND: run_statistics.page,
    StatisticsComparison.KIND: compare_statistics.page,
    EstimatesDocument.KIND: estimates.page,
    ReplayDocument.KIND: run_attacks.page,
    AuditDocument.KIND: lambda document, *, error, command: audit.page(document, command=command),
    TuneDocument.KIND: lambda document, *, error, command: tune.page(document, command=command),
}


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


def page_of(document: Mapping[str, Any], source: str = "report") -> Page:
    """The page of a result document without its operator-only section; its pictures are not drawn yet.

    Args:
        document: The content of `run.json`.
        source: The file that it came from, which errors name.

    Raises:
        InputError: the schema or kind is unknown, or a field violates its schema.
    """
    result = read(document, source)
    return PAGES[result.KIND](
        result, error=bool(document.get("error")), command=bool(document.get("command"))
    )


def html(page: Page, operator: Section | None) -> str:
    """A page, with the operator-only part of its document, as a whole HTML document."""
    template, new_id = environment().get_template("page.html.j2"), map("table-{}".format, count(1)).__next__
    return printable(template.render(page=page, operator=operator, new_id=new_id))


@cache
def environment() -> Environment:
    """The templates of this room, which escape every text."""
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["links"] = downloads.links
    environment.globals["css"] = Markup((_HERE / "page.css").read_text(encoding="utf-8"))
    return environment
