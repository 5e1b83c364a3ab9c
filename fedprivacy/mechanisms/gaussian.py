"""The Gaussian mechanism on vectors of bounded L2 norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import dp_accounting
import numpy as np
from numpy.typing import NDArray

from fedprivacy.accounting.events import MAX_NOISE


@dataclass(frozen=True)
class Gaussian:
    """Adds N(0, (noise_multiplier * clipping_norm)^2) to every coordinate.

    The same object draws the noise and states the event that the accountant reads.

    Args:
        clipping_norm: C, the L2 bound of one client's update.
        noise_multiplier: z, the standard deviation of the noise divided by C.

    Source: Dwork and Roth 2014, appendix A; DpEvent convention: the multiplier is relative to C,
    also under replace-one, where the sensitivity is 2C (the accountant doubles it).
    """

    clipping_norm: float
    noise_multiplier: float
    name: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian"

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one draw, in the units of the update."""
        return self.noise_multiplier * self.clipping_norm

    def randomise(self, update: NDArray[np.float64], stream: np.random.Generator) -> NDArray[np.float64]:
        """One client's message, float64, shape (dimension,); see `draw`."""
        return update + self.draw(len(update), stream)

    def error(self, dimension: int) -> float:
        """Mean squared error of a message per coordinate, in units of C^2."""
        return self.noise_multiplier**2

    @property
    def words(self) -> str:
        """How much noise there is, in words."""
        return f"noise multiplier {self.noise_multiplier:.4g}"

    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> NDArray[np.float64]:
        """Noise for one release, shape (dimension,).

        Args:
            dimension: The number of coordinates.
            stream: The random stream of this release, and of no other.
            shares: How many independent draws this one stands for: a sum of n draws of standard
                deviation s is one draw of s * sqrt(n).
        """
        noise = stream.standard_normal(dimension)
        noise *= self.standard_deviation * math.sqrt(shares)
        return noise

    def event(self) -> dp_accounting.DpEvent:
        """What one release costs, as the accountant reads it."""
        return dp_accounting.GaussianDpEvent(self.noise_multiplier)

    def summed_event(self, shares: int) -> dp_accounting.DpEvent:
        """What a release of the sum of `shares` noisy updates costs whoever sees the sum alone, or more."""
        # Accountants take no more noise than this; less noise is claimed than there is.
        return dp_accounting.GaussianDpEvent(min(self.noise_multiplier * math.sqrt(shares), MAX_NOISE))

    def with_noise(self, noise_multiplier: float) -> Gaussian:
        """The same mechanism at another noise multiplier."""
        return replace(self, noise_multiplier=noise_multiplier)
