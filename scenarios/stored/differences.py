"""Compares two stored results: settings that differ, results and guarantees side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedprivacy.guarantees.statement import printed
from fedprivacy.verification.verify import checked_document
from scenarios.stored.listing import OBSERVERS, row_of

# Texts for a reader, which change nothing that is computed.
_WORDS = ("name", "description", "duration", "tuning")
_SEED = re.compile(r"(^|\.)seeds?$")
_HIDDEN = "differs, not shown"


def difference(first: Path, second: Path) -> dict[str, Any]:
    """Returns the difference of two stored results, once each follows from its own record.

    Raises:
        InputError: if one is no run directory, or its record contradicts itself.
    """
    documents = [checked_document(path) for path in (first, second)]
    tables = [dict(_flat(document["scenario"])) for document in documents]
    keys = list(dict.fromkeys([*tables[0], *tables[1]]))
    settings = {
        key: [table.get(key) for table in tables]
        for key in keys
        if key not in _WORDS and tables[0].get(key) != tables[1].get(key)
    }
    # Whoever has a seed can take the noise away, so a seed goes into no comparison that may be passed on.
    settings |= {key: [_HIDDEN, _HIDDEN] for key in settings if _SEED.search(key)}
    rows = [row_of(path) for path in (first, second)]
    stated = [_by_observer(document) for document in documents]
    observers = [name for name in OBSERVERS if any(name in each for each in stated)]
    return {
        "schema": 1,
        "kind": "diff",
        "runs": [str(first), str(second)],
        "names": [row.name for row in rows],
        "settings": settings,
        "results": {
            key: [row.to_json()[key] for row in rows] for key in ("kind", "status", "trust", "accuracy")
        },
        "guarantees": {
            name: {
                "stated": [_short(each.get(name)) for each in stated],
                "verdict": _verdict(*(each.get(name) for each in stated)),
            }
            for name in observers
        },
    }


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _by_observer(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    privacy = document.get("privacy")
    stated = privacy.get("guarantees", []) if isinstance(privacy, dict) else []
    return {each["observer"]: each for each in stated}


def _short(guarantee: Mapping[str, Any] | None) -> str:
    if guarantee is None:
        return "not stated for the whole result"
    if guarantee["epsilon"] is None:
        return "no guarantee"
    return (
        f"epsilon = {printed(guarantee['epsilon'])} at delta = {guarantee['delta']:g}, unit "
        f"{guarantee['unit']}, {guarantee['adjacency']}"
    )


def _verdict(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> str:
    """Returns which guarantee is stronger, where the two can be compared."""
    if first is None or second is None:
        return "not comparable: one result has a guarantee for each of its cells alone"
    bounds = [each["epsilon"] for each in (first, second)]
    if None in bounds:
        if bounds == [None, None]:
            return "no guarantee in either"
        return f"a guarantee in the {'second' if bounds[0] is None else 'first'} alone"
    terms = [key for key in ("unit", "adjacency", "delta") if first[key] != second[key]]
    if terms:
        return f"not comparable: another {' and '.join(terms)}, so that equal epsilons are not equal promises"
    names = [printed(bound) for bound in bounds]
    if names[0] == names[1]:
        same = first["assumptions"] == second["assumptions"]
        return "the same epsilon" + ("" if same else ", under other assumptions")
    return f"the {'first' if bounds[0] < bounds[1] else 'second'} is stronger"
