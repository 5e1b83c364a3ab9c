"""Terminal output of the commands about stored results."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from rich.table import Table

from fedprivacy.guarantees.observers import ANALYST, OBSERVERS
from fedprivacy.guarantees.statement import printed
from fedprivacy.io.console import Terminal
from fedprivacy.io.percentages import percent
from scenarios.stored.listing import OPERATOR_COLUMNS

MOST_ROWS = 30
_LINE = "  {:<20}{:<21}{:<18}{:<8}{}"


def show_list(document: Mapping[str, Any]) -> None:
    """Prints two lines for each stored result: its name, and what it is. At most `MOST_ROWS`."""
    console, rows = Terminal(soft_wrap=True), document["runs"]
    if not rows:
        console.print("No stored results fit.")
        return
    console.print(_LINE.format("trust or kind", "unit/adjacency", "epsilon", "delta", "result"))
    for row in rows[:MOST_ROWS]:
        bounds = [row[f"epsilon_{observer}"] for observer in OBSERVERS]
        epsilons = "/".join("-" if bound is None else printed(bound) for bound in bounds)
        if row["guarantees"] != "whole":
            epsilons = row["guarantees"]
        reached = row["answer"] or "" if row["accuracy"] is None else percent(row["accuracy"])
        result = reached if row["status"] == "finished" else row["status"]
        unit = (row["unit"] or "").replace(", ", "/")
        delta = "" if row["delta"] is None else f"{row['delta']:g}"
        console.print(row["path"])  # as other commands take it; never cut, so that it can be copied
        console.print(_LINE.format(row["trust"] or row["kind"], unit, epsilons, delta, result).rstrip())
        if (bound := row.get(f"epsilon_{ANALYST}")) is not None:
            console.print(f"  {ANALYST} behind the shuffler: epsilon {printed(bound)}")
        if row["tags"]:
            console.print(f"  tags: {', '.join(row['tags'])}")
        private = {key: row[key] for key in OPERATOR_COLUMNS if row.get(key) is not None}
        if private:
            console.print(f"  operator-only: {', '.join(f'{key} {value}' for key, value in private.items())}")
    console.print(f"epsilon against {'/'.join(OBSERVERS)}; -: no guarantee")
    if any(row["guarantees"] == "by cell" for row in rows[:MOST_ROWS]):
        console.print("by cell: each cell or attack has its own, see `fedprivacy show RUN`")
    if len(rows) > MOST_ROWS:
        console.print(f"... and {len(rows) - MOST_ROWS:,} more: --filter, --sort, --csv or --json.")


def show_difference(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints what differs between two stored results; `verbose`: assumptions that one alone makes too."""
    console = Terminal()
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in document["names"]:
        table.add_column(name, overflow="fold")
    parts = {"settings": document["settings"], "results": document["results"]}
    if "operator" in document:
        parts["operator-only"] = document["operator"]
    for title, values in parts.items():
        table.add_row(title, "", "", style="bold")
        for key, pair in values.items():
            table.add_row(f"  {key}", *(_short(value) for value in pair))
    table.add_row("guarantee against", "", "", style="bold")
    _add_guarantees(table, document["guarantees"], verbose)
    for cell in document["cells"]:
        named = [f"{key} {'-' if value is None else value}" for key, value in cell["cell"].items()]
        table.add_row("cell", ", ".join(named), "", style="bold")
        for key, pair in cell["results"].items():
            table.add_row(f"  {key}", *("-" if value is None else f"{value:.4g}" for value in pair))
        _add_guarantees(table, cell["guarantees"], verbose)
    console.print(table)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)


def _add_guarantees(table: Table, guarantees: Mapping[str, Any], verbose: bool) -> None:
    for observer, guarantee in guarantees.items():
        table.add_row(f"  {observer}", *guarantee["stated"])
        table.add_row("", guarantee["verdict"], "")
        differing = list(zip_longest(*guarantee["assumptions"], fillvalue=""))
        if differing and not verbose:
            table.add_row("", "assumptions differ: --verbose", "")
        for first, second in differing if verbose else ():
            table.add_row("    assumed", first, second)
