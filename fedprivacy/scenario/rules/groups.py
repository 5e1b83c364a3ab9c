"""Rules for the groups of test records by which a model is measured."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.errors import Finding, InputError
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.sampling.group_limits import COLUMN
from fedprivacy.scenario.derived_values import CONVERTED, Values

NAMED = ("npz", *CONVERTED)  # data sets whose columns may have names


def _lack_names(v: Values) -> bool:
    if v["evaluation.groups"] is None or v["data.name"] is None:
        return False
    images = v.facts is not None and not v.facts.feature_names and not v.facts.test_users
    return v["data.name"] not in NAMED or (v["data.name"] == "npz" and images)


def groups_are_columns(v: Values) -> Iterator[Finding]:
    listed = v["evaluation.groups"]
    if listed is None or v.facts is None or _lack_names(v) or v["evaluation.on"] == "public":
        return
    from fedprivacy.data.groups import grouping
    from fedprivacy.data.record_columns import held_out_column, names, origin_of

    assert isinstance(v.file, str)  # there are facts
    keys = {key.removeprefix("data."): value for key, value in v.valid.items() if key.startswith("data.")}
    origin, known = origin_of(v["data.name"], keys), None
    for position, name in enumerate(listed):
        at = ("evaluation", "groups", position)
        if name == COLUMN:
            what = "is the name under which groups of clients with budgets are measured"
            yield Finding(at, what, "Rename the column, or remove it here.", literal(name))
            continue
        try:
            column = held_out_column(v.file, origin, name)
            if column is None:
                known = names(v.file, origin) if known is None else known
                shown = known if len(known) <= 30 else [*known[:29], "..."]
                yield Finding(at, "no such column", suggestion(name, shown, quoted=True), literal(name))
                continue
            grouping(name, column, (v["evaluation.edges"] or {}).get(name, ()))
        except InputError as error:
            what, _, remedy = str(error).removeprefix(f"{name}: ").partition(". ")
            yield Finding(at, what, remedy, literal(name))


def edges_have_groups(v: Values) -> Iterator[Finding]:
    listed, edges = v["evaluation.groups"], v["evaluation.edges"]
    for name in edges or ():
        if "evaluation.groups" not in v.broken and name not in (listed or ()):
            remedy = f"Set groups = {literal([*(listed or ()), name])}, or remove it."
            yield Finding(("evaluation", "edges", name), "has no effect: groups does not name it", remedy)


GROUP_RULES: tuple[Entry[Values], ...] = (
    Rule(
        "evaluation.groups",
        _lack_names,
        lambda v: f"the records of data set {literal(v['data.name'])} have no columns with names",
        "Remove it: each report has the accuracy within each class, and data with named columns have groups.",
    ),
    Rule(
        "evaluation.groups",
        lambda v: v["evaluation.groups"] is not None and v["evaluation.on"] == "public",
        'groups are columns of the test records, and evaluation.on = "public" measures on others',
        'Set on = "test".',
    ),
    Check(groups_are_columns),
    Check(edges_have_groups),
)
