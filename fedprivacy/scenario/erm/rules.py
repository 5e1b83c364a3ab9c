"""Rules between the sections of a scenario of private empirical risk minimisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedprivacy.data import npz
from fedprivacy.data.columns import unknown
from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, Rule, beneath, broken_rules, exceeds
from fedprivacy.mechanisms.combinations import publishes_one
from fedprivacy.scenario.delta import DELTA_IS_RESOLVED
from fedprivacy.scenario.erm.derived_values import ApproachValues, ErmValues

MOST_CANDIDATES = 10**6  # of a grid


def findings(parts: Mapping[str, Any]) -> list[Finding]:
    """Returns all mistakes between the valid sections; `approaches` is a table of them."""
    return list(broken_rules(ERM_RULES, ErmValues(parts)))


def _lengths_differ(key: str) -> Rule[ErmValues]:
    return Rule(
        f"data.{key}",
        lambda v: v["data.name"] == "npz" and len(v[f"data.{key}"]) != len(v["data.features"]),
        lambda v: f"has {len(v[f'data.{key}'])} bounds for {len(v['data.features'])} features",
        "Give one for each feature.",
        shown=False,
    )


def _bounds_are_crossed(v: ErmValues) -> bool:
    bounds = zip(v["data.low"] or (), v["data.high"] or (), strict=False)
    return any(low >= high for low, high in bounds)


def _columns_are_there(v: ErmValues) -> Iterator[Finding]:
    """Refuses a file that cannot be used, or else one that lacks columns."""
    if v["data.name"] != "npz":
        return
    data = v.parts["data"]
    try:
        facts = npz.facts(data.path)
    except npz.NpzError as error:
        for what, remedy in error.wrongs:
            yield Finding(("data", "path"), what, remedy)
        return
    if len(facts.features) != 1:
        yield Finding(("data", "path"), "its records are no rows of numbers", "Rows are needed.")
        return
    width = facts.features[0]
    names = (*(facts.feature_names or tuple(f"column {place}" for place in range(width))), data.label)
    for at, what, remedy in unknown(data.features, names, len(names)):
        yield Finding(("data", "features", at), what, remedy)
    for _, what, remedy in unknown([data.target], names, len(names)):
        yield Finding(("data", "target"), what, remedy)
    if data.target in data.features:
        yield Finding(("data", "target"), "is a feature too", "Leave it out of the features.")


DATA_RULES: tuple[Entry[ErmValues], ...] = (
    Rule(
        "objective.loss",
        {"data.name": "logistic-model", "objective.loss": "squared"},
        'has classes to tell with data.name = "logistic-model"',
        "Choose logistic or huber-svm.",
        shown=False,
    ),
    _lengths_differ("low"),
    _lengths_differ("high"),
    Rule(
        "data.low",
        _bounds_are_crossed,
        "is not below high for every feature",
        "Bounds are public, and apart.",
        shown=False,
    ),
    Rule(
        "data.target_low",
        lambda v: v["data.name"] == "npz" and v["data.target_low"] >= v["data.target_high"],
        "is not below target_high",
        "Bounds are public, and apart.",
        shown=False,
    ),
    Check(_columns_are_there),
)
APPROACH_RULES: tuple[Entry[ApproachValues], ...] = (
    Rule(
        "kind",
        lambda v: (
            v["kind"] == "sufficient-statistics" and v.around["objective.loss"] not in (None, "squared")
        ),
        "sums of products say all of the squared loss alone",
        'Set objective.loss = "squared", or choose another approach.',
        shown=False,
    ),
    Rule(
        "points",
        lambda v: (
            v["kind"] == "exponential-grid"
            and v.around.width is not None
            and v["points"] ** v.around.width > MOST_CANDIDATES
        ),
        lambda v: f"makes {v['points']}^{v.around.width} candidates",
        "Choose fewer points or features: at most a million.",
        shown=False,
    ),
    Rule(
        "silos",
        {"trust": "local", "silos": 1},
        'is 1: trust = "local" is of several silos',
        "Set silos.",
        shown=False,
    ),
    Rule(
        "silos",
        lambda v: v.silos > 1 and v.around["privacy.adjacency"] == "add-remove",
        "must be 1 under add-remove: sizes are private",
        'Set privacy.adjacency = "replace-one".',
        shown=False,
    ),
    Rule(
        "silos",
        lambda v: v.fewest_records is not None and v.silos > v.fewest_records // 2,
        lambda v: f"is {v.silos}, of {v.fewest_records} records",
        "Each needs two at least.",
        shown=False,
    ),
)


def _of_approaches(v: ErmValues) -> Iterator[Finding]:
    for name, approach in v.parts.get("approaches", {}).items():
        yield from beneath(("approaches", name), broken_rules(APPROACH_RULES, ApproachValues(approach, v)))


def _delta_is_unresolved(v: ErmValues) -> Iterator[Finding]:
    known = v.parts.get("data") is not None and v.parts.get("study") is not None
    yield from DELTA_IS_RESOLVED.findings(v) if known else ()


STUDY_RULES: tuple[Entry[ErmValues], ...] = (
    Rule(
        "study.records",
        lambda v: v["data.name"] == "npz" and exceeds(max(v["study.records"] or (), default=None), v.records),
        lambda v: f"asks for {max(v['study.records'])} of {v.records} records",
        "Take fewer.",
        shown=False,
    ),
    Check(_delta_is_unresolved),
    Rule(
        "privacy.delta",
        lambda v: publishes_one(v["privacy.delta"], v.most_records),
        lambda v: f"must be below 1/(number of records) = {1 / v.most_records:.2g}",
        "1e-6 is usual.",
        shown=False,
    ),
)
ERM_RULES: tuple[Entry[ErmValues], ...] = (*DATA_RULES, Check(_of_approaches), *STUDY_RULES)
