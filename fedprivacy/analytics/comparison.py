"""Statistics under each trust model, side by side: errors over repeats, and how they fall with clients."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedprivacy.analytics.results import CHOICES
from fedprivacy.comparison import interval

SHOWN = 200  # categories of a query of which a comparison keeps every estimate
NAMED = 2  # queries that a finding names
INTERVAL = "95 % t-interval over the repeats"
# Fourth moment over squared variance: of the Laplace law that a server draws from, and of the normal law that
# the sum of many clients' noise comes near.
KURTOSIS = {"central": 6.0, "local": 3.0}
Results = Sequence[Mapping[str, Any]]  # of one query, one for each repeat


def summary(results: Results) -> dict[str, Any]:
    """The repeats of one query in one cell.

    Args:
        results: As `brief` has them, one for each seed.

    Returns:
        `error`, the mean of the repeats' errors with its interval; `rmse`, the root of the mean of their
        squares; `covered`, the share of the repeats whose interval holds the true value; `within_bound`, the
        share within the promised bound; of choices `right`, how often a best one was made, and `score`, what
        was chosen on average, beside the `best`; and the first repeat's answer.
    """
    first = results[0]
    errors = [one["error"] for one in results if one["error"] is not None]
    return {
        **{key: first[key] for key in ("name", "kind", "mechanism", "noise", "measure", "bound")},
        "error": interval(errors, math.inf) if errors else None,
        "rmse": math.sqrt(sum(error**2 for error in errors) / len(errors)) if errors else None,
        "covered": _covered(results),
        "within_bound": _within(results),
        "right": _right(results),
        "score": interval([one["score"] for one in results], math.inf) if "score" in first else None,
        "best": first.get("best"),
        "scored": first.get("scored"),
        "answer": {key: first.get(key) for key in ("labels", "estimate", "low", "high", "true")},
    }


def _covered(results: Results) -> float | None:
    """How often an interval holds the true value, over all repeats and categories that have one."""
    held, known = (sum(one["held"][place] for one in results) for place in (0, 1))
    return held / known if known else None


def brief(result: Mapping[str, Any]) -> dict[str, Any]:
    """One repeat's result as a comparison keeps it: without the categories beyond `SHOWN`.

    Returns:
        The result, with `held`: how many of its intervals hold the true value, and of how many.
    """
    held = [
        low <= true <= high
        for low, true, high in zip(*(_listed(result[key]) for key in ("low", "true", "high")), strict=False)
        if None not in (low, true, high)
    ]
    short = {key: value[:SHOWN] if isinstance(value, list) else value for key, value in result.items()}
    return {**short, "held": (sum(held), len(held))}


def _within(results: Results) -> float | None:
    if results[0]["bound"] is None or results[0]["kind"] == "quantile":
        return None  # a quantile's error is a share of the clients, whose number the results lack
    missed = [one["best"] - one["score"] if "score" in one else one["error"] for one in results]
    # A hair more, for what rounding adds to a revenue.
    held = [miss <= one["bound"]["at_most"] * (1 + 1e-9) for miss, one in zip(missed, results, strict=True)]
    return sum(held) / len(held)


def _right(results: Results) -> float | None:
    """How often a best choice was made."""
    if results[0]["kind"] not in ("most-common", "best-price"):
        return None
    return sum(one["error"] == 0 for one in results) / len(results)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def slopes(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How the root mean squared error of each query falls with the number of clients n: as n^slope.

    Args:
        cells: With `trust`, `asked`, `epsilon`, `clients`, `repeats` and `queries` (`summary`).

    Returns:
        One for each trust model, mechanism, query of numbers and epsilon with several n (that a choice is
        wrong gets rarer faster than any power of n): the slope of a line through the logarithms, and its
        95 % interval (a mean squared error over r repeats is off by a factor 1 +- sqrt((k - 1)/r), where k is
        the `KURTOSIS` of one error).
    """
    groups: dict[tuple[Any, ...], list[tuple[float, float, int]]] = {}
    for cell in cells:
        for query in cell["queries"]:
            if query["rmse"] and query["kind"] not in CHOICES:
                key = (cell["trust"], cell["asked"], query["name"], cell["epsilon"])
                groups.setdefault(key, []).append((cell["clients"], query["rmse"], cell["repeats"]))
    found = []
    for (trust, asked, name, epsilon), points in groups.items():
        if len({clients for clients, _, _ in points}) < 2 or trust == "none":
            continue
        clients, errors, repeats = (np.array(values, dtype=float) for values in zip(*points, strict=True))
        x = np.log(clients) - np.log(clients).mean()
        slope = float(x @ np.log(errors) / (x @ x))
        variances = (KURTOSIS[trust] - 1) / (4 * repeats)  # of the logarithm of a root mean squared error
        half = 1.96 * math.sqrt(float((x**2 * variances).sum())) / float(x @ x)
        found.append(
            {
                "trust": trust,
                "mechanism": asked,
                "query": name,
                "epsilon": epsilon,
                "slope": slope,
                "low": slope - half,
                "high": slope + half,
            }
        )
    return found


def slope_by_trust(found: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """The mean slope under each trust model; None where the number of clients does not vary."""
    trusts = dict.fromkeys(one["trust"] for one in found)
    means = {
        trust: float(np.mean([one["slope"] for one in found if one["trust"] == trust])) for trust in trusts
    }
    return means or None


def finding(cells: Sequence[Mapping[str, Any]], slope: Mapping[str, float] | None) -> str:
    """What the comparison shows, in a few sentences: the largest epsilon, and its most clients."""
    private = [cell for cell in cells if cell["trust"] != "none"]
    if not private:
        return "Only exact answers were asked for: there is nothing to compare."
    # Of a comparison that was broken off, the largest epsilon may not have all numbers of clients.
    epsilon, clients = max((cell["epsilon"], cell["clients"]) for cell in private)
    here = [cell for cell in private if (cell["epsilon"], cell["clients"]) == (epsilon, clients)]
    queries = here[0]["queries"]
    sentences = []
    for query in queries[:NAMED]:
        own = [next(one for one in cell["queries"] if one["name"] == query["name"]) for cell in here]
        said = [
            f"{_result(one)} under {arm_words(cell)}"
            for cell, one in zip(here, own, strict=True)
            if one["error"] is not None
        ]
        if said:
            what = "how often the best was chosen" if query["right"] is not None else query["measure"]
            sentences.append(f"{query['name']}, {what}: {', '.join(said)}.")
    if len(queries) > NAMED:
        sentences.append(f"The report has the other {len(queries) - NAMED}.")
    terms = f"At epsilon {epsilon:g} and {clients:,} clients, on average over the repeats: "
    text = terms + " ".join(sentences)
    if slope:
        falls = " and ".join(f"n^{value:.2f} under {trust} trust" for trust, value in slope.items())
        text += f" With the number n of clients the error goes as {falls}."
    return text


def _result(query: Mapping[str, Any]) -> str:
    """A mean error, or of choices how often they were right and what they lost."""
    mean = query["error"]["mean"]
    error = f"{mean:,.0f}" if mean >= 1000 else re.sub("e-0*", "e-", f"{mean:.3g}")
    if query["right"] is None:
        return error
    lost = "" if mean == 0 else f" ({100 * mean:.2g} % lost)"
    return f"{100 * query['right']:.0f} %{lost}"


def arm_words(cell: Mapping[str, Any]) -> str:
    """The trust model of a cell, with the mechanism that it was asked for."""
    return f"{cell['trust']} trust" + (f" with {cell['asked']}" if cell["asked"] else "")
