"""Statistics under each trust model, side by side: errors over repeats, and how they fall with clients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedprivacy.analytics.results import CHOICES
from fedprivacy.comparison import interval

SHOWN = 200  # categories of a query of which a comparison keeps every estimate
INTERVAL = "95 % t-interval over the repeats"
Results = Sequence[Mapping[str, Any]]  # of one query, one for each repeat


def summary(results: Results) -> dict[str, Any]:
    """The repeats of one query in one cell.

    Args:
        results: As `brief` has them, one for each seed.

    Returns:
        `error`, the mean of the repeats' errors with its interval; `rmse`, the root of the mean of their
        squares; `spread`, the standard deviation of these squares over their mean; `covered`, the share of
        the repeats whose interval holds the true value; `within_bound`, the share within the promised bound;
        of choices `right`, how often a best one was made, and `score`, what was chosen on average, beside the
        `best`; and the first repeat's answer.
    """
    first = results[0]
    errors = [one["error"] for one in results if one["error"] is not None]
    squares = np.square(errors)
    mean = float(squares.mean()) if errors else 0.0
    return {
        **{key: first[key] for key in ("name", "kind", "mechanism", "noise", "measure", "bound")},
        "error": interval(errors, math.inf) if errors else None,
        "rmse": math.sqrt(mean) if errors else None,
        "spread": float(squares.std()) / mean if mean else None,
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
        95 % interval. A mean square over r repeats is off by a factor 1 +- spread/sqrt(r); the spread is
        sqrt(2) for normal errors, the least that is taken, and sqrt(5) for Laplace errors.
    """
    groups: dict[tuple[Any, ...], list[tuple[float, float, float]]] = {}
    for cell in cells:
        for query in cell["queries"]:
            if query["rmse"] and query["kind"] not in CHOICES:
                key = (cell["trust"], cell["asked"], query["name"], cell["epsilon"])
                doubt = max(query["spread"], math.sqrt(2)) ** 2 / (4 * cell["repeats"])
                groups.setdefault(key, []).append((cell["clients"], query["rmse"], doubt))
    found = []
    for (trust, asked, name, epsilon), points in groups.items():
        if len({clients for clients, _, _ in points}) < 2 or trust == "none":
            continue
        clients, errors, doubts = (np.array(values, dtype=float) for values in zip(*points, strict=True))
        x = np.log(clients) - np.log(clients).mean()
        slope = float(x @ np.log(errors) / (x @ x))
        half = 1.96 * math.sqrt(float((x**2 * doubts).sum())) / float(x @ x)
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
    """What the comparison shows, in a few sentences: the largest epsilon and the most clients."""
    private = [cell for cell in cells if cell["trust"] != "none"]
    if not private:
        return "Only exact answers were asked for: there is nothing to compare."
    epsilon, clients = max(cell["epsilon"] for cell in private), max(cell["clients"] for cell in private)
    here = [cell for cell in private if (cell["epsilon"], cell["clients"]) == (epsilon, clients)]
    sentences = []
    for query in here[0]["queries"]:
        said = []
        for cell in here:
            own = next(one for one in cell["queries"] if one["name"] == query["name"])
            if own["error"] is not None:
                right = (
                    "" if own["right"] is None else f" (right in {100 * own['right']:.0f} % of the repeats)"
                )
                said.append(f"{own['error']['mean']:.3g} under {arm_words(cell)}{right}")
        if said:
            sentences.append(f"{query['name']}, {query['measure']}: {', '.join(said)}.")
    terms = f"At epsilon {epsilon:g} and {clients:,} clients, on average over the repeats: "
    text = terms + " ".join(sentences)
    if slope:
        falls = " and ".join(f"n^{value:.2f} under {trust} trust" for trust, value in slope.items())
        text += f" With the number n of clients the error falls as {falls}."
    return text


def arm_words(cell: Mapping[str, Any]) -> str:
    """The trust model of a cell, with the mechanism that it was asked for."""
    return f"{cell['trust']} trust" + (f" with {cell['asked']}" if cell["asked"] else "")
