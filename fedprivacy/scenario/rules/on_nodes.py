"""Rules for data that live on nodes."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.on_nodes import ON_NODES

_SIZES = "data.records_per_client"


def _sizes_do_not_fit(v: Values) -> bool:
    sizes, clients = v[_SIZES], v["data.clients"]
    listed = v["data.name"] == ON_NODES and isinstance(sizes, list | tuple)
    return listed and clients is not None and len(sizes) != clients


NODE_RULES: tuple[Entry[Values], ...] = (
    Rule(
        _SIZES,
        _sizes_do_not_fit,
        lambda v: f"{len(v[_SIZES])} numbers for {v['data.clients']} clients",
        "Give one number, or one for each client.",
        shown=False,
    ),
    Rule(
        _SIZES,
        lambda v: v["data.name"] == ON_NODES and v["privacy.unit"] == "example" and not v.given(_SIZES),
        'missing: privacy.unit = "example" reckons with the records that each client is agreed to have',
        "Add records_per_client = 1000.",
        shown=False,
    ),
    Rule(
        "evaluation.on",
        {"data.name": ON_NODES, "evaluation.on": "public"},
        "the records are on nodes, and none of them is public",
        'Set on = "test", with data.test.',
    ),
)
