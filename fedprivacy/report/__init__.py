"""One self-contained HTML page for a result document: no script, no network, for screen and print."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fedprivacy.errors import InputError, RunError
from fedprivacy.files import FAILURES, replace_file
from fedprivacy.printable import printable
from fedprivacy.report import audit, compare, run, tune
from fedprivacy.report.attacks import run as run_attacks
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.documents import CompareDocument, RunDocument
from fedprivacy.report.estimates import page as estimates
from fedprivacy.report.estimates.documents import EstimatesDocument
from fedprivacy.report.operator_only import operator_section
from fedprivacy.report.reading import read
from fedprivacy.report.statistics import compare as compare_statistics
from fedprivacy.report.statistics import run as run_statistics
from fedprivacy.report.statistics.documents import StatisticsComparison, StatisticsDocument

__all__ = ["render", "write"]

_HERE = Path(__file__).parent


def render(document: Mapping[str, Any], source: str = "report") -> str:
    """The HTML page of a result document: a run or comparison (models, statistics), attacks, audit, choice.

    Args:
        document: What `run.json` holds. Nothing in it is trusted: every text is escaped.
        source: What an error names: the file that it came from.

    Returns:
        A whole HTML document; the same document gives the same text.

    Raises:
        InputError: the schema or kind is unknown, or a field is not what its schema says.
    """
    result = read(document, source)
    apart = {name: bool(document.get(name)) for name in ("error", "command")}
    if isinstance(result, CompareDocument):
        page = compare.page(result, **apart)
    elif isinstance(result, RunDocument):
        page = run.page(result, **apart)
    elif isinstance(result, StatisticsDocument):
        page = run_statistics.page(result, **apart)
    elif isinstance(result, StatisticsComparison):
        page = compare_statistics.page(result, **apart)
    elif isinstance(result, EstimatesDocument):
        page = estimates.page(result, **apart)
    elif isinstance(result, ReplayDocument):
        page = run_attacks.page(result, **apart)
    elif isinstance(result, audit.AuditDocument):
        page = audit.page(result, command=apart["command"])
    elif isinstance(result, tune.TuneDocument):
        page = tune.page(result, command=apart["command"])
    else:
        raise InputError(f"report: no page for {type(result).__name__}.")
    operator = operator_section(document)
    template, new_id = _environment().get_template("page.html.j2"), map("table-{}".format, count(1)).__next__
    return printable(template.render(page=page, operator=operator, new_id=new_id))


def write(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the page to `folder/report.html`, all of it or nothing.

    Returns:
        The path of the page.

    Raises:
        InputError: the document cannot be rendered, or the folder cannot be written.
        RunError: the machine failed: its disk is full, say.
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


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["css"] = Markup((_HERE / "page.css").read_text(encoding="utf-8"))
    return environment
