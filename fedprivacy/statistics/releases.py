"""Turns totals into releases: central trust adds noise or selects, local trust estimates.

A query's totals arrive summed over all chunks: exact under central trust, where noise or a choice is drawn
here, or randomised under local trust, where they are only turned into estimates with their variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import FrequencyOracle, KaryRandomizedResponse
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.statistics.plan import PlannedQuery
from fedprivacy.statistics.query_values import Question, Vector

HALVINGS = 40  # of the ends of a share's interval: to 1e-12


@dataclass(frozen=True)
class Released:
    """The publishable result of one query.

    Args:
        totals: Estimated totals, comparable with the exact ones of `telling.totals`; None for a choice.
        variances: Of each total, by the mechanism's own formula; zeros without noise.
        noise: The additive mechanism whose noise is in the totals, if one is.
        chosen: The choice made instead of totals: a category, a candidate for each quantile, or a price.
        step: The change of a total by one more answer that supports it; 0 if totals are no counts of
            answers.
        exclusive: The mechanism if each answer supports exactly one total; else None.
        answered: How many answers there are, where each speaks for exactly one total.
        whole: Whether each client's true answer is one category, and not a share of several.
        size: What the totals of categories should add up to, where that is public; else None.
    """

    totals: Vector | None = None
    variances: Vector | None = None
    noise: Laplace | DiscreteLaplace | None = None
    chosen: tuple[int, ...] = ()
    step: float = 0.0
    exclusive: KaryRandomizedResponse | None = None
    answered: int = 0
    whole: bool = True
    size: int | None = None

    def half_width(self, confidence: float, cells: int = 1) -> Vector:
        """Half the width of each total's interval, so that `cells` of them hold together.

        Exact for additive noise, and normal otherwise, as the sum of many clients' coins is, with half an
        answer on either side: where hardly any coin lies, the sum is 0 or 1 and the normal law too narrow.
        """
        assert self.variances is not None
        error = (1 - confidence) / cells
        if self.noise is not None:
            return np.full(self.variances.shape, self.noise.half_width(1 - error))
        return np.sqrt(self.variances) * -float(ndtri(error / 2)) + self.step / 2

    def contrast_half_width(
        self, confidence: float, parts: Callable[[Vector], tuple[Vector, Vector]], share: Vector | float
    ) -> Vector:
        """Half the width of the interval of (1 - share) * inside - share * outside.

        That is 0 at the true share of inside, so it is how far off inside / (inside + outside) is, times
        the size (Fieller 1954).

        Args:
            confidence: The probability that each interval contains the share.
            parts: From one number for each total, the sums over the inside and over the outside.
            share: Of the inside, in [0, 1].
        """
        assert self.variances is not None
        inside, outside = parts(self.variances)
        variance = (1 - share) ** 2 * inside + share**2 * outside
        if self.exclusive is not None:
            variance = self._exclusive_variance(self.exclusive, parts, share)
        if self.noise is None:
            return np.asarray(np.sqrt(variance) * -float(ndtri((1 - confidence) / 2)) + self.step / 2)
        # No sum of Laplace variables has longer tails than one of them (Proschan 1965).
        grain = 0.5 if isinstance(self.noise, DiscreteLaplace) else 0.0
        return np.asarray(np.sqrt(variance / 2) * -math.log(1 - confidence) + grain)

    def share_interval(
        self, confidence: float, parts: Callable[[Vector], tuple[Vector, Vector]]
    ) -> tuple[Vector, Vector]:
        """The ends of the interval of inside / (inside + outside), in [0, 1].

        The shares at which the contrast may be 0 (Fieller 1954), and what lies between them: all of [0, 1]
        where the size may be 0. Totals below 0 count as 0. True totals are never below, so that this moves
        each contrast nearer to 0 and takes no share away, and there is always one.

        Args:
            confidence: The probability that each interval contains the share.
            parts: From one number for each total, the sums over the inside and over the outside.
        """
        assert self.totals is not None
        inside, outside = (np.maximum(part, 0.0) for part in parts(self.totals))
        size = inside + outside
        best = np.where(size > 0, inside / np.where(size > 0, size, 1.0), 0.5)

        def may_be(share: Vector) -> NDArray[np.bool_]:
            contrast = (1 - share) * inside - share * outside
            return np.asarray(np.abs(contrast) <= self.contrast_half_width(confidence, parts, share))

        def end(last: float) -> Vector:
            # A half-width is the root of a variance, which is convex in the share, and a contrast is linear:
            # from a last share that may not be to the best one, which may, there is one crossing.
            wrong = np.full(best.shape, last)
            right = np.where(may_be(wrong), wrong, best)
            for _ in range(HALVINGS):
                middle = (wrong + right) / 2
                right, wrong = np.where(may_be(middle), (middle, wrong), (right, middle))
            return right

        return end(0.0), end(1.0)

    def _exclusive_variance(
        self,
        mechanism: KaryRandomizedResponse,
        parts: Callable[[Vector], tuple[Vector, Vector]],
        share: Vector | float,
    ) -> Vector:
        """The variance of a contrast of answers that each support one category.

        They are not independent between categories. With the weight w of each category (1 - share inside,
        -share outside, else 0) an answer of category c has the mean weight m_c = q W + (p - q) w_c, where W
        is the sum of all weights; the variance is the sum over clients of E[w^2] - m_c^2.
        """
        assert self.totals is not None
        p, q, n = mechanism.p, mechanism.q, self.answered
        cells_in, cells_out = parts(np.ones(len(self.totals)))
        inside, outside = (np.clip(part, 0, n) for part in parts(self.totals))
        variance = (1 - share) ** 2 * inside + share**2 * outside
        squares = n * q * ((1 - share) ** 2 * cells_in + share**2 * cells_out) + (p - q) * variance
        others = q * ((1 - share) * cells_in - share * cells_out)
        if self.whole:
            rest = np.maximum(n - inside - outside, 0.0)
            means = inside * (others + (p - q) * (1 - share)) ** 2 + outside * (others - (p - q) * share) ** 2
            means = means + rest * others**2
        else:  # the least that squares of means can be, whichever clients have which shares
            means = n * (others + (p - q) * ((1 - share) * inside - share * outside) / n) ** 2
        return np.asarray(self.step**2 * np.maximum(squares - means, 0.0))


def release(
    ask: PlannedQuery, trust: str, totals: Vector, answered: int, stream: np.random.Generator
) -> Released:
    """The published result of one query.

    Args:
        ask: The query.
        trust: The trust model.
        totals: The sum over all chunks of `telling.totals`.
        answered: The number of clients in it; not used where it is private.
        stream: The random stream of this release, and of no other.
    """
    mechanism = ask.mechanism
    match mechanism:
        case None:
            return Released(totals, np.zeros(len(totals)))
        case RandomizedResponse():
            estimate = answered * mechanism.estimate(int(totals[0]), answered)
            if ask.question.whole:
                variance = mechanism.given_variance(answered)
            else:
                variance = mechanism.estimated_variance(int(totals[0]), answered)
            step = 1 / (2 * mechanism.gamma)
            return Released(np.array([estimate]), np.array([answered**2 * variance]), step=step)
        case FrequencyOracle():
            return of_support(ask, mechanism, totals.astype(np.int64), answered)
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


def of_support(
    ask: PlannedQuery, mechanism: FrequencyOracle, support: NDArray[np.int64], answered: int
) -> Released:
    """The published result of a query whose clients report categories by a mechanism of their own.

    Args:
        ask: The query.
        mechanism: The clients'.
        support: The number of reports that support each category, shape (categories,).
        answered: The number of reports.
    """
    counts = mechanism.estimate(support, answered)
    if ask.question.votes > 1:  # each client reports one of its votes, and only the best category is read
        return Released(ask.question.votes * counts[: ask.question.cells])
    step = 1 / (mechanism.p - mechanism.q)
    variances = mechanism.estimated_variance(support, answered)
    if not ask.question.whole:  # the record that a client reports is random as well
        shares = (support + 0.5) / (answered + 1)
        variances = answered * step**2 * shares * (1 - shares)
    return Released(
        counts,
        variances,
        step=step,
        exclusive=mechanism if isinstance(mechanism, KaryRandomizedResponse) else None,
        answered=answered,
        whole=ask.question.whole,
        size=answered,
    )


def scores_of(question: Question) -> list[Callable[[Vector], Vector]]:
    """The score of each candidate, given the totals: one function for each choice."""
    if question.kind == "most-common":
        return [lambda totals: totals]
    if question.kind == "best-price":
        return [lambda totals: np.asarray(question.query.prices) * buyers(totals)]

    def by_rank(share: float) -> Callable[[Vector], Vector]:
        # The number of clients between a candidate and the wanted rank: none if that rank is among the
        # clients that answer the candidate itself.
        def scores(totals: Vector) -> Vector:
            upper, wanted = np.cumsum(totals), share * totals.sum()
            return -np.maximum(np.maximum(wanted - upper, upper - totals - wanted), 0.0)

        return scores

    return [by_rank(share) for share in question.query.quantiles]


def buyers(totals: Vector) -> Vector:
    """The number of clients that bid each price or more, from the number whose highest price it is."""
    return np.cumsum(totals[::-1])[::-1][1:]
