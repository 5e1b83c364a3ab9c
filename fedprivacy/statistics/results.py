"""Answers from releases: an estimate, its interval, and in a simulation its true error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.mechanisms.categories import FrequencyOracle
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.statistics.plan import PlannedQuery, QueryMechanism
from fedprivacy.statistics.query_values import Question, Vector, labels
from fedprivacy.statistics.releases import Released, of_support, scores_of

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

# The score of a choice.
SCORES = {"most-common": "clients in the category", "best-price": "revenue"}
CHOICES = (*SCORES, "quantile")


def terms(ask: PlannedQuery) -> dict[str, Any]:
    """Returns the parts of a query's result that the plan decides: name, mechanism, guarantee.

    The error bound on the counts of a client's own mechanism follows from its answers, and is not included.
    """
    question, mechanism = ask.question, ask.mechanism
    fields = {
        "name": question.name,
        "kind": question.kind,
        "mechanism": _called(mechanism),
        "noise": None if mechanism is None else mechanism.words,
    }
    if reported(ask) is not None:
        return fields
    noise = mechanism if isinstance(mechanism, Laplace | DiscreteLaplace) else None
    return {**fields, "bound": _promised(ask, Released(variances=np.zeros(1), noise=noise))}


def reported(ask: PlannedQuery) -> FrequencyOracle | None:
    """The clients' mechanism of a histogram, whose counts determine the bound; else None."""
    counted = ask.question.kind == "histogram" and isinstance(ask.mechanism, FrequencyOracle)
    return ask.mechanism if counted else None  # type: ignore[return-value]


def counted_again(ask: PlannedQuery, estimate: Sequence[float], clients: int) -> dict[str, Any]:
    """Rebuilds a histogram and its bound from some of its estimated counts.

    Counts of reports are whole numbers, so values between two of them are rounded.

    Args:
        ask: A query whose mechanism is `reported`.
        estimate: The estimated counts of its first categories.
        clients: The number of answers.
    """
    mechanism = reported(ask)
    assert mechanism is not None
    support = np.asarray(estimate) * (mechanism.p - mechanism.q) + clients * mechanism.q
    released = of_support(ask, mechanism, np.rint(support).clip(0, clients).astype(np.int64), clients)
    return {**_histogram(ask.question, released, clients), "bound": _promised(ask, released)}


def largest_bound(ask: PlannedQuery, clients: int) -> float:
    """The largest error bound of a histogram, over all possible counts.

    Args:
        ask: A query whose mechanism is `reported`.
        clients: The number of answers.
    """
    mechanism = reported(ask)
    assert mechanism is not None
    every = of_support(ask, mechanism, np.arange(clients + 1), clients)
    assert every.variances is not None
    bound = _promised(ask, every)
    assert bound is not None
    return float(bound["at_most"])


def result(ask: PlannedQuery, released: Released, clients: int) -> dict[str, Any]:
    """The answer to one query.

    Args:
        ask: The query.
        released: The published result.
        clients: The number of clients; not used where it is private.

    Returns:
        A JSON object with `estimate`, `low` and `high` (of a list each, where there are several) and
        `bound`, the mechanism's error bound beside the interval.
    """
    question = ask.question
    answer = _ANSWERS.get(question.kind, _number)(question, released, clients)
    return {
        **terms(ask),
        **answer,
        "confidence": CONFIDENCE,
        "covers": COVERS,
        "bound": _promised(ask, released),
    }


def _called(mechanism: QueryMechanism | None) -> str | None:
    """The word by which a scenario selects a mechanism."""
    if isinstance(mechanism, NoisyMax) and mechanism.noise != "laplace":
        return mechanism.noise
    return None if mechanism is None else mechanism.name


def _number(question: Question, released: Released, clients: int) -> dict[str, Any]:
    assert released.totals is not None
    total, half = float(released.totals[0]), float(released.half_width(CONFIDENCE)[0])
    if question.kind == "count":
        return {"estimate": total, "low": total - half, "high": total + half}
    low, scale = _scale(question)
    if len(released.totals) == 2:  # the number of clients is private: it is estimated too
        [estimate], [below], [above] = _shares(released, lambda each: (each[:1], each[1:]))
        estimate, below, above = (
            None if end is None else low + scale * end for end in (estimate, below, above)
        )
        return {"estimate": estimate, "low": below, "high": above}
    # Interval ends are computed on totals, so that integer noise of 0 gives exactly the true value.
    ends = (total, total - half, total + half)
    return dict(
        zip(("estimate", "low", "high"), (low + scale * (end / clients) for end in ends), strict=True)
    )


def _scale(question: Question) -> tuple[float, float]:
    """The value of a share of 0, and the difference to that of a share of 1."""
    if question.kind != "mean":
        return 0.0, 1.0
    return question.query.low, question.query.high - question.query.low


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
    estimate, low, high = _shares(released, lambda each: (each[1::2], each[::2]))
    return {"labels": labels(question), "estimate": estimate, "low": low, "high": high}


def _shares(
    released: Released, parts: Callable[[Vector], tuple[Vector, Vector]]
) -> tuple[list[float | None], list[float | None], list[float | None]]:
    """Each share of the inside with the ends of its interval.

    There is no estimate where the inside is too small to distinguish from none, but always an interval,
    whatever the noise was: an interval given only where the noise made it look narrow would not have its
    coverage. Only a share that is surely none has no interval either.
    """
    assert released.totals is not None
    inside, outside = parts(released.totals)
    sizes, doubts = inside + outside, np.hypot(*parts(released.half_width(CONFIDENCE)))
    reliable = (sizes > doubts) & (sizes > 0)
    estimate = np.clip(inside / np.where(reliable, sizes, 1.0), 0.0, 1.0)
    low, high = released.share_interval(CONFIDENCE, parts)
    return (
        _listed(estimate, reliable),
        _listed(low, reliable | (doubts > 0)),
        _listed(high, reliable | (doubts > 0)),
    )


