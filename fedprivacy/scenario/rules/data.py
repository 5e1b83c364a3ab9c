"""Rules between the keys of the data section, and between them and the data file.

Of a file only headers, labels, users and names are read here, and its records where these may be
NaN: so a mistake in the data is reported with all others, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fedprivacy.data.images import square_image
from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.rule_table import Check, Entry, Rule, exceeds
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.data import KEYS_OF, Npz, foreign_keys, keys_of
from fedprivacy.scenario.derived_values import CONVERTED, Values, used_columns
from fedprivacy.scenario.words import missing

MAX_NUMBERS = 10**10  # of a data array: 40 GB as float32


def choices_have_their_keys(v: Values) -> Iterator[Finding]:
    for choice, ways in KEYS_OF.items():
        chosen = v[f"data.{choice}"]
        if chosen is None:
            continue
        for key in ways[chosen]:
            if not v.given(f"data.{key}"):
                lacking = missing(("data", key), Npz.model_fields[key])
                yield replace(lacking, what=f'missing: {choice} "{chosen}" needs it')
        for key in sorted(foreign_keys(choice, chosen)):
            if v.given(f"data.{key}"):
                homes = (f"{choice} = {literal(way)}" for way in ways if key in keys_of(choice, way))
                what = f"has no effect with {choice} = {literal(chosen)}"
                yield Finding(("data", key), what, f"Remove it, or set {' or '.join(homes)}.")


def columns_are_there(v: Values) -> Iterator[Finding]:
    facts = v.facts
    if v["data.columns"] is not None and v["data.without"] is not None:
        what = "given together with columns, but each says which are used"
        yield Finding(("data", "without"), what, "Keep one of them.")
    if facts is None:
        return
    from fedprivacy.data.columns import unknown

    for key in ("columns", "without"):
        listed = v[f"data.{key}"] or ()
        if listed and len(facts.features) > 1:
            what = f"records have the shape {facts.features}, which has no columns"
            yield Finding(("data", key), what, "Remove it.")
            continue
        for position, what, remedy in unknown(listed, facts.feature_names, facts.features[0]):
            yield Finding(("data", key, position), what, remedy, literal(listed[position]))
    if len(facts.features) == 1 and not used_columns(v) and not v["data.columns"]:
        yield Finding(("data", "without"), "leaves no column", "Name fewer.")


def no_value_is_missing(v: Values) -> Iterator[Finding]:
    facts = v.facts
    if facts is None or v["data.missing"] != "error":
        return
    from fedprivacy.data.npz import NpzError, unusable_columns

    path: str = v["data.path"]
    assert isinstance(v.file, str)  # there are facts
    try:
        bad = unusable_columns(v.file)
    except NpzError as error:  # headers are whole, records are not
        for what, remedy in error.wrongs:
            yield Finding(("data", "path"), what, remedy, literal(path))
        return
    table = len(facts.features) == 1
    used = sorted(set(used_columns(v)) & set(bad) if table else bad)
    if not used:
        return
    what, zero = (
        "values are missing (NaN, infinite or beyond float32)",
        'set missing = "zero": 0 after scaling',
    )
    if not table:
        yield Finding(("data", "path"), f"{what} at {len(used)} places of a record", f"S{zero[1:]}.")
        return
    names = [facts.feature_names[at] if facts.feature_names else at for at in used]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    where = f"in column{'s' if len(names) > 1 else ''} {', '.join(map(str, names[:8]))}{more}"
    out = f"without = {literal(names[:8])}" if v["data.name"] == "npz" else "name the others in inputs"
    remedy = f"Leave out what lacks values ({out}), or {zero}."
    yield Finding(("data", "path"), f"{what} {where}", remedy)


def labels_fit_classes(v: Values) -> Iterator[Finding]:
    facts, given = v.facts, v["data.classes"]
    if facts is None or facts.targets is not None:
        return
    named, classes = len(facts.class_names), facts.classes(given)
    if classes < 2:
        what = "all training labels are 0, and a model needs two classes"
        yield Finding(("data", "path"), what, "Correct the labels, or set classes = 2.")
        return
    if given is not None and named and given != named:
        what = f"the file names {named} classes"
        yield Finding(("data", "classes"), what, f"Remove it, or set {named}.", literal(given))
        return
    key = "path" if given is None else "classes"
    noun, plural = ("label", "classes") if facts.top_tokens is None else ("token", "tokens")
    tops = {"y_train": facts.top_label, "y_test": facts.top_test_label}
    if facts.top_tokens is not None:
        tops |= dict(zip(("x_train", "x_test"), facts.top_tokens, strict=True))
    for part, top in tops.items():
        if top >= classes:
            source = "that the file names" if named else "given" if given else "of the training labels"
            what = f"{part} has the {noun} {top}, but the {classes} {plural} {source} are 0 to {classes - 1}"
            remedy = f"Correct the {noun}s." if named else f"Set classes = {top + 1}, or correct the {noun}s."
            yield Finding(("data", key), what, remedy)


def _may_be_images(v: Values) -> bool:
    synthetic = v["data.name"] in ("synthetic", "purchase-like")
    return not synthetic and (v.features is None or square_image(v.features) is not None)


def bounds_fit_columns(v: Values) -> Iterator[Finding]:
    if v["data.scaling"] != "bounds":
        return
    lows, highs = _numbers(v["data.low"]), _numbers(v["data.high"])
    table = v.facts is None or len(v.facts.features) == 1
    for key, bounds in (("low", lows), ("high", highs)):
        if isinstance(v[f"data.{key}"], list | tuple) and v.width and (not table or len(bounds) != v.width):
            what = f"{len(bounds)} numbers for {v.width} columns" if table else "records have no columns"
            yield Finding(("data", key), what, "Give one number, or one for each column that is used.")
            return
    for at, (low, high) in enumerate(zip(*_alike(lows, highs), strict=False)):
        if low >= high:
            path: KeyPath = ("data", "high", at) if len(highs) > 1 else ("data", "high")
            yield Finding(path, f"must be above low = {low:g}", "low becomes 0, high 1.", literal(high))
            return


def _numbers(bound: Any) -> tuple[float, ...]:
    if bound is None:
        return ()
    return tuple(bound) if isinstance(bound, list | tuple) else (bound,)


def _alike(first: tuple[float, ...], other: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Both as long as the longer: a single number is for all columns."""
    return (first * len(other) if len(first) == 1 else first), (
        other * len(first) if len(other) == 1 else other
    )


