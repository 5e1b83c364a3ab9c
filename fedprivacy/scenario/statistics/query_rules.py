"""Rules of one query of a statistics scenario: its categories, its bounds, its column."""

from __future__ import annotations

import math

from fedprivacy.io.rule_table import Entry, Rule, rising
from fedprivacy.io.toml_text import suggestion
from fedprivacy.scenario.statistics.data import MAX_CELLS
from fedprivacy.scenario.statistics.derived_values import QueryValues


def _lacks_range(v: QueryValues) -> bool:
    """Whether categories are given by neither edges nor the data, so that first and last must be."""
    return v.categorical and v["edges"] is None and not v.categories_of_data


def _beside_edges(key: str) -> Rule[QueryValues]:
    return Rule(
        key,
        lambda v: v.categorical and v["edges"] is not None and v[key] is not None,
        "has no effect beside edges",
        "Remove it.",
        shown=False,
    )


def _unknown_column(key: str) -> Rule[QueryValues]:
    return Rule(
        key,
        lambda v: v.around.columns is not None and v[key] is not None and v[key] not in v.around.columns,
        "the data have no such column",
        lambda v: suggestion(v[key], v.around.columns or (), quoted=True),
    )


def _is_shuffled(v: QueryValues) -> bool:
    return v.around["privacy.trust"] == "shuffled" or "shuffled" in (v.around["compare.trusts"] or ())


QUERY_RULES: tuple[Entry[QueryValues], ...] = (
    Rule(
        "local",
        lambda v: v["local"] == "laplace" and _is_shuffled(v),
        "the rounded sum of real numbers depends on their order, which a shuffler hides",
        'Use "randomized-response", whose messages are counted.',
    ),
    _beside_edges("first"),
    _beside_edges("last"),
    Rule(
        "edges",
        lambda v: v.categorical and v["edges"] is not None and not rising(v["edges"]),
        "must rise",
        "Each edge is above the one before.",
        shown=False,
    ),
    Rule(
        "last",
        lambda v: _lacks_range(v) and v["last"] is None,
        "missing",
        "Add first and last, or edges = [...].",
    ),
    Rule(
        "first",
        lambda v: _lacks_range(v) and v["first"] is None and v["last"] is not None,
        "missing",
        "Add first and last, or edges = [...].",
    ),
    Rule(
        "last",
        lambda v: v.categorical and v.span is not None and not 2 <= v.span <= MAX_CELLS,
        f"must be from first + 1 to first + {MAX_CELLS - 1}",
        "Categories are whole numbers.",
        shown=False,
    ),
    Rule(
        "names",
        lambda v: (
            v.categorical and v["names"] is not None and v.cells is not None and len(v["names"]) != v.cells
        ),
        lambda v: f"{len(v['names'])} names for {v.cells} categories",
        "Give each one a name.",
        shown=False,
    ),
    Rule(
        "above",
        lambda v: v["equals"] is not None and v["above"] is not None,
        "one way to say yes is enough",
        "Leave out equals or above.",
        shown=False,
    ),
    Rule(
        "low",
        lambda v: v.bounded and not v["low"] < v["high"],
        lambda v: f"must be below high = {v['high']:g}",
        "They bound what a client may answer.",
        shown=False,
    ),
    Rule(
        "high",
        lambda v: v.bounded and not math.isfinite(v["high"] - v["low"]),
        "too far from low",
        "Choose bounds that people can have.",
        shown=False,
    ),
    Rule(
        "prices",
        lambda v: v["kind"] == "best-price" and not rising(v["prices"]),
        "must rise",
        "Each price is above the one before.",
        shown=False,
    ),
    Rule(
        "central",
        lambda v: v["central"] == "discrete-laplace" and v.around.in_shares,
        "needs whole totals, and clients of several records answer with shares of them",
        'Set central = "laplace".',
    ),
    _unknown_column("column"),
    _unknown_column("by"),
)
