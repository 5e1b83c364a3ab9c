"""Sign bits with randomised response: the lectures' mechanism for bits, applied to gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray
from scipy.special import ndtr

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.mechanisms.pure import PureMechanism

Vector = NDArray[np.float64]
# Coordinates are cut at this multiple of C / sqrt(dimension), which few of a spread-out vector exceed.
RANGE = 4.0


@dataclass(frozen=True)
class SignBits(PureMechanism):
    """One bit a coordinate, each answered by randomised response (Warner 1965).

    A coordinate x in [-r, r], r = 4C/sqrt(dimension), becomes the sign + with probability
    (1 + x/r)/2, and the true sign is reported with probability e^eps/(1 + e^eps). That is unbiased for
    coordinates within r. Those beyond are cut: an update with few large coordinates loses most of its
    length, which `error`, for directions at random, does not reveal.

    Args:
        clipping_norm: C.
        epsilon: The budget of one *bit*; a message costs `dimension` of them.
        dimension: The number of coordinates.
    """

    dimension: int
    name: ClassVar[str] = "sign-bits"
    title: ClassVar[str] = "sign bits"

    @classmethod
    def uncalibrated(cls, clipping_norm: float, dimension: int, direction: str) -> Self:
        """As `LocalMechanism` has it."""
        return cls(clipping_norm, 1.0, dimension)

    def event(self) -> dp.DpEvent:
        """The event of one message: `dimension` answers, composed."""
        return dp.SelfComposedDpEvent(PureDpEvent(self.epsilon), self.dimension)

    def randomise(self, update: Vector, stream: np.random.Generator) -> Vector:
        """One client's message, float64, shape (dimension,); the bits, scaled to be unbiased within r.

        Args:
            update: The clipped update, shape (dimension,).
            stream: The random stream of this message, and of no other.

        Raises:
            ValueError: if the update has another dimension than the mechanism is accounted for.
        """
        if len(update) != self.dimension:
            raise ValueError(f"an update of {len(update)} coordinates, accounted for {self.dimension}")
        bound = RANGE * self.clipping_norm / math.sqrt(self.dimension)
        attenuation = math.tanh(
            self.epsilon / 2
        )  # 2 e^eps/(1 + e^eps) - 1: what remains of a sign on average
        mean = np.clip(update / bound, -1.0, 1.0) * attenuation
        signs = np.where(stream.random(self.dimension) < (1.0 + mean) / 2.0, 1.0, -1.0)
        return signs * (bound / attenuation)

    def error(self, dimension: int) -> float:
        """Mean squared error of a message per coordinate, in units of C^2, for an update of norm C.

        Taken on average over all directions of the update.
        """
        attenuation = math.tanh(self.epsilon / 2)
        uncut = 1 - 2 * float(ndtr(-RANGE))  # of a standard normal: E[x cut(x)]
        squared = RANGE**2 / attenuation**2 - 2 * uncut + 1
        return squared / dimension

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"epsilon {self.epsilon:.4g} a bit"