def _listed(values: Vector, known: NDArray[np.bool_]) -> list[float | None]:
    return [float(value) if is_known else None for value, is_known in zip(values, known, strict=True)]


def _chosen(question: Question, released: Released) -> list[int]:
    """The choice, or the best option by the published totals."""
    if released.totals is None:
        return list(released.chosen)
    if question.kind == "quantile":
        places = []
        for share in question.query.quantiles:
            ranks, _, wanted = _ranks(released, share)
            places.append(_first_at(np.maximum.accumulate(ranks), wanted))
        return places
    return [int(np.argmax(scores(released.totals))) for scores in scores_of(question)]


def _first_at(ranks: Vector, rank: float) -> int:
    """The first place of at least this rank; 0.07 of 100 is 7, not the 7.000000000000001 of floats."""
    return min(int(np.searchsorted(ranks, rank - 1e-12 * abs(rank))), len(ranks) - 1)


def _quantile(question: Question, released: Released, clients: int) -> dict[str, Any]:
    chosen, low, high = _chosen(question, released), None, None
    if released.totals is not None:
        low, high = [], []
        for share in question.query.quantiles:
            ranks, half, wanted = _ranks(released, share)
            # Candidates that may have the wanted rank: from the first that may reach it on, up to the first
            # from which on all surely do.
            low.append(float(question.edges[_first_at(np.maximum.accumulate(ranks + half), wanted)]))
            sure = np.minimum.accumulate((ranks - half)[::-1])[::-1]
            high.append(float(question.edges[_first_at(sure, wanted)]))
    return {
        "labels": [f"{share:g}" for share in question.query.quantiles],
        "estimate": [float(question.edges[place]) for place in chosen],
        "low": low,
        "high": high,
    }


def _ranks(released: Released, share: float) -> tuple[Vector, Vector, float]:
    """Returns cumulative counts of candidates, half their interval, and the wanted rank.

    Where the number of clients is public, what the totals miss of it is spread over them evenly: of all
    totals that add up to it, the nearest.
    """
    assert released.totals is not None
    ranks = np.cumsum(released.totals)
    if released.size is None:
        half = released.contrast_half_width(CONFIDENCE, _at_or_below, share)
        return ranks, half, share * float(ranks[-1])
    parts = np.arange(1, len(ranks) + 1) / len(ranks)
    half = released.contrast_half_width(CONFIDENCE, _at_or_below, parts)
    return ranks - parts * (ranks[-1] - released.size), half, share * released.size


def _at_or_below(each: Vector) -> tuple[Vector, Vector]:
    sums = np.cumsum(each)
    return sums, sums[-1] - sums


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


def _promised(ask: PlannedQuery, released: Released) -> dict[str, Any] | None:
    """The mechanism's error bound on the whole answer, and its probability."""
    question, mechanism = ask.question, ask.mechanism
    if question.kind == "histogram" and mechanism is not None:
        probability = question.query.bound_probability
        largest = float(released.half_width(probability, question.cells).max())
        return {"what": "largest error of any category", "at_most": largest, "probability": probability}
    if isinstance(mechanism, ExponentialMechanism | NoisyMax):
        candidates = question.cells - (question.kind == "best-price")
        beta = (1 - CONFIDENCE) / ask.times
        what = {
            "quantile": "clients between the answer's rank and the wanted one",
            "best-price": "revenue below the best",
        }.get(question.kind, "clients fewer than in the most common category")
        return {
            "what": what,
            "at_most": float(mechanism.utility_bound(candidates, beta)),
            "probability": CONFIDENCE,
        }
    return None


def truth(question: Question, answer: dict[str, Any], exact: Vector, clients: int) -> dict[str, Any]:
    """The true answer, and the error of the published one; known to a simulation alone.

    For a choice also its `score`, that of the `best` one, and the unit `scored`: clients, or revenue.

    Args:
        question: The query.
        answer: Its `result`.
        exact: The exact totals over all clients.
        clients: How many there are.
    """
    exactly = Released(exact, np.zeros(len(exact)))
    true = _ANSWERS.get(question.kind, _number)(question, exactly, clients)["estimate"]
    truths = {"true": true, "measure": MEASURES[question.kind]}
    if question.kind not in CHOICES:
        return {**truths, "error": _error(answer, true)}
    scores = [score(exact) for score in scores_of(question)]
    places = _places(question, answer)
    missed = max(
        float(candidate_scores.max() - candidate_scores[place])
        for candidate_scores, place in zip(scores, places, strict=True)
    )
    if question.kind == "quantile":
        return {**truths, "error": missed / clients}
    best = float(scores[0].max())
    whole = clients if question.kind == "most-common" else best
    error = missed / whole if whole > 0 else 0.0
    return {**truths, "error": error, "score": best - missed, "best": best, "scored": SCORES[question.kind]}


def _places(question: Question, answer: dict[str, Any]) -> list[int]:
    """Which candidates were chosen."""
    if question.kind == "most-common":
        return [labels(question).index(answer["estimate"])]
    return [int(np.searchsorted(question.edges, value)) for value in np.atleast_1d(answer["estimate"])]


def _error(answer: dict[str, Any], true: Any) -> float | None:
    """The largest absolute error of the values that both have; None where they have none."""
    pairs = zip(
        np.atleast_1d(np.asarray(answer["estimate"], object)),
        np.atleast_1d(np.asarray(true, object)),
        strict=True,
    )
    errors = [
        abs(reported - right) for reported, right in pairs if reported is not None and right is not None
    ]
    return float(max(errors)) if errors else None
