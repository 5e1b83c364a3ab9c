"""The scenario of one run of a plan: a trust model, an epsilon and a number of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.documents.redaction import PUBLIC_DATA
from fedprivacy.scenario.cells import Corner, cell
from fedprivacy.scenario.changes import Tables, lay


def corner_of(tables: Mapping[str, Any], trust: str) -> Corner:
    """The cell of a trust model, with the first of the compared local mechanisms."""
    compare, privacy = tables.get("compare", {}), tables["privacy"]
    mechanisms = compare.get("mechanisms") or [None]
    of_messages = trust == "local" and privacy.get("unit", "client") == "client"
    return Corner(trust, mechanism=mechanisms[0] if of_messages else None)  # type: ignore[arg-type]


def cell_tables(
    tables: Tables, trust: str, epsilon: float | None, seed: int, clients: int, total: int
) -> Tables:
    """The tables of a run with so many of the clients; a cohort of fixed size keeps its share of them.

    Args:
        tables: Those of the scenario.
        trust: The trust model, with its overlay `[compare.<trust>]`.
        epsilon: Its epsilon; None for trust "none".
        seed: The seed of the run.
        clients: The clients that train.
        total: The clients that the scenario's settings are for.
    """
    laid = cell(tables, corner_of(tables, trust), epsilon, seed)
    cohort = laid.get("sampling", {}).get("cohort")
    if cohort is None:
        return laid
    return lay(laid, {("sampling", "cohort"): cohort * clients // total})


def least_clients(tables: Tables, trust: str, total: int) -> int:
    """The fewest clients of whom a cohort's share is one client."""
    laid = cell(tables, corner_of(tables, trust), None if trust == "none" else 1.0)
    return -(-total // laid.get("sampling", {}).get("cohort", total))


def is_public(data: Mapping[str, Any]) -> bool:
    """Whether the records of a section `data` are published or synthetic: runs on them cost nothing."""
    return bool(data.get("public")) or data.get("name") in PUBLIC_DATA
