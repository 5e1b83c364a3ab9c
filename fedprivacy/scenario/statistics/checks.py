"""What must hold between the keys of a statistics scenario, beyond the type and range of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.scenario.delta import DELTA_IS_RESOLVED
from fedprivacy.scenario.statistics.data import MAX_CELLS

Parts = Mapping[str, Any]


def findings(parts: Parts, columns: tuple[str, ...] | None, clients: int | None) -> Iterator[Finding]:
    """All mistakes between valid sections.

    Args:
        parts: The valid sections by name; `queries` is a dict of the valid queries.
        columns: The columns of the data, or None where they are not known.
        clients: The number of clients, or None where it is not known.
    """
    yield from _data(parts.get("data"))
    yield from _privacy(parts.get("privacy"), clients)
    yield from _compare(parts)
    for name, query in parts.get("queries", {}).items():
        for key, what, remedy in (*_categories(query, parts.get("data")), *_bounds(query)):
            yield Finding(("queries", name, key), what, remedy)
        if query.central == "discrete-laplace" and _in_shares(parts.get("data")):
            yield Finding(
                ("queries", name, "central"),
                "needs whole totals, and clients of several records answer with shares of them",
                'Set central = "laplace".',
                literal(query.central),
            )
        for key in ("column", "by"):
            column = getattr(query, key, None)
            if columns is not None and column is not None and column not in columns:
                remedy = suggestion(column, columns, quoted=True)
                yield Finding(("queries", name, key), "the data have no such column", remedy, literal(column))


def _in_shares(data: Any) -> bool:
    """Whether a client may own several records."""
    if data is None or data.name == "npz":
        return data is not None and data.owner == "user"
    return data.name == "categories" and data.each > 1


def _data(data: Any) -> Iterator[Finding]:
    if data is None:
        return
    if data.name == "categories":
        by_law = data.categories is not None or data.exponent is not None
        if (data.shares is not None) == by_law:
            remedy = "Give shares = [...], or else categories and exponent."
            yield Finding(("data", "shares" if data.shares else "categories"), "one law is needed", remedy)
        elif data.shares is None and (data.categories is None or data.exponent is None):
            key = "exponent" if data.exponent is None else "categories"
            yield Finding(("data", key), "missing", f"Add {key} = {'1.0' if key == 'exponent' else '100'}.")
        elif data.shares is not None and not sum(data.shares) > 0:
            yield Finding(("data", "shares"), "all shares are 0", "At least one must be above 0.")
    if data.name == "numbers":
        given, other = ("median", "spread"), ("low", "high")
        if data.law == "uniform":
            given, other = other, given
        for key in given:
            if getattr(data, key) is None:
                yield Finding(
                    ("data", key), "missing", f'law = "{data.law}" needs {given[0]} and {given[1]}.'
                )
        for key in other:
            if getattr(data, key) is not None:
                yield Finding(("data", key), f'has no effect with law = "{data.law}"', "Remove it.")
        if data.law == "uniform" and data.low is not None and data.high is not None and data.low >= data.high:
            yield Finding(("data", "low"), f"must be below high = {data.high:g}", "", literal(data.low))


def _privacy(privacy: Any, clients: int | None) -> Iterator[Finding]:
    if privacy is None:
        return
    if privacy.trust == "local" and privacy.adjacency != "replace-one":
        yield Finding(
            ("privacy", "adjacency"),
            "local answers are protected under replace-one alone: the server sees who answers",
            'Set adjacency = "replace-one".',
            literal(privacy.adjacency),
        )
    if privacy.shuffled and not privacy.delta:
        remedy = "A shuffler helps at a delta above 0 only: 1e-6, say."
        yield Finding(("privacy", "delta"), "must be above 0 with shuffled = true", remedy, "0.0")
    yield from DELTA_IS_RESOLVED.findings({"privacy.delta": privacy.delta})
    if privacy.delta and clients is not None and privacy.delta >= 1 / clients:
        yield Finding(
            ("privacy", "delta"),
            f"must be below 1/clients = {1 / clients:.3g}",
            "With more, publishing one client in full would be allowed. 0 is pure epsilon-DP.",
            literal(privacy.delta),
        )


def _compare(parts: Parts) -> Iterator[Finding]:
    compare, data, queries = (parts.get(name) for name in ("compare", "data", "queries"))
    if compare is None:
        return
    if compare.clients and data is not None and data.clients is None:
        yield Finding(("compare", "clients"), "the data have the clients that they have", "Remove it.")
    privacy = parts.get("privacy")
    if privacy is not None and "local" in compare.trusts and privacy.adjacency != "replace-one":
        yield Finding(
            ("compare", "trusts"),
            f'local answers are protected under replace-one alone, not under "{privacy.adjacency}"',
            'Leave out "local", or set privacy.adjacency = "replace-one".',
        )
    most = max(compare.clients, default=1)
    if privacy is not None and privacy.delta and privacy.delta >= 1 / most:
        remedy = f"delta = {privacy.delta:g} must be below 1/clients of each cell."
        yield Finding(("compare", "clients"), f"{most} clients are too many for delta", remedy)
    for trust in ("local", "central"):
        if getattr(compare, trust) and trust not in compare.trusts:
            yield Finding(("compare", trust), f'has no effect: trust "{trust}" is not compared', "Remove it.")
        for place, mechanism in enumerate(getattr(compare, trust)):
            for name, query in (queries or {}).items():
                known = [str(word) for word in get_args(type(query).model_fields[trust].annotation)]
                if mechanism not in known:
                    yield Finding(
                        ("compare", trust, place),
                        f"query {name} ({query.kind}) has no such {trust} mechanism",
                        suggestion(mechanism, known, quoted=True),
                        literal(mechanism),
                    )


def _categories(query: Any, data: Any) -> Iterator[tuple[str, str, str]]:
    if "first" not in type(query).model_fields:
        return
    if query.edges is not None:
        for key in ("first", "last"):
            if getattr(query, key) is not None:
                yield key, "has no effect beside edges", "Remove it."
        if any(b <= a for a, b in zip(query.edges, query.edges[1:], strict=False)):
            yield "edges", "must rise", "Each edge is above the one before."
        cells = len(query.edges) + 1
    elif query.first is None and query.last is None and data is not None and data.name == "categories":
        cells = len(data.shares) if data.shares else data.categories or 0
    elif data is None and query.first is None and query.last is None:
        return  # what is wrong with the data is said there
    elif query.first is None or query.last is None:
        yield "last" if query.last is None else "first", "missing", "Add first and last, or edges = [...]."
        return
    else:
        cells = query.last - query.first + 1
        if not 2 <= cells <= MAX_CELLS:
            yield (
                "last",
                f"must be from first + 1 to first + {MAX_CELLS - 1}",
                "Categories are whole numbers.",
            )
            return
    if query.names is not None and len(query.names) != cells:
        yield "names", f"{len(query.names)} names for {cells} categories", "Give each one a name."


def _bounds(query: Any) -> Iterator[tuple[str, str, str]]:
    fields = type(query).model_fields
    if "equals" in fields and query.equals is not None and query.above is not None:
        yield "above", "one way to say yes is enough", "Leave out equals or above."
    if query.kind in ("mean", "quantile") and not query.low < query.high:
        yield "low", f"must be below high = {query.high:g}", "They bound what a client may answer."
    if query.kind in ("mean", "quantile") and not math.isfinite(query.high - query.low):
        yield "high", "too far from low", "Choose bounds that people can have."
    if query.kind == "best-price" and any(
        b <= a for a, b in zip(query.prices, query.prices[1:], strict=False)
    ):
        yield "prices", "must rise", "Each price is above the one before."
