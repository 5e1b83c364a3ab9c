"""Rules between the keys of a statistics scenario, beyond the type and range of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, First, Rule, beneath, broken_rules
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.mechanisms.combinations import publishes_one
from fedprivacy.scenario.delta import DELTA_IS_RESOLVED
from fedprivacy.scenario.statistics.derived_values import QueryValues, StatisticsValues
from fedprivacy.scenario.statistics.query_rules import QUERY_RULES

_KEYS_OF_LAW = {"lognormal": ("median", "spread"), "uniform": ("low", "high")}


def findings(
    parts: Mapping[str, Any], columns: tuple[str, ...] | None, clients: int | None
) -> Iterator[Finding]:
    """Yields all mistakes between valid sections; the arguments are those of `StatisticsValues`."""
    yield from broken_rules(STATISTICS_RULES, StatisticsValues(parts, columns, clients))


def _needs_key(law: str, key: str) -> Rule[StatisticsValues]:
    return Rule(
        f"data.{key}",
        lambda v: v["data.law"] == law and v[f"data.{key}"] is None,
        "missing",
        f'law = "{law}" needs {" and ".join(_KEYS_OF_LAW[law])}.',
    )


def _foreign_key(law: str, key: str) -> Rule[StatisticsValues]:
    return Rule(
        f"data.{key}",
        lambda v: v["data.law"] == law and v[f"data.{key}"] is not None,
        f'has no effect with law = "{law}"',
        "Remove it.",
        shown=False,
    )


def _law_is_upside_down(v: StatisticsValues) -> bool:
    low, high = v["data.low"], v["data.high"]
    return v["data.law"] == "uniform" and low is not None and high is not None and low >= high


DATA_RULES: tuple[Entry[StatisticsValues], ...] = (
    First(
        Rule(
            "data.shares",
            lambda v: v["data.shares"] is not None and v.law_of_categories,
            "one law is needed",
            "Give shares = [...], or else categories and exponent.",
            shown=False,
        ),
        Rule(
            "data.categories",
            lambda v: v["data.name"] == "categories" and v["data.shares"] is None and not v.law_of_categories,
            "one law is needed",
            "Give shares = [...], or else categories and exponent.",
        ),
        Rule(
            "data.exponent",
            lambda v: v["data.categories"] is not None and v["data.exponent"] is None,
            "missing",
            "Add exponent = 1.0.",
        ),
        Rule(
            "data.categories",
            lambda v: v["data.exponent"] is not None and v["data.categories"] is None,
            "missing",
            "Add categories = 100.",
        ),
        Rule(
            "data.shares",
            lambda v: v["data.shares"] is not None and not sum(v["data.shares"]) > 0,
            "all shares are 0",
            "At least one must be above 0.",
            shown=False,
        ),
    ),
    *(_needs_key(law, key) for law, keys in _KEYS_OF_LAW.items() for key in keys),
    *(_foreign_key("lognormal", key) for key in _KEYS_OF_LAW["uniform"]),
    *(_foreign_key("uniform", key) for key in _KEYS_OF_LAW["lognormal"]),
    Rule(
        "data.low",
        _law_is_upside_down,
        lambda v: f"must be below high = {v['data.high']:g}",
    ),
)


BY_CLIENTS = ("local", "shuffled")

PRIVACY_RULES: tuple[Entry[StatisticsValues], ...] = (
    Rule(
        "privacy.adjacency",
        lambda v: v["privacy.trust"] in BY_CLIENTS and v["privacy.adjacency"] != "replace-one",
        "answers of clients are protected under replace-one alone: the server sees who answers",
        'Set adjacency = "replace-one".',
    ),
    Rule(
        "privacy.delta",
        lambda v: bool(v["privacy.shuffled"]) and not v["privacy.delta"],
        "must be above 0 with shuffled = true",
        "A shuffler helps at a delta above 0 only: 1e-6, say.",
    ),
    Rule(
        "privacy.delta",
        lambda v: v["privacy.trust"] == "shuffled" and not v["privacy.delta"],
        'must be above 0 with trust = "shuffled"',
        "A shuffler helps at a delta above 0 only: 1e-6, say.",
    ),
    DELTA_IS_RESOLVED,
    Rule(
        "privacy.delta",
        lambda v: publishes_one(v["privacy.delta"], v.clients),
        lambda v: f"must be below 1/clients = {1 / (v.clients or 1):.3g}",
        "With more, publishing one client in full would be allowed. 0 is pure epsilon-DP.",
    ),
)


def _compares(v: StatisticsValues, trust: str) -> bool:
    return trust in (v["compare.trusts"] or ())


def _needs_trust(trust: str) -> Rule[StatisticsValues]:
    return Rule(
        f"compare.{trust}",
        lambda v: bool(v[f"compare.{trust}"]) and not _compares(v, trust),
        f'has no effect: trust "{trust}" is not compared',
        "Remove it.",
        shown=False,
    )


def _has_mechanisms(trust: str) -> Check[StatisticsValues]:
    """Refuses mechanisms to compare that one of the queries does not have."""

    def unknown(v: StatisticsValues) -> Iterator[Finding]:
        for place, mechanism in enumerate(v[f"compare.{trust}"] or ()):
            for name, query in v.queries.items():
                known = [str(word) for word in get_args(type(query).model_fields[trust].annotation)]
                if mechanism not in known:
                    yield Finding(
                        ("compare", trust, place),
                        f"query {name} ({query.kind}) has no such {trust} mechanism",
                        suggestion(mechanism, known, quoted=True),
                        literal(mechanism),
                    )

    return Check(unknown)


COMPARE_RULES: tuple[Entry[StatisticsValues], ...] = (
    Rule(
        "compare.clients",
        lambda v: bool(v["compare.clients"]) and v["data.name"] == "npz",
        "the data have the clients that they have",
        "Remove it.",
        shown=False,
    ),
    Rule(
        "compare.trusts",
        lambda v: (
            any(_compares(v, trust) for trust in BY_CLIENTS)
            and v["privacy.adjacency"] not in (None, "replace-one")
        ),
        lambda v: (
            f'answers of clients are protected under replace-one alone, not under "{v["privacy.adjacency"]}"'
        ),
        'Leave out "local" and "shuffled", or set privacy.adjacency = "replace-one".',
        shown=False,
    ),
    Rule(
        "compare.trusts",
        lambda v: _compares(v, "shuffled") and not v["privacy.delta"],
        "a shuffler helps at a delta above 0 only",
        'Set privacy.delta = 1e-6, say, or leave out "shuffled".',
        shown=False,
    ),
    Rule(
        "compare.clients",
        lambda v: v["compare.clients"] is not None and publishes_one(v["privacy.delta"], v.most_compared),
        lambda v: f"{v.most_compared} clients are too many for delta",
        lambda v: f"delta = {v['privacy.delta']:g} must be below 1/clients of each cell.",
        shown=False,
    ),
    _needs_trust("local"),
    _has_mechanisms("local"),
    _needs_trust("central"),
    _has_mechanisms("central"),
)


def _of_queries(v: StatisticsValues) -> Iterator[Finding]:
    for name, query in v.queries.items():
        yield from beneath(("queries", name), broken_rules(QUERY_RULES, QueryValues(query, v)))


STATISTICS_RULES: tuple[Entry[StatisticsValues], ...] = (
    *DATA_RULES,
    *PRIVACY_RULES,
    *COMPARE_RULES,
    Check(_of_queries),
)
