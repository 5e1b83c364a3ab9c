"""Prints what the settings of another library cost: its figures, then a guarantee for each observer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.guarantees.statement import Guarantee, printed
from fedprivacy.io.console import Terminal
from scenarios.budgets.libraries.cost import digits_of

COLUMNS = ("figure", "epsilon", "delta", "adjacency", "rounds")


def show_library(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the cost of a library's settings.

    Args:
        document: As `Library.document` returned it.
        verbose: Whether every guarantee is printed with its assumptions, and every setting.
    """
    console, plain = Terminal(), Terminal(soft_wrap=True)
    if rows := document["table"]:
        table = Table()
        for column in COLUMNS:
            table.add_column(column, overflow="fold")
        digits = digits_of([row["epsilon"] for row in rows if row["epsilon"] is not None])
        for row in rows:
            table.add_row(*(_cell(row[column], digits) for column in COLUMNS))
        console.print(table)
    plain.print(document["words"])
    if document["unread"]:
        plain.print(f"Not read: {', '.join(document['unread'])}.")
    if verbose:
        settings = ", ".join(f"{key} = {value}" for key, value in document["settings"].items())
        plain.print(f"{document['library']}: {settings}.")
    guarantees = [Guarantee.model_validate(each) for each in document["guarantees"]]
    for guarantee in guarantees:
        plain.print(f"- {guarantee.words if verbose else _brief(guarantee)}")
    if not verbose and any(guarantee.holds for guarantee in guarantees):
        assumed = dict.fromkeys(text for each in guarantees if each.holds for text in each.assumptions)
        plain.print(f"Provided that {'; '.join(assumed)}.")


def _brief(guarantee: Guarantee) -> str:
    """A guarantee without its assumptions, which follow once for all observers."""
    words = str(guarantee.words)
    return f"{words.partition('; provided that ')[0]}." if guarantee.holds else words


def _cell(value: object, digits: int) -> str:
    return "-" if value is None else printed(value, digits) if isinstance(value, float) else str(value)
