"""The HTML pages of a result document, each one offline file without script, for screen and print.

report.html is public. operator.html has what only the operator may see, and is not passed on.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.redaction import withholds_results
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.run import RunDocument
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.errors import InputError, RunError
from fedprivacy.io import side_process
from fedprivacy.io.atomic import FAILURES, replace_file
from fedprivacy.io.escape import printable
from fedprivacy.io.waiting import waiting
from fedprivacy.report import audit, compare, downloads, page_end, plan, run, tune, words
from fedprivacy.report.attacks import run as run_attacks
from fedprivacy.report.blocks import Page, Section, Text
from fedprivacy.report.estimates import page as estimates
from fedprivacy.report.operator_only import PARTS, operator_section
from fedprivacy.report.page_names import OPERATOR, PUBLIC
from fedprivacy.report.statistics import compare as compare_statistics
from fedprivacy.report.statistics import run as run_statistics

__all__ = ["OPERATOR", "PUBLIC", "is_written", "render", "write"]

_HERE = Path(__file__).parent


# Kind of document -> its page, from the document and whether its record has an error and a command.
PAGES: Mapping[str, Callable[..., Page]] = {
    RunDocument.KIND: run.page,
    CompareDocument.KIND: compare.page,
    StatisticsDocument.KIND: run_statistics.page,
    StatisticsComparison.KIND: compare_statistics.page,
    EstimatesDocument.KIND: estimates.page,
    ReplayDocument.KIND: run_attacks.page,
    AuditDocument.KIND: audit.page,
    TuneDocument.KIND: tune.page,
    PlanDocument.KIND: plan.page,
}


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
    with waiting("drawing the page"):
        written: Path = side_process.call("fedprivacy.report:write_pages", document, folder, merged)
        return written


def write_pages(document: Mapping[str, Any], folder: Path, merged: bool) -> Path:
    """Does what `write` does, in the process that it chooses."""
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


def page_of(document: Mapping[str, Any], source: str = "report", *, operator: bool = False) -> Page:
    """The public page of a result document; its pictures are not drawn yet.

    Args:
        document: The content of `run.json`.
        source: The file that it came from, which errors name.
        operator: Whether it is a page of the operator: then it has accuracy on records of clients and
            their true values, and links to the operator-only section.

    Raises:
        InputError: the schema or kind is unknown, or a field violates its schema.
    """
    result = read(document, source, operator=operator)
    linked = {key: operator and bool(document.get(key)) for key in ("error", "command")}
    if result.lacks_results:
        return Page(
            title=page_end.title(result),
            eyebrow="For the operator",
            subtitle=str(result.scenario.get("description") or ""),
            answer=None,
            lead=[Text(words.RESULTS_WITHHELD, "status")],
            sections=page_end.closing(result, command=linked["command"]),
        )
    return PAGES[result.KIND](result, **linked)


def operator_page(
    document: Mapping[str, Any], source: str = "report", *, merged: bool = False
) -> tuple[Page, Section | None]:
    """The page for the operator, and its operator-only section.

    Args:
        document: The whole document, with its operator-only fields.
        source: The file that it came from, which errors name.
        merged: Whether it has the public part too; where results are operator-only it always has.

    Raises:
        InputError: the schema or kind is unknown, or a field violates its schema.
    """
    page = page_of(document, source, operator=True)
    caution = Text(words.OPERATOR_HEADING, "status stopped")
    if merged or withholds_results(document):
        page = replace(page, lead=[caution, *page.lead])
    else:
        page = replace(page, lead=[caution, Text(PARTS)], sections=[], subtitle="", answer=None)
    titled = replace(page, title=f"{page.title}: operator-only", eyebrow="For the operator only")
    return titled, operator_section(document)


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
