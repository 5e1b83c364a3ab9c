"""Prints published claims beside our figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.guarantees.statement import printed
from fedprivacy.io.console import Terminal
from scenarios.reproductions.row import EXPECTED

DIGITS = 5


def show_reproductions(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints a table of all rows, then each claim that was not met, with its source.

    Args:
        document: All rows.
        verbose: Whether to print every claim.
    """
    console, plain = Terminal(), Terminal(soft_wrap=True)
    table = Table()
    for column in ("row", "published", "ours", "status", "seconds"):
        table.add_column(column, no_wrap=True)
    for row in document["rows"]:
        ours = _epsilon(row["ours"]) if row["figure"] == "epsilon" else _figure(row["ours"])
        figures = (_figure(row["published"]), ours)
        table.add_row(row["name"], *figures, row["status"], _figure(row["seconds"]))
    console.print(table)
    shown = [row for row in document["rows"] if verbose or row["status"] != EXPECTED]
    for row in shown:
        plain.print(f"- {row['name']}: {row['claim']} ({row['source']}). {_sentence(row)}")
    if len(shown) < len(document["rows"]):
        plain.print("Each claim, its source and the epsilon of its setting: --verbose.")
    if document["not_run"]:
        plain.print(f"Not run: {', '.join(document['not_run'])}. Name them, or give --all.")


def _sentence(row: Mapping[str, Any]) -> str:
    """Our figure in words, and the epsilon of the setting with its terms."""
    reason = str(row["reason"]).rstrip(".")
    words = f"{reason[:1].upper()}{reason[1:]}."
    cost = row["cost"]
    if cost is None:
        return words
    if cost["epsilon"] is None:
        return f"{words} By our ledger there is no guarantee against a {cost['observer']}."
    return (
        f"{words} By our ledger the setting costs epsilon = {printed(cost['epsilon'], DIGITS)} at delta = "
        f"{cost['delta']:g} against a {cost['observer']} (unit {cost['unit']}, {cost['adjacency']})."
    )


def _epsilon(value: float | None) -> str:
    """An epsilon of ours: rounded up, with the digits of the documented one."""
    return "-" if value is None else printed(value, DIGITS)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
