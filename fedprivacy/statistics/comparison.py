"""Compares statistics over trust models: errors over repeats, and their slope over clients."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fedprivacy.documents.answers import Answer, Repeats
from fedprivacy.records.seed_statistics import interval
from fedprivacy.statistics.results import CHOICES

SHOWN = 200  # categories of a query of which a comparison keeps every estimate
SHARES = ("mean-of-bits", "share-by-group")  # their errors are in percentage points
NAMED = 2  # queries that a finding names
INTERVAL = "95 % t-interval over the repeats"
# Fourth moment over squared variance: of the Laplace law that a server draws from, and of the normal law that
# the sum of many clients' noise comes near.
KURTOSIS = {"central": 6.0, "local": 3.0, "shuffled": 3.0}
AGAINST = {
    "shuffled": "under shuffled trust against the analyst behind the shuffler, and not against the shuffler",
    "local": "under local trust also against the server",
    "central": "under central trust only against those who see what is published",
}
LARGEST = ("histogram", "share-by-group")  # kinds whose error is the largest of several
Results = Sequence[Mapping[str, Any]]  # of one query, one for each repeat


def summary(results: Results) -> dict[str, Any]:
    """The repeats of one query in one cell.

    Args:
        results: As `brief` returns them, one for each seed.

    Returns:
        `error`, the mean of the repeats' errors with its interval; `rmse`, the root of the mean of their
        squares; `told`, the share of answers with an estimate over all repeats and groups, since errors are
        of those alone; `covered`, the share of the intervals that contain the true value; `within_bound`, the
        share of repeats within the bound; for choices `right`, the share of best choices, and `score`, the
        mean score of the choice, beside the `best`; and the first repeat's answer.
    """
    first = results[0]
    errors = [result["error"] for result in results if result["error"] is not None]
    return Repeats.new(
        **{key: first[key] for key in ("name", "kind", "mechanism", "noise", "measure", "bound")},
        error=interval(errors, math.inf) if errors else None,
        rmse=math.sqrt(sum(error**2 for error in errors) / len(errors)) if errors else None,
        told=_part(results, "told"),
        covered=_part(results, "held"),
        within_bound=_within(results),
        right=_right(results),
        score=interval([result["score"] for result in results], math.inf) if "score" in first else None,
        best=first.get("best"),
        scored=first.get("scored"),
        answer=Answer.new(**{key: first.get(key) for key in ("labels", "estimate", "low", "high", "true")}),
    ).to_json()


def _part(results: Results, key: str) -> float | None:
    """The share over all repeats and all selected answers."""
    times, of = (sum(result[key][place] for result in results) for place in (0, 1))
    return times / of if of else None


def brief(result: Mapping[str, Any]) -> dict[str, Any]:
    """One repeat's result as a comparison stores it: without the categories beyond `SHOWN`.

    Returns:
        The result, with `held`: the number of its intervals that contain the true value, out of how many; and
        `told`: the number of estimates, out of the answers that have a true value.
    """
    columns = [
        estimate is not None
        for estimate, true in zip(*(_listed(result[key]) for key in ("estimate", "true")), strict=True)
        if true is not None
    ]
    held = [
        low <= true <= high
        for low, true, high in zip(*(_listed(result[key]) for key in ("low", "true", "high")), strict=False)
        if None not in (low, true, high)
    ]
    short = {key: value[:SHOWN] if isinstance(value, list) else value for key, value in result.items()}
    return {**short, "held": (sum(held), len(held)), "told": (sum(columns), len(columns))}


def _within(results: Results) -> float | None:
    if results[0]["bound"] is None or results[0]["kind"] == "quantile":
        return None  # a quantile's error is a share of the clients, whose number the results lack
    missed = [
        result["best"] - result["score"] if "score" in result else result["error"] for result in results
    ]
    # A hair more, for what rounding adds to a revenue.
    held = [
        miss <= result["bound"]["at_most"] * (1 + 1e-9) for miss, result in zip(missed, results, strict=True)
    ]
    return sum(held) / len(held)


def _right(results: Results) -> float | None:
    """The share of repeats in which a best choice was made."""
    if results[0]["kind"] not in ("most-common", "best-price"):
        return None
    return sum(result["error"] == 0 for result in results) / len(results)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def slopes(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The exponent with which each query's root mean squared error falls in the number of clients n.

    Args:
        cells: With `trust`, `asked`, `epsilon`, `clients`, `repeats` and `queries` (`summary`).

    Returns:
        One for each trust model, mechanism, query of numbers and epsilon with several n (the error of a
        choice falls faster than any power of n): the slope of a line through the logarithms, and its 95 %
        interval (a mean squared error over r repeats is off by a factor 1 +- sqrt((k - 1)/r), where k is the
        `KURTOSIS` of one error). The interval holds for one signed error: the largest error of several, and
        errors of answers with an estimate alone, have no interval. An error of exactly 0 has no logarithm,
        and a line through the other points would be biased: it has no slope.
    """
    groups: dict[tuple[Any, ...], list[tuple[float, float, int, float]]] = {}
    for cell in cells:
        for query in cell["queries"]:
            if query["rmse"] is not None and query["kind"] not in CHOICES:
                key = (cell["trust"], cell["asked"], query["name"], query["kind"], cell["epsilon"])
                point = (cell["clients"], query["rmse"], cell["repeats"], query["told"])
                groups.setdefault(key, []).append(point)
    fitted = []
    for (trust, mechanism, name, kind, epsilon), points in groups.items():
        clients, errors, repeats, released = (
            np.array(each, dtype=float) for each in zip(*points, strict=True)
        )
        if len(set(clients)) < 2 or trust == "none" or not errors.all():
            continue
        x = np.log(clients) - np.log(clients).mean()
        slope = float(x @ np.log(errors) / (x @ x))
        low = high = None
        if kind not in LARGEST and (released == 1).all():
            variances = (KURTOSIS[trust] - 1) / (4 * repeats)  # of the logarithm of a root mean squared error
            half = 1.96 * math.sqrt(float((x**2 * variances).sum())) / float(x @ x)
            low, high = slope - half, slope + half
        fitted.append(
            {
                "trust": trust,
                "mechanism": mechanism,
                "query": name,
                "kind": kind,
                "epsilon": epsilon,
                "slope": slope,
                "low": low,
                "high": high,
            }
        )
    return fitted


