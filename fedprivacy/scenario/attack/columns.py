"""The labels of the groups that a column of the records makes, or what is wrong with the column."""

from __future__ import annotations

from fedprivacy.errors import Finding, InputError
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.data import FileData


def class_labels(v: AttackValues) -> tuple[str, ...]:
    """The labels as groups; ten where their number is unknown."""
    data = v.around.run.data
    classes = data.facts.classes(data.classes) if isinstance(data, FileData) else v.around["data.classes"]
    return tuple(map(str, range(classes or 10)))


def column_labels(v: AttackValues, without_names: str) -> tuple[str, ...] | Finding | None:
    """The groups of the attack's key `column`; None where the data are not here.

    Args:
        v: The attack.
        without_names: The remedy where records have no columns with names.
    """
    name, data = v["column"], v.around.run.data
    if not isinstance(data, FileData) or not data.facts.feature_names:
        what = "the records of this data set have no columns with names"
        # Without a name the data are not here (`Attack.without_data`).
        return Finding(("column",), what, without_names, literal(name)) if name else None
    from fedprivacy.data.groups import grouping
    from fedprivacy.data.record_columns import feature, names, origin_of

    column = feature(data.file, name, "train")
    if column is None:
        known = names(data.file, origin_of(data.name, dict(data)))
        remedy = suggestion(name, known[:30], quoted=True)
        return Finding(("column",), "no feature of the records", remedy, literal(name))
    try:
        return grouping(name, column).labels
    except InputError as error:
        what, _, remedy = str(error).removeprefix(f"{name}: ").partition(". ")
        return Finding(("column",), what, remedy, literal(name))
