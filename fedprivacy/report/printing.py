"""From a result document to its page, and from a page to HTML."""

from __future__ import annotations

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
from fedprivacy.io.escape import printable
from fedprivacy.report import audit, compare, run, tune
from fedprivacy.report.attacks import run as run_attacks
from fedprivacy.report.blocks import Page, Section
from fedprivacy.report.estimates import page as estimates
from fedprivacy.report.statistics import compare as compare_statistics
from fedprivacy.report.statistics import run as run_statistics

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


def page_of(document: Mapping[str, Any], source: str = "report", *, operator: bool = False) -> Page:
    """The public page of a result document; its pictures are not drawn yet.

    Args:
        document: The content of `run.json`.
        source: The file that it came from, which errors name.
        operator: Whether it is a page of the operator: then it has accuracy on records of clients, and links
            to the operator-only section.

    Raises:
        InputError: the schema or kind is unknown, or a field violates its schema.
    """
    result = read(document, source, operator=operator)
    linked = {key: operator and bool(document.get(key)) for key in ("error", "command")}
    return PAGES[result.KIND](result, **linked)


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
    environment.globals["css"] = Markup((_HERE / "page.css").read_text(encoding="utf-8"))
    return environment
