"""Rules of inferring properties and attributes: column and group exist, the seat sees what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.errors import Finding, InputError
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.sections import Attribute, Poisoning, Property, TrialAttack
from fedprivacy.scenario.data import FileData


def _group_exists(v: AttackValues) -> Iterator[Finding]:
    attack, data = v.attack, v.around.run.data
    if not isinstance(attack, Property | Attribute):
        return
    labels: tuple[str, ...]
    if attack.column is None:
        classes = data.facts.classes(data.classes) if isinstance(data, FileData) else v.around["data.classes"]
        labels = tuple(map(str, range(classes or 10)))
    elif not isinstance(data, FileData) or not data.facts.feature_names:
        what = "the records of this data set have no columns with names"
        remedy = "Remove it: groups are labels then." if isinstance(attack, Property) else "Use other data."
        if attack.column:  # else the data are not here (`TrialAttack.without_data`)
            yield Finding(("column",), what, remedy, literal(attack.column))
        return
    else:
        from fedprivacy.data.groups import grouping
        from fedprivacy.data.record_columns import feature, names, origin_of

        column = feature(data.file, attack.column, "train")
        if column is None:
            known = names(data.file, origin_of(data.name, dict(data)))
            remedy = suggestion(attack.column, known[:30], quoted=True)
            yield Finding(("column",), "no feature of the records", remedy, literal(attack.column))
            return
        try:
            labels = grouping(attack.column, column).labels
        except InputError as error:
            what, _, remedy = str(error).removeprefix(f"{attack.column}: ").partition(". ")
            yield Finding(("column",), what, remedy, literal(attack.column))
            return
    if isinstance(attack, Attribute):
        if len(labels) < 2:
            yield Finding(("column",), "all records have the same value", "", literal(attack.column))
    elif attack.value not in labels:
        remedy = suggestion(attack.value, list(labels)[:30], quoted=True)
        yield Finding(("value",), "no record is in this group", remedy, literal(attack.value))


def _from_the_sum(v: AttackValues) -> bool:
    """Whether the attack infers something of the victim from a participant's seat."""
    return (
        isinstance(v.attack, TrialAttack)
        and not isinstance(v.attack, Poisoning)
        and v["seat"] == "participant"
    )


PROPERTY_RULES: tuple[Entry[AttackValues], ...] = (
    Rule(
        "low",
        lambda v: v["kind"] == "property" and v["low"] >= v["high"],
        lambda v: f"must be below high = {v['high']:g}",
    ),
    Rule(
        "seat",
        lambda v: _from_the_sum(v) and v.around["privacy.trust"] == "local",
        "the server sees each client's noisy update, from which all that a participant sees is computed",
        'Set seat = "server".',
    ),
    Rule(
        "seat",
        lambda v: _from_the_sum(v) and v.around["privacy.bands"] is not None,
        "the noise of sums is correlated over rounds, which this attack does not model",
        'Set seat = "server", or remove privacy.bands.',
    ),
    Rule(
        "column",
        lambda v: v["kind"] == "attribute" and v.around["data.scaling"] in ("per-record", "per-image"),
        "each value changes the scale of its whole record, and the attack changes one column",
        'Set data.scaling to another way, such as "bounds".',
    ),
    Rule(
        "knows",
        lambda v: (
            v["kind"] == "attribute" and v["knows"] == "others" and v.around["privacy.unit"] == "example"
        ),
        "compares the update with that of each candidate, and batches drawn at random have no such update",
        'Set knows = "record", or privacy.unit = "client".',
    ),
    Check(_group_exists),
)
