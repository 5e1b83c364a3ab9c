"""Trade-off curves: the largest TPR that a guarantee leaves an attack, at each FPR.

Dong, Roth and Su 2022 ("Gaussian differential privacy") write f(FPR) for the least false negative rate; the
curve here is 1 - f. It is concave, and no attack's ROC curve goes above it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fedprivacy.accounting.epsilon import epsilon, gaussian_mu
from fedprivacy.errors import InputError, UnsupportedEvent

Rates = NDArray[np.float64]

# A few dozen lines: steep ones for small FPRs, level ones for the advantage.
_DELTAS = np.unique(
    np.concatenate([np.geomspace(1e-9, 0.1, 41), np.linspace(0.1, 0.99, 38), 1 - np.geomspace(0.01, 1e-5, 6)])
)
_STEEPEST = 700.0  # e^710 overflows; a steeper line bounds nothing at any FPR above e^-700


class TradeOff(Protocol):
    """The largest TPR at each FPR, under a guarantee."""

    @property
    def basis(self) -> str:
        """The basis of the curve."""

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR; (1 + advantage) / 2 is the largest balanced accuracy."""

    @property
    def auc(self) -> float:
        """The largest area under an ROC curve."""

    def tpr(self, fpr: Rates | float) -> Rates:
        """The largest TPR at false positive rates in [0, 1]."""

    def twice(self) -> TradeOff:
        """The curve for two steps from neighbour to neighbour (their Theorem 2.14: group privacy)."""


@dataclass(frozen=True)
class GaussianCurve:
    """The exact curve of mu-Gaussian DP: TPR = Phi(Phi^-1(FPR) + mu).

    Args:
        mu: Sensitivity / noise standard deviation of unsampled Gaussian noise, at least 0.
    """

    mu: float

    @property
    def basis(self) -> str:
        """The basis of the curve."""
        return f"Gaussian noise without sampling, mu = {self.mu:.4g}: exact"

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR."""
        return float(2 * ndtr(self.mu / 2) - 1)

    @property
    def auc(self) -> float:
        """The largest area under an ROC curve."""
        return float(ndtr(self.mu / math.sqrt(2)))

    def tpr(self, fpr: Rates | float) -> Rates:
        """The largest TPR at false positive rates in [0, 1]."""
        return np.asarray(ndtr(ndtri(np.asarray(fpr, dtype=np.float64)) + self.mu))

    def twice(self) -> GaussianCurve:
        """The curve for two steps from neighbour to neighbour."""
        return GaussianCurve(2 * self.mu)


@dataclass(frozen=True, eq=False)
class PolygonCurve:
    """A curve of straight pieces: the lower envelope of the lines that (epsilon, delta) pairs draw.

    Args:
        fpr: The corners, rising from 0 to 1, shape (corners,).
        corners: The largest TPR there, shape (corners,).
        basis: The basis of the curve.
    """

    fpr: Rates
    corners: Rates
    basis: str

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR."""
        return float((self.corners - self.fpr).max())

    @property
    def auc(self) -> float:
        """The largest area under an ROC curve."""
        return float(np.trapezoid(self.corners, self.fpr))

    def tpr(self, fpr: Rates | float) -> Rates:
        """The largest TPR at false positive rates in [0, 1]."""
        return np.interp(np.asarray(fpr, dtype=np.float64), self.fpr, self.corners)

    def twice(self) -> PolygonCurve:
        """The curve for two steps from neighbour to neighbour: T(T(FPR)), again of straight pieces."""
        # Corners where T has one at FPR, or at T(FPR); T rises until it is 1.
        rising = np.append(True, np.diff(self.corners) > 0)
        reached = self.fpr[self.fpr >= self.corners[0]]
        corners = np.unique(
            np.concatenate([self.fpr, np.interp(reached, self.corners[rising], self.fpr[rising])])
        )
        return PolygonCurve(corners, self.tpr(self.tpr(corners)), f"{self.basis}, two steps")


def from_pairs(pairs: Iterable[tuple[float, float]], basis: str) -> PolygonCurve:
    """The curve of a mechanism that is (epsilon, delta)-DP for several pairs, in both directions.

    TPR <= e^epsilon FPR + delta, and with the parts exchanged 1 - FPR <= e^epsilon (1 - TPR) + delta
    (Kairouz, Oh and Viswanath 2015, Theorem 2.1).

    Args:
        pairs: (epsilon, delta), epsilon at least 0, delta in [0, 1].
        basis: The basis of the curve.

    Raises:
        InputError: a pair is out of range.
    """
    lines = [(0.0, 1.0)]  # slope and intercept: a TPR is at most 1
    for eps, delta in pairs:
        if not (eps >= 0 and 0 <= delta <= 1):
            raise InputError(
                f"(epsilon, delta) = ({eps}, {delta}): epsilon must be at least 0 and delta lie in [0, 1]."
            )
        if eps <= _STEEPEST:
            flat = math.exp(-eps)
            lines += [(math.exp(eps), delta), (flat, 1 - flat * (1 - delta))]
    # The lower envelope, as FPR rises: ever less steep lines. One whose neighbours meet below it is left out.
    envelope: list[tuple[float, float]] = []
    for slope, intercept in sorted(lines, key=lambda line: (-line[0], line[1])):
        if envelope and envelope[-1][0] == slope:
            continue
        while len(envelope) > 1 and _meet(envelope[-2], (slope, intercept)) <= _meet(
            envelope[-2], envelope[-1]
        ):
            envelope.pop()
        envelope.append((slope, intercept))
    meetings = [_meet(segment, other) for segment, other in pairwise(envelope)]
    fpr = np.unique([0.0, *(x for x in meetings if 0 < x < 1), 1.0])
    slopes, intercepts = np.array(lines).T
    corners = (slopes[:, None] * fpr + intercepts[:, None]).min(axis=0)
    return PolygonCurve(fpr, np.clip(corners, 0.0, 1.0), basis)


def _meet(segment: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[1] - segment[1]) / (segment[0] - other[0])


def from_event(event: dp.DpEvent, adjacency: str) -> TradeOff | None:
    """The curve of a released event; None if it guarantees nothing.

    Unsampled Gaussian noise has its exact curve. Of anything else, sampled Gaussian noise too, the
    accountants compute the epsilons at some 80 deltas, which hold all at once: the polygon of their
    lines is at most .005 above the curve that they touch (Gaussian noise, epsilon 0.1 to 16).

    Args:
        event: What was released; noise multipliers are noise standard deviation / C.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: the adjacency or a number in the event is out of range.
        UnsupportedEvent: no accountant answers for the event.
    """
    mu = gaussian_mu(event, adjacency)
    if mu is not None:
        return GaussianCurve(mu)
    last = epsilon(event, float(_DELTAS[-1]), adjacency)
    if not math.isfinite(last.epsilon):
        return None
    pairs = [(last.epsilon, float(_DELTAS[-1]))]
    for delta in (0.0, *map(float, _DELTAS[:-1])):
        # There may be no answer at delta = 0, or at one that drowns in rounding.
        try:
            pairs.append((epsilon(event, delta, adjacency).epsilon, delta))
        except UnsupportedEvent:
            continue
    return from_pairs(pairs, f"the (epsilon, delta) curve of all that was released ({last.accountant})")
