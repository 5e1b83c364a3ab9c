"""Translates pydantic's errors about a table into words for authors of scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import closest, literal, suggestion
from fedprivacy.sampling.group_limits import NAME_WORDS
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.findings import wrong_type
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind

# Trust models that only training has: elsewhere no update of a client could be summed.
_OF_TRAINING = {
    "distributed": (
        "only training has noise in shares for a secure sum",
        'Use "local", where clients add their own noise, or "central", where a trusted server adds it.',
    )
}
_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "dict_type": "a section",
    "model_type": "a section",
}
# The name of a key's value, where the key itself does not give it.
_NOUNS = {
    "trusts": "trust model",
    "units": "unit of privacy",
    "noise_draw": "way to draw noise",
    "observe": "kind of reply",
    "denoise": "way to take out noise",
    "aggregation": "rule of aggregation",
    "averaging": "average of iterates",
    "schedule": "schedule of the learning rate",
    "on": "data to evaluate on",
    "through": "way to keep an epsilon",
}
_BOUNDS = (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most"))


def explain(base: KeyPath, cls: type[Section], error: ValidationError) -> list[Finding]:
    """One finding for each of pydantic's errors, unknown keys of the table left out (see `unknown_key`)."""
    return [
        _explain(base, cls, detail)
        for detail in error.errors(include_url=False)
        if not _is_reported_elsewhere(detail) and not _counts_wrong_elements(detail)
    ]


def _is_reported_elsewhere(error: ErrorDetails) -> bool:
    """Whether it is about an unknown key of the section itself, which `unknown_key` reports."""
    return error["type"] == "extra_forbidden" and len(error["loc"]) == 1


def _counts_wrong_elements(error: ErrorDetails) -> bool:
    """Whether a list is "too short" only because its invalid elements, reported singly, do not count."""
    return error["type"] == "too_short" and len(error["input"]) > 0


def _explain(base: KeyPath, cls: type[Section], error: ErrorDetails) -> Finding:
    path, given, sort = (*base, *error["loc"]), error["input"], error["type"]
    field, inner = cls.model_fields[str(error["loc"][0])], _section_within(cls, error)
    if inner is not None and sort == "extra_forbidden":
        return Finding(path, "unknown key", suggestion(str(path[-1]), list(inner.model_fields)))
    if inner is not None and path[-1] == "[key]" and sort == "string_pattern_mismatch":
        return Finding(path[:-1], f"the name must be {NAME_WORDS}", "Choose another name.")
    if inner is not None and path[-1] != "[key]":  # of a table with a name, such as [privacy.groups.NAME]
        field = inner.model_fields[str(error["loc"][2])]
    about = field.description or ""
    if sort == "missing":
        return missing(path, field)
    if sort in _WANTED:
        return wrong_type(path, given, _WANTED[sort], about)
    if path[-1] == "[key]":  # a section that no trust model may have otherwise
        return Finding(path[:-1], "unknown key", suggestion(str(given), names(field.annotation)))
    if sort == "literal_error":
        key = str(error["loc"][0 if inner is None else 2])
        return wrong_name(path, given, names(field.annotation), _NOUNS.get(key, key))
    if sort == "finite_number":
        return Finding(path, "a finite number is needed", about, literal(given))
    if sort == "string_pattern_mismatch":
        return Finding(path, "must be letters, digits and hyphens, at most 64", about, literal(given))
    if sort == "too_short":
        empty, part = ("section", "table") if isinstance(given, Mapping) else ("list", "element")
        return Finding(path, f"the {empty} is empty, at least one {part} is needed", about)
    if sort == "too_long":
        most = error["ctx"]["max_length"]
        many = f"{most} tables are" if isinstance(given, Mapping) else f"the list is too long, {most} is"
        return Finding(path, f"{many} the most", about)
    single = len(error["loc"]) == (1 if inner is None else 3)
    bounds = _bounds(field if single else None, error.get("ctx", {}))
    return Finding(path, f"must be {bounds}" if bounds else error["msg"], about, literal(given))


def _section_within(cls: type[Section], error: ErrorDetails) -> type[Section] | None:
    """The section of the table with a name that an error is in, or None."""
    if len(error["loc"]) < 3:
        return None
    kinds = [cls.model_fields[str(error["loc"][0])].annotation]
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
        kinds += get_args(kind)
    return None


def _bounds(field: FieldInfo | None, broken: Mapping[str, Any]) -> str:
    """`above 0 and at most 1`: the limit that was broken, and the field's other one if it is near."""
    shown = {name: broken[name] for name, _ in _BOUNDS if name in broken}
    for meta in field.metadata if field else ():
        for name, _ in _BOUNDS:
            limit = getattr(meta, name, None)
            if limit is not None and limit < 10**6:
                shown[name] = limit
    return " and ".join(f"{word} {shown[name]:.15g}" for name, word in _BOUNDS if name in shown)


def names(annotation: Any) -> list[str]:
    """The words that a type such as `tuple[Literal["a", "b"], ...]` allows."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [name for part in get_args(annotation) for name in names(part)]


def missing(path: KeyPath, field: FieldInfo) -> Finding:
    example = f"{path[-1]} = {literal(field.examples[0])}" if field.examples else f"{path[-1]}"
    return Finding(path, "missing", f"Add {example}. {field.description or ''}".strip())


def wrong_name(path: KeyPath, given: Any, known: Sequence[str], noun: str) -> Finding:
    """A word that is not one of those that a key may have."""
    if not isinstance(given, str):
        return wrong_type(path, given, "text in quotes", f"One of {', '.join(map(literal, known))}.")
    if given in _OF_TRAINING and any(word in path for word in ("trust", "trusts")):
        return Finding(path, *_OF_TRAINING[given], literal(given))
    return Finding(path, f"unknown {noun}", suggestion(given, known, quoted=True), literal(given))


def meant(table: Mapping[str, Any], known: Sequence[str]) -> set[str]:
    """The missing keys of a table that are misspelt: only the misspelling is reported."""
    near = {closest(key, known) for key in table if key not in known}
    return {key for key in near if key is not None and key not in table}


def unknown_key(base: KeyPath, key: str, known: Sequence[str], kinds: Mapping[str, Kind] = KINDS) -> Finding:
    """A key that no variant of a section has; `base` is () above the first section."""
    path = (*base, key)
    here = base[0] if base else ""
    homes = [name for name, kind in {"": HEAD, **kinds}.items() if name != here and kind.owners(key)]
    if len(homes) == 1:
        home = f"in [{homes[0]}]" if homes[0] else "above the first section"
        return Finding(path, "unknown key", f"It belongs {home}.")
    return Finding(path, "unknown key", suggestion(key, known if base else [*known, *kinds]))
