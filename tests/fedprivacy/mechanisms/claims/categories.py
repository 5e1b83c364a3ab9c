"""The claims of the mechanisms for categories."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.linalg import hadamard

from claims import checks
from claims.claim import Claim
from fedprivacy.mechanisms.categories import (
    FrequencyOracle,
    HadamardResponse,
    KaryRandomizedResponse,
    OptimizedUnary,
    SymmetricUnary,
)


def reports(mechanism: FrequencyOracle, value: int, count: int, purpose: str) -> np.ndarray:
    """What clients send who all hold the same category."""
    return mechanism.draw(np.full(count, value), checks.stream(f"{purpose} {value}"))


def bits_of(size: int, width: int) -> np.ndarray:
    """The bits of the numbers 0 to size - 1 as numpy packs them, shape (size, width)."""
    return np.arange(size)[:, None] >> (7 - np.arange(width)) & 1


class CategoriesClaim(Claim):
    """What the four have in common; a report is told by its number."""

    draws = 60_000

    def probabilities(self, mechanism: FrequencyOracle, value: int) -> np.ndarray:
        """Of every report, by its number, shape (reports,)."""
        raise NotImplementedError

    def numbers(self, sent: np.ndarray) -> np.ndarray:
        """The number of each report, shape (clients,)."""
        return sent

    def rare_variance(self, categories: int, odds: float) -> float:
        """The published variance of a count at share 0 for each client; odds = e^epsilon."""
        raise NotImplementedError

    def halved(self, mechanism: FrequencyOracle) -> FrequencyOracle:
        return replace(mechanism, epsilon=2 * mechanism.epsilon)

    def distribution(self, claimed: FrequencyOracle, drawn: FrequencyOracle) -> None:
        for value in (0, claimed.categories - 1):
            expected = self.probabilities(claimed, value)
            sent = self.numbers(reports(drawn, value, 100_000, "distribution"))
            checks.fits(np.bincount(sent, minlength=len(expected)), expected)

    def moments(self, claimed: FrequencyOracle, drawn: FrequencyOracle) -> None:
        clients, trials = 60, 4000
        people = np.r_[np.zeros(20, dtype=int), np.ones(40, dtype=int)]
        own = checks.stream("moments")
        estimates = np.array(
            [
                claimed.estimate(claimed.support(drawn.draw(people, own)), clients)[[0, 1, -1]]
                for _ in range(trials)
            ]
        )
        true = (20, 40, 0 if claimed.categories > 2 else 40)
        for column, count in zip(estimates.T, true, strict=True):
            checks.moments(column, count, claimed.variance(clients, count / clients))

    def privacy(self, claimed: FrequencyOracle, drawn: FrequencyOracle) -> None:
        each = [self.probabilities(drawn, value) for value in range(drawn.categories)]
        for one, other in combinations(each, 2):
            checks.loss(one, other, self.epsilon(claimed))

    def scores(self, drawn: FrequencyOracle, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Whether a report supports the first category, less whether it supports the second."""
        both = []
        for value in (0, 1):
            sent = reports(drawn, value, count, "audit")
            distinct, which = np.unique(sent, axis=0, return_inverse=True)
            supported = np.array([drawn.support(report[None]) for report in distinct])
            both.append((supported[:, 0] - supported[:, 1]).astype(float)[which.reshape(-1)])
        return both[0], both[1]

    def oracle(self, claimed: FrequencyOracle) -> None:
        """The variances that Wang et al. 2017 print (tables 1 and 2), and Acharya and Sun 2019."""
        published = self.rare_variance(claimed.categories, math.exp(claimed.epsilon))
        assert math.isclose(claimed.variance(1), published, rel_tol=1e-9)


class KaryClaim(CategoriesClaim):
    instances = (
        KaryRandomizedResponse(2, 0.3),
        KaryRandomizedResponse(5, 1.0),
        KaryRandomizedResponse(7, 3.0),
    )

    def probabilities(self, mechanism: FrequencyOracle, value: int) -> np.ndarray:
        return np.where(np.arange(mechanism.categories) == value, mechanism.p, mechanism.q)

    def rare_variance(self, categories: int, odds: float) -> float:
        return (categories - 2 + odds) / (odds - 1) ** 2


class UnaryClaim(CategoriesClaim):
    def probabilities(self, mechanism: FrequencyOracle, value: int) -> np.ndarray:
        likely = np.where(np.arange(mechanism.categories) == value, mechanism.p, mechanism.q)
        bits = bits_of(256, 8)
        padded = bits[:, mechanism.categories :].any(axis=1)  # the bits that fill the byte are 0
        each = np.where(bits[:, : mechanism.categories], likely, 1 - likely).prod(axis=1)
        return np.where(padded, 0.0, each)

    def numbers(self, sent: np.ndarray) -> np.ndarray:
        return sent[:, 0]


class SymmetricUnaryClaim(UnaryClaim):
    instances = (SymmetricUnary(2, 0.3), SymmetricUnary(4, 1.0), SymmetricUnary(5, 3.0))

    def rare_variance(self, categories: int, odds: float) -> float:
        return math.sqrt(odds) / (math.sqrt(odds) - 1) ** 2


class OptimizedUnaryClaim(UnaryClaim):
    instances = (OptimizedUnary(2, 0.3), OptimizedUnary(4, 1.0), OptimizedUnary(5, 3.0))

    def rare_variance(self, categories: int, odds: float) -> float:
        return 4 * odds / (odds - 1) ** 2


class HadamardClaim(CategoriesClaim):
    instances = (HadamardResponse(2, 0.3), HadamardResponse(5, 1.0), HadamardResponse(8, 3.0))

    def probabilities(self, mechanism: FrequencyOracle, value: int) -> np.ndarray:
        odd = hadamard(mechanism.size)[:, value] < 0
        one = np.where(odd, mechanism.p, 1 - mechanism.p)
        return np.stack([1 - one, one], axis=1).reshape(-1) / mechanism.size

    def rare_variance(self, categories: int, odds: float) -> float:
        return ((odds + 1) / (odds - 1)) ** 2


CLAIMS = {
    KaryRandomizedResponse.name: KaryClaim(),
    SymmetricUnary.name: SymmetricUnaryClaim(),
    OptimizedUnary.name: OptimizedUnaryClaim(),
    HadamardResponse.name: HadamardClaim(),
}
