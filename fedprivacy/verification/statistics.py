"""Stored statistics held against the scenario that they name: a run of queries, and a comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedprivacy.guarantees.remote_nodes import Stated, possible
from fedprivacy.scenario.statistics import Statistics, rules
from fedprivacy.scenario.statistics.data import NpzTable
from fedprivacy.statistics.cells import Corner, claims_of_cell, closing, corners_of
from fedprivacy.statistics.comparison import SHOWN
from fedprivacy.statistics.plan import PlannedQuery, StatisticsPlan, plan_of
from fedprivacy.statistics.record import charged_ledger, claims_of
from fedprivacy.statistics.results import counted_again, largest_bound, reported, terms
from fedprivacy.verification.differences import brief, refusal, refuse_length
from fedprivacy.verification.parts import check_status, first_fitting, of_scenario, refuse_parts
from fedprivacy.verification.scenario_without_data import refuse_findings, stored_scenario, unread

SOURCE = "its scenario implies"
AGAIN = "run it again"


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a run of statistics, as it may be shown: what it promises is accounted for again.

    Raises:
        InputError: its plan, ledger or guarantees are not those of its scenario.
    """
    check_status(document, where, AGAIN)
    scenario = _scenario(document, where)
    queries, held = document["queries"], document["ledger"]["held"]
    if document["status"] == "running" and queries:  # its record is written when it begins, and when it ends
        raise refusal(where, "status", "says running, and there are results", AGAIN)
    population = _population(scenario, document["plan"]["population"])
    tables = json.dumps(document["scenario"])
    with of_scenario(where, AGAIN):
        plan = _plan(tables, population)

    if document["status"] == "finished":
        refuse_length(len(queries), len(plan.asks), "queries", where, "its plan implies", AGAIN)

    def implied(stated: Stated) -> dict[str, Any]:
        with of_scenario(where, AGAIN):
            claims = _claims(tables, population, len(queries), document["status"], held, stated)
        refuse_parts(document, claims, where, SOURCE, AGAIN)
        return {**document, **claims}

    stated = possible(document["randomness"], held=held)
    fitting = first_fitting(implied, stated, document["randomness"], where, AGAIN)
    return {**fitting, "queries": _checked_queries(queries, plan, where, "queries")}


