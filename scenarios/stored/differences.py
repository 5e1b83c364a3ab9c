"""Compares two stored results: settings that differ, results and guarantees side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedprivacy.documents.headline import headline
from fedprivacy.documents.redaction import operator_only, public, redact, select
from fedprivacy.documents.secret_values import secret_paths
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import printed
from fedprivacy.io.flat_tables import flat
from fedprivacy.verification.verify import checked_document

# Texts for a reader, which change nothing that is computed.
_WORDS = ("name", "description", "duration", "tuning")
_HIDDEN = "differs, not shown"
_STATED = ("epsilon", "delta", "unit", "adjacency", "assumptions")
_TERMS = ("unit", "adjacency", "delta")
# Kind -> the fields that identify a cell.
CELLS: Mapping[str, tuple[str, ...]] = {
    "compare": ("trust", "unit", "mechanism", "epsilon"),
    "compare-statistics": ("trust", "epsilon", "clients"),
    "erm": ("approach", "trust", "epsilon", "delta", "records", "silos"),
}
Guarantee = Mapping[str, Any]


def difference(first: Path, second: Path, *, operator: bool = False) -> dict[str, Any]:
    """Returns the difference of two stored results, once each follows from its own record.

    What is operator-only in either record is shown of neither.

    Args:
        first: A run directory.
        second: Another.
        operator: Whether operator-only values are compared too.

    Raises:
        InputError: if one is no run directory, or its record contradicts itself.
    """
    whole = [checked_document(path) for path in (first, second)]
    hidden = {path for document in whole for path in operator_only(document)}
    documents = whole if operator else [redact(public(document), hidden) for document in whole]
    stated = [_by_observer(_table(document.get("privacy"))) for document in documents]
    results = [_result(document) for document in documents]
    return {
        "schema": 1,
        "kind": "diff",
        "runs": [str(first), str(second)],
        "names": [
            document.get("name") or path.name
            for document, path in zip(documents, (first, second), strict=True)
        ],
        "settings": _settings(whole, documents),
        "results": {
            key: [result.get(key) for result in results]
            for key in dict.fromkeys(key for result in results for key in result)
        },
        "guarantees": _guarantees(*stated),
        "cells": _cells(documents),
        **({"operator": _operator(whole)} if operator else {}),
    }


def _operator(whole: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns the operator-only values of both, by their paths; of lists each element's."""
    paths = dict.fromkeys(path for each in whole for path in (*operator_only(each), *secret_paths(each)))
    values = {path: [select(document, path) for document in whole] for path in paths}
    return {
        path: [each[0] if each and "[]" not in path else each or None for each in pair]
        for path, pair in values.items()
        if pair[0] != pair[1] and not path.startswith("scenario.")  # which are among the settings
    }


