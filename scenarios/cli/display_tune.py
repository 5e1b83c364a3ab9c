"""Terminal output of a choice of settings: the chosen settings, and their cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.documents.kinds import read_as
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.guarantees.statement import Guarantee, printed
from fedprivacy.io.console import Terminal
from fedprivacy.io.percentages import percent
from fedprivacy.report import tune
from fedprivacy.scenario.tune.grid import words_of
from scenarios.cli.brief import cost_of, show_brief


def show_tune(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the choice in at most six lines; `verbose`: the table of its cost, and every guarantee."""
    result = read_as(TuneDocument, document)
    if not verbose:
        _show_brief(document, result)
        return
    console, plain = Terminal(), Terminal(soft_wrap=True)
    plain.print(f"{result.name}: {tune.summary(result)}")
    table = Table(title=tune.caption(result), title_justify="left")
    for number, name in enumerate(tune.HEAD):
        table.add_column(name, justify="right" if number else "left")
    for row in tune.rows(result):
        table.add_row(*row)
    console.print(table)
    for guarantee in result.privacy.guarantees:
        plain.print(f"- {guarantee.words}")
    for guarantee in result.naive.guarantees:
        plain.print(f"- naive: {guarantee.words}")
    plain.print(cost_of(document))
    plain.print(f"report: {document['path']}/report.html")


def _show_brief(document: Mapping[str, Any], result: TuneDocument) -> None:
    """Prints the chosen settings, and beside each epsilon the one of releasing every candidate."""
    choice = result.choice
    text = tune.summary(result).removesuffix(".")
    if choice.candidate is not None:
        accuracy = "not shown" if choice.accuracy is None else percent(choice.accuracy)
        among = f"of {len(result.candidates):,} candidates, accuracy {accuracy}"
        text = f"chose {words_of(choice.settings)} {among}"
    naive = result.naive.guarantees
    costs = {each.observer: f"all candidates released: {_epsilon(each)}" for each in naive}
    show_brief(document, text, [*result.privacy.guarantees], costs, naive)


def _epsilon(guarantee: Guarantee) -> str:
    return "no guarantee" if guarantee.epsilon is None else f"epsilon = {printed(guarantee.epsilon)}"