def check_comparison(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a comparison of statistics, as it may be shown.

    Raises:
        InputError: its cells are not those of its scenario, or it makes something else of them.
    """
    check_status(document, where, AGAIN)
    scenario = _scenario(document, where)
    with of_scenario(where, AGAIN):
        left = list(corners_of(scenario))
    if document["status"] == "running" or (
        document["status"] == "finished" and len(left) != len(document["cells"])
    ):
        problem = f"says {document['status']}, and {len(document['cells'])} of {len(left)} cells are there"
        raise refusal(where, "status", problem, AGAIN)
    cells = []
    for number, cell in enumerate(document["cells"]):
        key = f"cells[{number}]"
        # Where a comparison broke off cells are missing; those that are there keep their order.
        while left and not _is(cell, left[0]):
            del left[0]
        if not left:
            problem = ", ".join(f"{name} {cell[name]}" for name in ("trust", "asked", "epsilon", "clients"))
            raise refusal(where, key, f"says {problem}, its scenario has no such cell there", AGAIN)
        cells.append(_checked_cell(cell, scenario, left.pop(0), where, key))
    implied = closing(scenario, cells, document["status"])
    refuse_parts(document, implied, where, "its cells imply", AGAIN)
    return {**document, "cells": cells, **implied}


def _scenario(document: Mapping[str, Any], where: str) -> Statistics:
    scenario = stored_scenario(Statistics, document, where, AGAIN)
    parts = {name: getattr(scenario, name) for name in ("data", "queries", "privacy", "compare")}
    refuse_findings(rules.findings(parts, None, None), where, AGAIN)
    return scenario


def _is(cell: Mapping[str, Any], corner: Corner) -> bool:
    """Whether a stored cell may be that of a corner; of one that names no number of clients any may be."""
    named = (cell["trust"], cell["asked"], cell["epsilon"]) == (
        corner.trust,
        corner.mechanism,
        corner.epsilon,
    )
    return named and corner.clients in (None, cell["clients"])


def _checked_cell(
    cell: Mapping[str, Any], scenario: Statistics, corner: Corner, where: str, key: str
) -> dict[str, Any]:
    tables = scenario.cell_tables(
        corner.trust, corner.epsilon, scenario.seed, corner.clients, corner.mechanism
    )
    settings = unread(Statistics, {"compare": {}, **tables}, where, AGAIN)
    with of_scenario(where, AGAIN):
        text = json.dumps({"compare": {}, **tables})
        plan, claims = _cell(text, _population(settings, cell["clients"]), corner)
    refuse_parts(cell, claims, where, SOURCE, AGAIN, key)
    refuse_length(len(cell["queries"]), len(plan.asks), f"{key}.queries", where, "its plan implies", AGAIN)
    queries = _checked_queries(cell["queries"], plan, where, f"{key}.queries")
    return {**cell, **claims, "queries": queries}


def _checked_queries(
    queries: Sequence[Mapping[str, Any]], plan: StatisticsPlan, where: str, key: str
) -> list[dict[str, Any]]:
    """Results with the queries, mechanisms and noise of the plan, and what follows from their counts."""
    if len(queries) > len(plan.asks):
        refuse_length(len(queries), len(plan.asks), key, where, "its plan implies", AGAIN)
    checked = []
    for number, (query, ask) in enumerate(zip(queries, plan.asks, strict=False)):
        at, implied = f"{key}[{number}]", terms(ask)
        refuse_parts(query, implied, where, "its plan implies", AGAIN, at)
        checked.append({**query, **implied, **_counted(query, ask, plan.population, where, at)})
    return checked


def _counted(
    query: Mapping[str, Any], ask: PlannedQuery, population: int, where: str, key: str
) -> dict[str, Any]:
    """Recomputes bounds and intervals of counts with clients' noise from the counts.

    A comparison keeps the first repeat's counts under `answer`, of the first `SHOWN` categories alone: the
    promise of more is held against what that many clients can make of it at most.
    """
    if reported(ask) is None:
        return {}
    repeats = "answer" in query
    answer, below = (query["answer"], f"{key}.answer") if repeats else (query, key)
    answered = population if repeats else query.get("answered")
    if not isinstance(answered, int) or not 1 <= answered <= population:
        raise refusal(where, f"{key}.answered", f"says {brief(answered)}, of {population} clients", AGAIN)
    cells = ask.question.cells
    shown, counts = min(cells, SHOWN) if repeats else cells, answer.get("estimate")
    if not isinstance(counts, list) or not all(map(_is_number, counts)):
        raise refusal(where, f"{below}.estimate", "is no list of counts", AGAIN)
    refuse_length(len(counts), shown, f"{below}.estimate", where, "its plan implies", AGAIN)
    again = counted_again(ask, counts, answered)
    released = {name: again[name] for name in ("estimate", "low", "high")}
    refuse_parts(answer, released, where, "whole counts of reports imply", AGAIN, below)
    bound = again["bound"]
    if shown < cells:
        stated: Any = (query.get("bound") or {}).get("at_most")
        if _is_number(stated) and bound["at_most"] <= stated <= largest_bound(ask, answered):
            bound = {**bound, "at_most": stated}
    refuse_parts(query, {"bound": bound}, where, "its counts imply", AGAIN, key)
    return {"bound": bound, **({"answer": {**answer, **released}} if repeats else released)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


# A record is read more than once, for its page and beside others: it is accounted for once.
@lru_cache(maxsize=64)
def _plan(tables: str, population: int) -> StatisticsPlan:
    """The plan of a scenario whose tables are given as JSON."""
    return plan_of(unread(Statistics, json.loads(tables), "", AGAIN), population)


@lru_cache(maxsize=64)
def _claims(
    tables: str, population: int, done: int, status: str, held: bool, stated: Stated
) -> dict[str, Any]:
    """The parts of the record of a run that its scenario decides."""
    scenario, plan = unread(Statistics, json.loads(tables), "", AGAIN), _plan(tables, population)
    charge = charged_ledger(plan, done, status, held=held, stated=stated)
    return claims_of(scenario, plan, charge, held=held, stated=stated)


@lru_cache(maxsize=256)
def _cell(tables: str, population: int, corner: Corner) -> tuple[StatisticsPlan, dict[str, Any]]:
    """The plan of a cell, and the parts of the record of a comparison that its scenario decides."""
    plan = _plan(tables, population)
    return plan, claims_of_cell(corner, unread(Statistics, json.loads(tables), "", AGAIN), plan)


def _population(scenario: Statistics, stored: int) -> int:
    """The number of clients, from synthetic data or from the record, since no file is read."""
    return stored if isinstance(scenario.data, NpzTable) else scenario.population
