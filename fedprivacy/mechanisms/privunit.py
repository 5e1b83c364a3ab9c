"""PrivUnitG: the best known epsilon-DP randomiser of one direction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from fedprivacy.mechanisms.pure import PureMechanism

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Cap:
    """The parameters of PrivUnitG: a half space above a threshold, and its probability.

    Args:
        threshold: gamma; the cap is where a unit direction v has <v, output> >= gamma.
        probability: p, that the output falls into the cap of the true direction.
    """

    threshold: float
    probability: float

    @property
    def log_tail(self) -> float:
        """The logarithm of q, the probability of a cap under a standard normal."""
        return float(log_ndtr(-self.threshold))

    @property
    def mean(self) -> float:
        """E <v, output> for the true direction v."""
        density = math.exp(-(self.threshold**2) / 2) / math.sqrt(2 * math.pi)
        q = math.exp(self.log_tail)
        return density * (self.probability / q - (1 - self.probability) / (1 - q))

    def error(self, dimension: int) -> float:
        """E |output / mean - v|^2, by the moments of a truncated normal."""
        return (dimension + self.threshold * self.mean) / self.mean**2 - 1


def _cap(threshold: float, epsilon: float) -> Cap:
    # p (1 - q) / (q (1 - p)) = e^epsilon is the largest density ratio of two directions.
    q = float(ndtr(-threshold))
    odds = math.exp(epsilon + float(log_ndtr(-threshold)) - math.log1p(-q))
    return Cap(threshold, odds / (1 + odds))


@lru_cache(maxsize=256)
def best_cap(epsilon: float, dimension: int) -> Cap:
    """The cap of least error among those that spend exactly epsilon."""
    best = scipy.optimize.minimize_scalar(
        lambda threshold: _cap(threshold, epsilon).error(dimension),
        bounds=(0.0, 2.0 + math.sqrt(2 * epsilon)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return _cap(float(best.x), epsilon)


@dataclass(frozen=True)
class PrivUnitG(PureMechanism):
    """PrivUnitG (Asi, Feldman and Talwar 2022, Algorithm 2) on the direction of an update.

    The output is a standard normal vector, except that its part along the true direction lies above a
    threshold more often than a normal variable. The truncated normals are drawn by the inverse of
    their distribution function: a rejection loop with a limit of tries would not be epsilon-DP.

    Args:
        clipping_norm: C.
        epsilon: The budget of one message.
        direction: Turns an update into a direction. "lifted": (x, sqrt(C^2 - |x|^2)), in one dimension more,
            so that the message is unbiased for x. "normalised": x / |x|, so that every message is unbiased
            for an update of norm C in the direction of x, and for 0 if x is 0.
    """

    direction: str = "lifted"
    name: ClassVar[str] = "privunit"
    title: ClassVar[str] = "PrivUnitG"

    @classmethod
    def uncalibrated(cls, clipping_norm: float, dimension: int, direction: str) -> Self:
        """As `LocalMechanism` has it."""
        return cls(clipping_norm, 1.0, direction)

    def randomise(self, update: Vector, stream: np.random.Generator) -> Vector:
        """One client's message, float64, shape (dimension,).

        Args:
            update: The clipped update, shape (dimension,).
            stream: The random stream of this message, and of no other.
        """
        message: Vector = self.randomise_all(update[None], (stream,))[0]
        return message

    def randomise_all(self, updates: Vector, streams: Iterable[np.random.Generator]) -> Vector:
        """As `PureMechanism` has it; only the random numbers are drawn client by client."""
        dimension, lifting = updates.shape[1], self.direction == "lifted"
        units = np.empty((len(updates), dimension + lifting))
        np.divide(updates, self.clipping_norm, out=units[:, :dimension])
        norms = np.linalg.norm(units[:, :dimension], axis=1)
        # The mechanism protects a direction and cannot carry a length. The added coordinate makes every
        # vector a unit vector, so that a short update stays short in the mean; leaving it out of the message
        # afterwards is post-processing.
        if lifting:
            units[:, dimension] = np.sqrt(np.maximum(1.0 - norms**2, 0.0))
            norms = np.linalg.norm(units, axis=1)
        coins, outputs = np.empty((len(units), 2)), np.empty(units.shape)
        for row, stream in zip(range(len(units)), streams, strict=True):
            if norms[row] == 0.0:
                # A zero update has no direction, so a random one is as good as any other.
                stream.standard_normal(out=units[row])
                norms[row] = np.linalg.norm(units[row])
            stream.random(out=coins[row])
            stream.standard_normal(out=outputs[row])
        units /= norms[:, None]
        outputs += (self._along(coins, units.shape[1]) - (outputs * units).sum(axis=1))[:, None] * units
        outputs *= self.clipping_norm / best_cap(self.epsilon, units.shape[1]).mean
        return outputs[:, :dimension]

    def _along(self, coins: Vector, dimension: int) -> Vector:
        """The part of each output along its true direction, shape (clients,).

        Args:
            coins: Two uniform numbers in [0, 1) a client, shape (clients, 2).
            dimension: Of the directions.
        """
        cap = best_cap(self.epsilon, dimension)
        # 1 - coin lies in (0, 1], so that no quantile is infinite.
        levels = 1.0 - coins[:, 1]
        above = -ndtri_exp(np.log(levels) + cap.log_tail)
        below = ndtri(levels * -math.expm1(cap.log_tail))
        along: Vector = np.where(coins[:, 0] < cap.probability, above, below)
        return along

    def error(self, dimension: int) -> float:
        """Mean squared error of a message per coordinate, in units of C^2, for an update of norm C."""
        unit = dimension + (self.direction == "lifted")
        cap = best_cap(self.epsilon, unit)
        # The coordinate added by lifting, here 0, is left out again: its message is a normal of variance
        # 1/mean^2.
        return (cap.error(unit) - (unit - dimension) / cap.mean**2) / dimension