def _user_column_missing(v: Values) -> bool:
    by_user = v["data.partition"] == "by-user"
    return v["data.name"] in ("table", "flwr-datasets") and by_user and not v.given("data.user")


def _has_no_users(v: Values) -> bool:
    name = v["data.name"]
    known = name is not None and name not in CONVERTED and not (name == "npz" and v.facts is None)
    return known and v["data.partition"] == "by-user" and (v.facts is None or v.facts.users is None)


def _record_numbers(v: Values) -> int:
    """The numbers in all records; 0 where a size is not known."""
    features, records, test = v["data.features"], v["data.records"], v["data.test_records"]
    return (records + test) * features if features and records and test else 0


RECORDS_FIT_MEMORY = Rule[Values](
    "data.records",
    lambda v: _record_numbers(v) > MAX_NUMBERS,
    lambda v: f"with {v['data.features']} features these are more than {MAX_NUMBERS:,} numbers",
    "Take fewer records or features.",
)

DATA_RULES: tuple[Entry[Values], ...] = (
    Check(choices_have_their_keys),
    Check(lambda v: iter(v.read if isinstance(v.read, tuple) else ())),  # why the file cannot be used
    Check(columns_are_there),
    Check(no_value_is_missing),
    Check(labels_fit_classes),
    Rule(
        "data.public_fraction",
        lambda v: v["data.scaling"] == "public" and v.private is not None and v.private == v.owners,
        'scaling "public" needs records that no client owns, to take mean and deviation from',
        "Set public_fraction = 0.1.",
        shown=False,
    ),
    Rule(
        "data.scaling",
        lambda v: v["data.scaling"] == "per-image" and not _may_be_images(v),
        lambda v: f"needs square images, and the records of data set {literal(v['data.name'])} are none",
        'Use "per-record".',
    ),
    Check(bounds_fit_columns),
    Rule(
        "data.partition",
        _user_column_missing,
        "no column names the owner of a record",
        "Name it: user = ...",
    ),
    Rule(
        "data.partition",
        _has_no_users,
        lambda v: (
            "the file has no array user_train" if v.facts else f'the data set "{v["data.name"]}" has no users'
        ),
        'Use "iid" or "one-per-example".',
    ),
    Rule(
        "data.public_fraction",
        lambda v: v.private == 0,
        lambda v: (
            f"leaves none of {v.owners} "
            f"{'users' if v['data.partition'] == 'by-user' else 'training records'} to clients"
        ),
        "Make it smaller.",
    ),
    Rule(
        "data.clients",
        lambda v: (
            v["data.partition"] in ("iid", "dirichlet", "by-label")
            and v.private != 0
            and exceeds(v["data.clients"], v.private)
        ),
        lambda v: f"more clients than the {v.private} records that they can own",
        lambda v: f"At most {v.private}.",
    ),
    Rule(
        "data.records_per_client",
        lambda v: (
            v["data.partition"] == "fixed-records"
            and v.private != 0
            and exceeds(v["data.records_per_client"], v.private)
        ),
        lambda v: f"more than the {v.private} records that clients can own",
        lambda v: f"At most {v.private}.",
    ),
    Rule(
        "data.clients",
        lambda v: (
            v["data.partition"] == "fixed-records"
            and bool(v.private and v["data.records_per_client"])
            and not exceeds(v["data.records_per_client"], v.private)
            and exceeds(v["data.clients"], v.private // v["data.records_per_client"])
        ),
        lambda v: f"more clients than {v.private} records are enough for",
        lambda v: f"At most {v.private // v['data.records_per_client']}, or fewer records_per_client.",
    ),
    Rule(
        "data.first_clients",
        lambda v: bool(v.dealt_clients) and exceeds(v["data.first_clients"], v.dealt_clients),
        lambda v: f"more than the {v.dealt_clients} clients that there are",
        lambda v: f"At most {v.dealt_clients}.",
    ),
    RECORDS_FIT_MEMORY,
)
