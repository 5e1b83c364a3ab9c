"""The Gaussian mechanism on vectors of bounded L2 norm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
from fedprivacy.accounting.events import MAX_NOISE
from fedprivacy.accounting.lectures_noise import lectures_gaussian_noise
from fedprivacy.mechanisms.central import CentralMechanism, Settings
from fedprivacy.mechanisms.ranges import check_adjacency, check_noise


@dataclass(frozen=True)
class Gaussian(CentralMechanism):
    """Adds N(0, (noise_multiplier * clipping_norm)^2) to every coordinate.

    The same object draws the noise and states the event that the accountant reads.

    Args:
        clipping_norm: C, the L2 bound of one client's update.
        noise_multiplier: z, the standard deviation of the noise divided by C; 0 means noise before
            calibration, and states an event without privacy.

    Raises:
        InputError: A value is negative or not finite, or C is 0.

    Source: Dwork and Roth 2014, appendix A; DpEvent convention: the multiplier is relative to C,
    also under replace-one, where the sensitivity is 2C (the accountant doubles it).
    """

    clipping_norm: float
    noise_multiplier: float
    name: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian"

    def __post_init__(self) -> None:
        check_noise(self.clipping_norm, self.noise_multiplier)

    @classmethod
    def uncalibrated(cls, clipping_norm: float, dimension: int, direction: str) -> Self:
        """As `LocalMechanism` has it."""
        return cls(clipping_norm, 1.0)

    @classmethod
    def of_scenario(cls, settings: Settings) -> Self:
        """As `CentralMechanism` has it."""
        return cls(settings.clipping_norm, settings.noise_multiplier)

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, adjacency: str, clipping_norm: float = 1.0) -> Gaussian:
        """The least noise for one release at (epsilon, delta): analytic (Balle and Wang 2018).

        Raises:
            InputError: A value is out of range.
        """
        # Exact for every epsilon; sqrt(2 ln(1.25/delta))/epsilon is proved for epsilon <= 1 only, and gives
        # too little noise for large epsilon.
        noise = least_noise(dp.GaussianDpEvent, epsilon, delta, adjacency)
        return cls(clipping_norm, noise)

    @classmethod
    def lectures(cls, epsilon: float, delta: float, adjacency: str, clipping_norm: float = 1.0) -> Gaussian:
        """The textbook's noise S2 sqrt(2 ln(1.25/delta))/epsilon, to compare: proved for epsilon <= 1 only.

        S2 is the L2 sensitivity (one page of the lectures prints S1): C, or 2C under replace-one. It is more
        noise than `calibrated` gives.

        Raises:
            InputError: epsilon is not in (0, 1], or another value out of range.
        """
        noise = lectures_gaussian_noise(epsilon, delta)
        return cls(clipping_norm, _sensitivity(adjacency) * noise)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one draw, in the units of the update."""
        return self.noise_multiplier * self.clipping_norm

    def randomise(self, update: NDArray[np.float64], stream: np.random.Generator) -> NDArray[np.float64]:
        """One client's message, float64, shape (dimension,); see `draw`."""
        return update + self.draw(len(update), stream)

    def randomise_all(
        self, updates: NDArray[np.float64], streams: Iterable[np.random.Generator]
    ) -> NDArray[np.float64]:
        """As `PureMechanism` has it; scaled and added at once."""
        messages = np.empty(updates.shape)
        for message, stream in zip(messages, streams, strict=True):
            stream.standard_normal(out=message)
        messages *= self.standard_deviation
        messages += updates
        return messages

    def error(self, dimension: int) -> float:
        """Mean squared error of a message per coordinate, in units of C^2."""
        return self.noise_multiplier**2

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"noise multiplier {self.noise_multiplier:.4g}"

    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> NDArray[np.float64]:
        """Noise for one release, shape (dimension,).

        Args:
            dimension: The number of coordinates.
            stream: The random stream of this release, and of no other.
            shares: The number of independent draws in this one: a sum of n draws of standard deviation s has
                the distribution of one draw of s * sqrt(n).
        """
        # float64 throughout: float32 noise has wider gaps between its values, and adding it to weights in
        # float32 rounds much of it away. Floating-point gaps remain (Mironov 2012): see docs/sharp-edges.md.
        noise = stream.standard_normal(dimension)
        noise *= self.standard_deviation * math.sqrt(shares)
        return noise

    def event(self) -> dp.DpEvent:
        """The event of one release, as the accountant reads it."""
        # Relative to C under every adjacency: the accountants double the sensitivity under replace-one.
        return dp.GaussianDpEvent(self.noise_multiplier)

    def summed_event(self, shares: int, others: Gaussian | None = None) -> dp.DpEvent:
        """The event of releasing the sum of `shares` noisy updates to an observer of the sum alone.

        Args:
            shares: The number of updates, the client's among them.
            others: The least noise of the other updates; None: as much as this.
        """
        if others is None:
            summed = self.noise_multiplier * math.sqrt(shares)
        else:  # independent draws: variances add up
            summed = math.hypot(self.noise_multiplier, others.noise_multiplier * math.sqrt(shares - 1))
        # Accountants accept no more noise than this. Stating less noise than there is keeps the bound valid.
        return dp.GaussianDpEvent(min(summed, MAX_NOISE))

    def mu(self, adjacency: str) -> float:
        """The parameter of Gaussian DP: one release is exactly mu-GDP (Dong, Roth and Su 2022, Theorem 2.7).

        Raises:
            InputError: The adjacency is none of the three.
        """
        sensitivity = _sensitivity(adjacency)
        return sensitivity / self.noise_multiplier if self.noise_multiplier > 0 else math.inf

    def rho(self, adjacency: str) -> float:
        """The parameter of zero-concentrated DP: mu^2/2 (Bun and Steinke 2016, Proposition 1.6).

        Raises:
            InputError: The adjacency is none of the three.
        """
        return self.mu(adjacency) ** 2 / 2

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same mechanism at another noise multiplier."""
        return replace(self, noise_multiplier=noise_multiplier)


def _sensitivity(adjacency: str) -> float:
    """The L2 sensitivity in units of C."""
    check_adjacency(adjacency)
    return 2.0 if adjacency == "replace-one" else 1.0
