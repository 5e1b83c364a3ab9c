"""Terminal output of a plan: the answer, the curve, and what planning cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from fedprivacy.documents.kinds import read_whole
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.io.console import Terminal
from fedprivacy.io.percentages import percent
from fedprivacy.report import plan, words
from fedprivacy.report.answers.plan import sentence
from scenarios.cli.brief import cost_of


def show_plan(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the answer, each number's accuracy, and whom the runs cost; `verbose`: every guarantee."""
    result = read_whole(PlanDocument, document)
    console, plain = Terminal(), Terminal(soft_wrap=True)
    plain.print(Text.assemble((result.name, "bold"), f": {sentence(result)} ({cost_of(document)})"))
    measured = [curve for curve in result.curves if curve.measured]
    if measured:
        console.print(_table(result))
    for trust, phrase, tested in plan.rows(result):
        plain.print(f"{trust}: {phrase}. {tested}.")
    for curve in measured:
        law = curve.fitted
        assert law is not None  # of every curve that was measured
        trusted = ", may be extrapolated" if law.extrapolates else ", is not extrapolated"
        reach = "" if result.question.unknown == "epsilon" else trusted
        plain.print(f"law, {curve.trust}: off by {100 * law.fit_error:.1f} points (rms){reach}")
    if terms := words.terms(result.every_guarantee):
        plain.print(f"Each epsilon: {terms}, of a run as planned.")
    if verbose:
        for guarantee in result.every_guarantee:
            plain.print(f"- {guarantee.words}")
    plain.print(result.notes[0] if result.notes else "")
    plain.print(f"report: {document['path']}/report.html")


def _table(result: PlanDocument) -> Table:
    """A row for each number, a column for each trust model."""
    name = "epsilon" if result.question.unknown == "epsilon" else "clients"
    table = Table(title="Accuracy on development records, mean of the repeats", title_justify="left")
    table.add_column(name, justify="right")
    measured = [curve for curve in result.curves if curve.measured]
    for curve in measured:
        table.add_column(curve.trust, justify="right")
    by_trust = [{point.x: point.mean for point in curve.measured} for curve in measured]
    for x in sorted({x for each in by_trust for x in each}):
        cells = [percent(each[x]) if x in each else "-" for each in by_trust]
        table.add_row(words.number(x), *cells)
    return table
