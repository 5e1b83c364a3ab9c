"""Terminal output of `fedprivacy account`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.guarantees.statement import printed
from fedprivacy.io.console import Terminal

_NOUNS = {"statistics": "queries", "estimates": "estimates"}
_CUT = "The last line is torn: no work that it charges began. It does not count, and the next line cuts it."


def show_account(document: Mapping[str, Any]) -> None:
    """Prints the policy, what has entered, what remains, and the claims with every assumption.

    Args:
        document: The statement of an account.
    """
    console = Terminal()
    table = Table(box=None, pad_edge=False)
    for column in ("against", "epsilon", "delta", "order", "remaining at the order"):
        table.add_column(column)
    for claim in document["claims"]:
        remaining = "none: full" if claim["full"] else f"{claim['remaining']:.4g} of {claim['budget']:.4g}"
        limits = (printed(claim["epsilon"]), f"{claim['delta']:g}", f"{claim['order']:g}")
        table.add_row(claim["observer"], *limits, remaining)
    console.print(table)
    console.print(_entries(document) if document["entries"] else "Nothing has entered.")
    if document["torn"]:
        console.print(_CUT)
    claims = document["claims"]
    for number, claim in enumerate(claims, 1):
        console.print(claim["words"].partition("; provided that ")[0] + "; provided that")
        if number < len(claims) and claims[number]["assumptions"] == claim["assumptions"]:
            continue  # once for consecutive observers with the same ones
        for assumption in claim["assumptions"]:
            console.print(f"- {assumption}")


def _entries(document: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("entry", "plan", "trust", "size", "state", "run", "cost at the order"):
        table.add_column(column, overflow="fold")
    for entry in document["entries"]:
        for plan in entry["plans"]:
            costs = [
                f"{name} {'unknown' if cost is None else f'{cost:.4g}'}"
                for name, cost in plan["costs"].items()
            ]
            size = f"{plan['rounds']:,} {_NOUNS.get(plan['work'], 'rounds')}"
            state, run = plan["outcome"] or plan["state"], plan["run"] or ""
            table.add_row(
                str(entry["entry"]), plan["name"], plan["trust"], size, state, run, ", ".join(costs)
            )
    return table


def show_plan(document: Mapping[str, Any]) -> None:
    """Prints whether plans would fit, and the largest that does."""
    console = Terminal()
    names = " and ".join(document["plans"])
    if document["entered"]:
        console.print(f"{names}: has entered already, and running it costs nothing more.")
    elif document["fits"]:
        console.print(f"{names}: fits. Nothing was entered.")
        for observer, cost in document["costs"].items():
            console.print(f"- {observer}: {cost}")
    else:
        console.print(f"{names}: does not fit: {document['reason']}.")
        console.print(document["largest"])