def slope_by_trust(rows: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """The mean slope under each trust model.

    Returns:
        None where the number of clients does not vary, or where the queries are of several kinds: the error
        of a share falls where that of a count grows, and their mean is meaningless.
    """
    if len({row["kind"] for row in rows}) != 1:
        return None
    return {
        trust: float(np.mean([row["slope"] for row in rows if row["trust"] == trust]))
        for trust in dict.fromkeys(row["trust"] for row in rows)
    }


def finding(
    cells: Sequence[Mapping[str, Any]], slope_rows: Sequence[Mapping[str, Any]], privacy: Mapping[str, Any]
) -> str:
    """Summarises the comparison in a few sentences: the largest epsilon, and its most clients.

    Args:
        cells: As for `slopes`.
        slope_rows: Their `slopes`.
        privacy: The scenario's section, with `unit`, `adjacency` and a `delta` unless that is 0: the terms of
            every epsilon.
    """
    private = [cell for cell in cells if cell["trust"] != "none"]
    if not private:
        return "Only exact answers were requested: there is nothing to compare."
    # Of a comparison that was broken off, the largest epsilon may not have all numbers of clients.
    epsilon, clients = max((cell["epsilon"], cell["clients"]) for cell in private)
    here = [cell for cell in private if (cell["epsilon"], cell["clients"]) == (epsilon, clients)]
    queries = here[0]["queries"]
    sentences = []
    for query in queries[:NAMED]:
        results = [
            next(result for result in cell["queries"] if result["name"] == query["name"]) for cell in here
        ]
        parts = [
            f"{_result(result)} under {arm_words(cell)}"
            for cell, result in zip(here, results, strict=True)
            if result["error"] is not None
        ]
        if parts:
            what = "how often the best was chosen" if query["right"] is not None else query["measure"]
            sentences.append(f"{query['name']}, {what}: {', '.join(parts)}.")
    if len(queries) > NAMED:
        sentences.append(f"The report has the other {len(queries) - NAMED}.")
    terms = f"At epsilon {epsilon:g} and {clients:,} clients, on average over the repeats: "
    text = terms + " ".join(sentences)
    text += _falls(slope_rows, [query["name"] for query in queries])
    return f"{text} {_epsilon_terms(privacy, dict.fromkeys(cell['trust'] for cell in private))}"


def _epsilon_terms(privacy: Mapping[str, Any], trusts: Iterable[str]) -> str:
    """The delta and adjacency of an epsilon, and its observer under each trust model."""
    terms = f"delta {privacy.get('delta', 0):g}, unit {privacy['unit']}, adjacency {privacy['adjacency']}"
    return f"Each epsilon, of all queries together: {terms}, {'; '.join(AGAINST[t] for t in trusts)}."


def _falls(slope_rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """The slopes of the first queries in words, each averaged over its mechanisms and epsilons."""
    sentences = []
    for name in names[:NAMED]:
        by_trust = slope_by_trust([row for row in slope_rows if row["query"] == name])
        if by_trust:
            falls = " and ".join(f"n^{value:.2f} under {trust} trust" for trust, value in by_trust.items())
            sentences.append(f"the error{f' of {name}' if len(names) > 1 else ''} goes as {falls}")
    return f" With the number n of clients {'; '.join(sentences)}." if sentences else ""


def _result(query: Mapping[str, Any]) -> str:
    """A mean error; for choices the share of best ones and the loss."""
    mean, share = query["error"]["mean"], query["kind"] in SHARES
    shown = 100 * mean if share else mean
    error = f"{shown:,.0f}" if shown >= 1000 else re.sub("e-0*", "e-", f"{shown:.3g}")
    error += " points" * share
    if query["right"] is None:
        released = query["told"]
        return error if released is None or released == 1 else f"{error} ({100 * released:.3g} % released)"
    lost = "" if mean == 0 else f" ({100 * mean:.2g} % lost)"
    return f"{100 * query['right']:.0f} %{lost}"


def arm_words(cell: Mapping[str, Any]) -> str:
    """The trust model of a cell, with the requested mechanism."""
    return f"{cell['trust']} trust" + (f" with {cell['asked']}" if cell["asked"] else "")
