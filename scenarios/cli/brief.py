"""Short lines about guarantees: one for each observer, and the terms of every epsilon once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume
from fedprivacy.guarantees.statement import Guarantee, printed

Row = TypeVar("Row")
_NOISE = {
    "central": "by the server's noise",
    "local": "by each client's own noise",
    "distributed": "by the clients' summed noise",
}
_WHY_NOT: dict[Assume | None, str] = {
    Assume.SERVER_SEES_UPDATES: "trusted: sees updates without noise",
    Assume.CLIPPED_ALONE: "clipping alone, nobody adds noise",
    Assume.SERVER_READS: "its process read the records",
}
MOST_ROWS, FEW_ROWS = 30, 10  # of a table of more than 30 rows the first 10 are printed
_LONGEST = 60  # characters of a reason
ASSUMPTIONS = "Assumptions: --verbose or the page."


def observer_lines(guarantees: Sequence[Guarantee]) -> list[str]:
    """Returns a line for each observer: its epsilon, or that it has none, and the reason in brackets."""
    return [f"{guarantee.observer}: {_stated(guarantee, guarantees)}" for guarantee in guarantees]


def terms_line(guarantees: Sequence[Guarantee]) -> str:
    """Returns the terms that all epsilons share, and where the assumptions are."""
    shared = {_terms(guarantee) for guarantee in guarantees if guarantee.holds}
    return f"Each epsilon: {shared.pop()}. {ASSUMPTIONS}" if len(shared) == 1 else ASSUMPTIONS


def shortened(rows: Sequence[Row], verbose: bool) -> tuple[Sequence[Row], str]:
    """Returns the rows of a table to print, and a line about those left out; empty if none are."""
    if verbose or len(rows) <= MOST_ROWS:
        return rows, ""
    return rows[:FEW_ROWS], f"{len(rows) - FEW_ROWS:,} more rows: --verbose, the page, or --json"


def _stated(guarantee: Guarantee, among: Sequence[Guarantee]) -> str:
    if not guarantee.holds or guarantee.epsilon is None:
        return f"no guarantee ({_reason(guarantee)})"
    several = len({_terms(each) for each in among if each.holds}) > 1
    terms = f", {_terms(guarantee)}" if several else ""
    noise = _NOISE.get(str(guarantee.trust))
    return f"epsilon = {printed(guarantee.epsilon)}{terms}{f' ({noise})' if noise else ''}"


def _terms(guarantee: Guarantee) -> str:
    return f"delta = {guarantee.delta:g}, unit {guarantee.unit}, {guarantee.adjacency}"


def _reason(guarantee: Guarantee) -> str:
    text = guarantee.assumptions[0] if guarantee.assumptions else "none is stated"
    short = _WHY_NOT.get(Assume.of(text), text.partition(":")[0])
    return short if len(short) <= _LONGEST else f"{short[:_LONGEST].rpartition(' ')[0]} …"