def _settings(
    whole: Sequence[Mapping[str, Any]], documents: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """Returns the settings that differ. Those that are operator-only are named alone."""
    tables = [dict(flat(document["scenario"])) for document in whole]
    shown = [dict(flat(_table(document.get("scenario")))) for document in documents]
    settings = {}
    for key in dict.fromkeys([*tables[0], *tables[1]]):
        pair = [table.get(key) for table in tables]
        if key in _WORDS or pair[0] == pair[1]:
            continue
        public_pair = [table.get(key) for table in shown]
        secret = [value is None for value in pair] != [value is None for value in public_pair]
        settings[key] = [_HIDDEN, _HIDDEN] if secret else public_pair
    return settings


def _headline(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the headline figure of a run or cell, by its key."""
    return {"score" if "score" in part else "accuracy": headline(part)}


def _result(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the few values that a result is known by."""
    scenario, privacy = _table(document.get("scenario")), _table(document.get("privacy"))
    trust = next((each.get("trust") for each in privacy.get("guarantees", ())), None)
    requested = _table(scenario.get("privacy")) if document.get("kind") in ("run", "statistics") else {}
    result = {
        "kind": document.get("kind"),
        "status": document.get("status"),
        "trust": trust or requested.get("trust"),
        **_headline(_table(document.get("final"))),
    }
    if document.get("kind") == "statistics":
        for query in document.get("queries", ()):
            result[f"{query.get('name')}"] = query.get("estimate")
    return result


def _cells(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the cells of two comparisons of one kind beside each other; none for other results."""
    kind = str(documents[0].get("kind"))
    if kind not in CELLS or documents[1].get("kind") != kind:
        return []
    tables = [_by_key(document.get("cells", ()), CELLS[kind]) for document in documents]
    rows = []
    for key in dict.fromkeys([*tables[0], *tables[1]]):
        cells = [table.get(key) for table in tables]
        results = [_errors(cell or {}) for cell in cells]
        stated = [{} if cell is None else _by_observer(cell) for cell in cells]
        rows.append(
            {
                "cell": dict(zip(CELLS[kind], key, strict=False)),
                "results": {
                    name: [result.get(name) for result in results]
                    for name in dict.fromkeys(name for result in results for name in result)
                },
                "guarantees": _guarantees(*stated) if None not in cells else {},
            }
        )
    return rows


def _by_key(
    cells: Iterable[Mapping[str, Any]], names: Sequence[str]
) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    table: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for cell in cells:
        key = tuple(cell.get(name) for name in names)
        table[(*key, sum(other[: len(names)] == key for other in table))] = cell
    return table


def _errors(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the accuracy of a cell, or its errors."""
    if "accuracy" in cell:
        return {key: _table(figure).get("mean") for key, figure in _headline(cell).items()}
    if "queries" in cell:  # true values are known to a simulation alone
        return {f"simulation_rmse {query.get('name')}": query.get("rmse") for query in cell["queries"]}
    if "excess" in cell:
        return {"simulation_excess": _table(cell["excess"]).get("mean")}
    return {}


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _by_observer(part: Mapping[str, Any]) -> dict[str, Guarantee]:
    return {
        each["observer"]: each
        for each in part.get("guarantees") or ()
        if "observer" in each and all(key in each for key in _STATED)
    }


def _guarantees(first: Mapping[str, Guarantee], second: Mapping[str, Guarantee]) -> dict[str, Any]:
    """Returns the guarantees against each observer, which is stronger, and the assumptions of one alone."""
    compared: dict[str, Any] = {}
    for name in dict.fromkeys((*OBSERVERS, *first, *second)):  # an analyst behind a shuffler too
        pair = (first.get(name), second.get(name))
        if pair == (None, None):
            continue
        compared[name] = {
            "stated": [_short(each) for each in pair],
            "verdict": _verdict(*pair),
            "assumptions": [_alone(pair[0], pair[1]), _alone(pair[1], pair[0])]
            if _both_hold(*pair)
            else [[], []],
        }
    return compared


def _short(guarantee: Guarantee | None) -> str:
    if guarantee is None:
        return "not stated for the whole result"
    if guarantee["epsilon"] is None:
        return "no guarantee"
    return (
        f"epsilon = {printed(guarantee['epsilon'])} at delta = {guarantee['delta']:g}, unit "
        f"{guarantee['unit']}, {guarantee['adjacency']}"
    )


def _both_hold(first: Guarantee | None, second: Guarantee | None) -> bool:
    return all(each is not None and each["epsilon"] is not None for each in (first, second))


def _alone(first: Guarantee | None, second: Guarantee | None) -> list[str]:
    """Returns the assumptions of the first that the second does without."""
    if first is None or second is None:
        return []
    return [text for text in first["assumptions"] if text not in second["assumptions"]]


def _verdict(first: Guarantee | None, second: Guarantee | None) -> str:
    """Returns which guarantee is stronger, where the two can be compared."""
    if first is None or second is None:
        return "not comparable: one result has a guarantee for each of its cells alone"
    bounds = [each["epsilon"] for each in (first, second)]
    if None in bounds:
        if bounds == [None, None]:
            return "no guarantee in either"
        return f"only the {'second' if bounds[0] is None else 'first'} has a guarantee"
    terms = [key for key in _TERMS if first[key] != second[key]]
    if terms:
        return f"not comparable: they differ in {' and '.join(terms)}"
    more = [_alone(first, second), _alone(second, first)]  # assumptions
    if printed(bounds[0]) == printed(bounds[1]):
        return "the same epsilon, under other assumptions" if any(more) else "the same epsilon"
    smaller = 0 if bounds[0] < bounds[1] else 1
    name = ("first", "second")[smaller]
    if more[smaller]:
        return f"a smaller epsilon in the {name}, under other assumptions"
    return f"the {name} is stronger"
