"""Rules of property inference: the group exists, and the seat sees what the attack needs."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.errors import Finding, InputError
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.sections import Property
from fedprivacy.scenario.data import FileData


def _group_exists(v: AttackValues) -> Iterator[Finding]:
    attack, data = v.attack, v.around.run.data
    if not isinstance(attack, Property):
        return
    labels: tuple[str, ...]
    if attack.column is None:
        classes = data.facts.classes(data.classes) if isinstance(data, FileData) else v.around["data.classes"]
        labels = tuple(map(str, range(classes or 10)))
    elif not isinstance(data, FileData) or not data.facts.feature_names:
        what = "the records of this data set have no columns with names"
        yield Finding(("column",), what, "Remove it: groups are labels then.", literal(attack.column))
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
    if attack.value not in labels:
        remedy = suggestion(attack.value, list(labels)[:30], quoted=True)
        yield Finding(("value",), "no record is in this group", remedy, literal(attack.value))


PROPERTY_RULES: tuple[Entry[AttackValues], ...] = (
    Rule(
        "low",
        lambda v: v["kind"] == "property" and v["low"] >= v["high"],
        lambda v: f"must be below high = {v['high']:g}",
    ),
    Rule(
        "seat",
        lambda v: (
            v["trials"] is not None and v["seat"] == "participant" and v.around["privacy.trust"] == "local"
        ),
        "the server sees each client's noisy update, from which all that a participant sees is computed",
        'Set seat = "server".',
    ),
    Rule(
        "seat",
        lambda v: (
            v["trials"] is not None and v["seat"] == "participant" and v.around["privacy.bands"] is not None
        ),
        "the noise of sums is correlated over rounds, which this attack does not model",
        'Set seat = "server", or remove privacy.bands.',
    ),
    Check(_group_exists),
)
