"""What the server makes of the totals: under central trust it adds noise or chooses, else it estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from fedprivacy.analytics.plan import Ask
from fedprivacy.analytics.questions import Question, Vector
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import FrequencyOracle
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax


@dataclass(frozen=True)
class Released:
    """What may be published of one query.

    Args:
        totals: Estimated totals, as `telling.totals` gives them without noise; None where one was chosen.
        variances: Of each total, by the mechanism's own formula; zeros without noise.
        noise: The additive mechanism whose noise is in the totals, if one is.
        chosen: What was chosen instead of totals: a category, a candidate for each quantile, or a price.
        size: What totals of categories add up to, where that is public; None where it is estimated too.
    """

    totals: Vector | None = None
    variances: Vector | None = None
    noise: Laplace | DiscreteLaplace | None = None
    chosen: tuple[int, ...] = ()
    size: int | None = None

    def half_width(self, confidence: float, cells: int = 1) -> Vector:
        """Half the width of each total's interval, so that `cells` of them hold together.

        Exact for additive noise, and normal otherwise, as the sum of many clients' coins is.
        """
        assert self.variances is not None
        error = (1 - confidence) / cells
        if self.noise is not None:
            return np.full(self.variances.shape, self.noise.half_width(1 - error))
        return np.sqrt(self.variances) * float(norm.isf(error / 2))


def release(ask: Ask, trust: str, totals: Vector, answered: int, stream: np.random.Generator) -> Released:
    """What is published of one query.

    Args:
        ask: The query.
        trust: The trust model.
        totals: The sum over all chunks of `telling.totals`.
        answered: How many clients are in it; not used where that is private.
        stream: The random stream of this release, and of no other.
    """
    mechanism = ask.mechanism
    match mechanism:
        case None:
            return Released(totals, np.zeros(len(totals)))
        case RandomizedResponse():
            estimate = answered * mechanism.estimate(int(totals[0]), answered)
            bits = ask.question.kind != "mean"
            variance = mechanism.given_variance(answered) if bits else mechanism.variance(answered)
            return Released(np.array([estimate]), np.array([answered**2 * variance]))
        case FrequencyOracle():
            support = totals.astype(np.int64)
            counts = mechanism.estimate(support, answered)
            variances = mechanism.estimated_variance(support, answered)
            return _of_votes(counts, variances, ask.question, answered)
        case Laplace() if trust == "local":
            return Released(totals, np.array([answered * mechanism.variance]))
        case Laplace():
            noisy = mechanism.draw(totals, stream)
            return Released(noisy, np.full(len(totals), mechanism.variance), mechanism)
        case DiscreteLaplace():
            noisy = mechanism.draw(np.rint(totals).astype(np.int64), stream).astype(np.float64)
            return Released(noisy, np.full(len(totals), mechanism.variance), mechanism)
        case ExponentialMechanism() | NoisyMax():
            chosen = [int(mechanism.draw(scores(totals), stream)) for scores in scores_of(ask.question)]
            return Released(chosen=tuple(chosen))
    raise TypeError(f"{mechanism} is no mechanism of a statistic")


def _of_votes(counts: Vector, variances: Vector, question: Question, answered: int) -> Released:
    """Counts of categories, where each client tells one of its so many votes by chance."""
    votes, cells = question.votes, question.cells
    chance = (votes - 1) * votes * np.maximum(counts[:cells], 0.0)
    size = answered if votes == 1 else None
    return Released(votes * counts[:cells], votes**2 * variances[:cells] + chance, size=size)


def scores_of(question: Question) -> list[Callable[[Vector], Vector]]:
    """How good each candidate is, given the totals: a function for each thing that is to be chosen."""
    if question.kind == "most-common":
        return [lambda totals: totals]
    if question.kind == "best-price":
        return [lambda totals: np.asarray(question.query.prices) * buyers(totals)]

    def by_rank(share: float) -> Callable[[Vector], Vector]:
        # How many clients stand between a candidate and the wanted rank: none where that is among those who
        # answer the candidate itself, as it is for one of them.
        def scores(totals: Vector) -> Vector:
            upper, wanted = np.cumsum(totals), share * totals.sum()
            return -np.maximum(np.maximum(wanted - upper, upper - totals - wanted), 0.0)

        return scores

    return [by_rank(share) for share in question.query.quantiles]


def buyers(totals: Vector) -> Vector:
    """How many clients bid each price or more, from how many reach each price and no higher one."""
    return np.cumsum(totals[::-1])[::-1][1:]
