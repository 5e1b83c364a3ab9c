"""From what was released to the answer: an estimate, its interval, and in a simulation its true error."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedprivacy.analytics.plan import Ask
from fedprivacy.analytics.questions import Question, Vector, labels
from fedprivacy.analytics.releasing import Released, buyers, scores_of
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax

CONFIDENCE = 0.95
COVERS = "the mechanism's own noise, for the clients that answered; not who was asked"
MEASURES = {
    "mean-of-bits": "absolute error",
    "count": "absolute error",
    "mean": "absolute error",
    "histogram": "largest absolute error of any category",
    "share-by-group": "largest absolute error of any group",
    "quantile": "largest error in rank, as a share of the clients",
    "most-common": "clients fewer than in the most common category, as a share of all",
    "best-price": "revenue lost, as a share of the best",
}

# What a choice is judged by.
SCORES = {"most-common": "clients in the category", "best-price": "revenue"}


def result(ask: Ask, released: Released, clients: int) -> dict[str, Any]:
    """The answer to one query.

    Args:
        ask: The query.
        released: What was published.
        clients: How many were asked; where that is private it is not used.

    Returns:
        A JSON object with `estimate`, `low` and `high` (of a list each, where there are several) and
        `bound`, what the mechanism promises beside the interval.
    """
    question = ask.question
    mechanism = ask.mechanism
    answer = _ANSWERS.get(question.kind, _number)(question, released, clients)
    promised = _promised(ask, released)
    return {
        "name": question.name,
        "kind": question.kind,
        "mechanism": None if mechanism is None else mechanism.name,
        "noise": None if mechanism is None else mechanism.words,
        **answer,
        "confidence": CONFIDENCE,
        "covers": COVERS,
        "bound": promised,
    }


def _number(question: Question, released: Released, clients: int) -> dict[str, Any]:
    assert released.totals is not None
    total, half = float(released.totals[0]), float(released.half_width(CONFIDENCE)[0])
    if question.kind == "count":
        return _interval(total, half)
    if len(released.totals) == 2:  # the number of clients is private: it is estimated too
        size = float(released.totals.sum())
        share = total / size if size > 0 else None
        doubt = half * float(np.hypot(share, 1 - share)) / size if share is not None else None
        scale, low = _scale(question)
        if share is None or doubt is None or half >= size:
            return {"estimate": None, "low": None, "high": None}
        return _interval(low + scale * share, scale * doubt)
    scale, low = _scale(question)
    return _interval(low + scale * total / clients, scale * half / clients)


def _scale(question: Question) -> tuple[float, float]:
    if question.kind != "mean":
        return 1.0, 0.0
    return question.query.high - question.query.low, question.query.low


def _interval(estimate: float, half: float) -> dict[str, Any]:
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half}


def _histogram(question: Question, released: Released, clients: int) -> dict[str, Any]:
    assert released.totals is not None
    half = released.half_width(CONFIDENCE)
    return {
        "labels": labels(question),
        "estimate": released.totals.tolist(),
        "low": (released.totals - half).tolist(),
        "high": (released.totals + half).tolist(),
    }


def _by_group(question: Question, released: Released, clients: int) -> dict[str, Any]:
    """Yes over yes and no, by the delta method; None where a group is too small to tell from none."""
    assert released.totals is not None
    half = released.half_width(CONFIDENCE)
    rows: list[tuple[float | None, float | None, float | None]] = []
    for no, yes, no_half, yes_half in zip(
        released.totals[::2], released.totals[1::2], half[::2], half[1::2], strict=True
    ):
        size, doubt = no + yes, float(np.hypot(no_half, yes_half))
        if size <= doubt or size <= 0:
            rows.append((None, None, None))
            continue
        share = min(max(yes / size, 0.0), 1.0)
        width = float(np.hypot((1 - share) * yes_half, share * no_half)) / size
        rows.append((share, max(share - width, 0.0), min(share + width, 1.0)))
    estimate, low, high = zip(*rows, strict=True)
    return {"labels": labels(question), "estimate": list(estimate), "low": list(low), "high": list(high)}


def _chosen(question: Question, released: Released) -> list[int]:
    """What was chosen, or what the published totals make look best."""
    if released.totals is None:
        return list(released.chosen)
    if question.kind == "quantile":
        ranks = np.maximum.accumulate(np.cumsum(released.totals))
        return [_first_at(ranks, share * float(released.totals.sum())) for share in question.query.quantiles]
    return [int(np.argmax(scores(released.totals))) for scores in scores_of(question)]


def _first_at(ranks: Vector, rank: float) -> int:
    return min(int(np.searchsorted(ranks, rank)), len(ranks) - 1)


def _quantile(question: Question, released: Released, clients: int) -> dict[str, Any]:
    chosen, low, high = _chosen(question, released), None, None
    if released.totals is not None:
        ranks = np.maximum.accumulate(np.cumsum(released.totals))
        half = np.sqrt(np.cumsum(released.half_width(CONFIDENCE) ** 2))
        wanted = [share * float(released.totals.sum()) for share in question.query.quantiles]
        low = [float(question.edges[_first_at(ranks + half, rank)]) for rank in wanted]
        high = [
            float(question.edges[_first_at(np.maximum.accumulate(ranks - half), rank)]) for rank in wanted
        ]
    return {
        "labels": [f"{share:g}" for share in question.query.quantiles],
        "estimate": [float(question.edges[place]) for place in chosen],
        "low": low,
        "high": high,
    }


def _most_common(question: Question, released: Released, clients: int) -> dict[str, Any]:
    [place] = _chosen(question, released)
    return {"labels": labels(question), "estimate": labels(question)[place], "low": None, "high": None}


def _best_price(question: Question, released: Released, clients: int) -> dict[str, Any]:
    [place] = _chosen(question, released)
    return {"estimate": question.query.prices[place], "low": None, "high": None}


_ANSWERS = {
    "histogram": _histogram,
    "share-by-group": _by_group,
    "quantile": _quantile,
    "most-common": _most_common,
    "best-price": _best_price,
}


def _promised(ask: Ask, released: Released) -> dict[str, Any] | None:
    """What the mechanism promises of the whole answer, with which probability."""
    question, mechanism = ask.question, ask.mechanism
    if question.kind == "histogram" and mechanism is not None:
        largest = float(released.half_width(CONFIDENCE, question.cells).max())
        return {"what": "largest error of any category", "at_most": largest, "probability": CONFIDENCE}
    if isinstance(mechanism, ExponentialMechanism | NoisyMax):
        candidates = question.cells - (question.kind == "best-price")
        beta = (1 - CONFIDENCE) / ask.times
        what = {
            "quantile": "clients between the answer's rank and the wanted one",
            "best-price": "revenue below the best",
        }.get(question.kind, "clients fewer than in the most common category")
        if question.kind == "quantile":
            what += ", beyond what the best candidate misses"
        return {
            "what": what,
            "at_most": float(mechanism.utility_bound(candidates, beta)),
            "probability": CONFIDENCE,
        }
    return None


def truth(question: Question, answer: dict[str, Any], exact: Vector, clients: int) -> dict[str, Any]:
    """What only a simulation knows: the true answer, and how far off the published one is.

    Of a choice also its `score` and that of the `best` one, and what is `scored`: clients, or revenue.

    Args:
        question: The query.
        answer: Its `result`.
        exact: The exact totals over all clients.
        clients: How many there are.
    """
    exactly = Released(exact, np.zeros(len(exact)))
    true = _ANSWERS.get(question.kind, _number)(question, exactly, clients)["estimate"]
    told = {"true": true, "error": _error(question, answer, true, exact), "measure": MEASURES[question.kind]}
    if question.kind not in SCORES:
        return told
    score, best = _scores(question, answer, exact)
    return {**told, "score": score, "best": best, "scored": SCORES[question.kind]}


def _scores(question: Question, answer: dict[str, Any], exact: Vector) -> tuple[float, float]:
    """How good the choice is, and the best one, in the units of the mechanism's promise."""
    if question.kind == "most-common":
        return float(exact[labels(question).index(answer["estimate"])]), float(exact.max())
    prices = np.asarray(question.query.prices)
    revenue = prices * buyers(exact)
    return float(revenue[int(np.searchsorted(prices, answer["estimate"]))]), float(revenue.max())


def _error(question: Question, answer: dict[str, Any], true: Any, exact: Vector) -> float | None:
    estimate, size = answer["estimate"], float(exact.sum())
    if question.kind == "quantile":
        return max(
            _rank_error(exact / size, int(np.searchsorted(question.edges, value)), share)
            for value, share in zip(estimate, question.query.quantiles, strict=True)
        )
    if question.kind in SCORES:
        score, best = _scores(question, answer, exact)
        whole = size if question.kind == "most-common" else best
        return (best - score) / whole if whole > 0 else 0.0
    pairs = zip(
        np.atleast_1d(np.asarray(estimate, object)), np.atleast_1d(np.asarray(true, object)), strict=True
    )
    errors = [abs(said - right) for said, right in pairs if said is not None and right is not None]
    return float(max(errors)) if errors else None


def _rank_error(shares: Vector, place: int, wanted: float) -> float:
    upper = float(np.cumsum(shares)[place])
    return max(0.0, upper - float(shares[place]) - wanted, wanted - upper)
