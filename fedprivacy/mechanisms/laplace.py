"""The Laplace mechanism on numbers and vectors of bounded L1 sensitivity, and its twin on integers.

Both are drawn from the floating-point numbers of the run's own stream: simulation grade. Around a float the
representable sums of value and Laplace noise leave gaps that give the value away (Mironov 2012), and noise
beyond some forty scales never comes; a deployment needs an exact sampler (Canonne, Kamath and Steinke 2020).
Integers have no such gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.events import MAX_COUNT, MIN_NOISE
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.additive import AdditiveNoise
from fedprivacy.mechanisms.ranges import check_adjacency, check_epsilon, check_size

_LARGEST = 2**62  # so that integers and their noise stay far below the end of int64


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """Lap(sensitivity/epsilon) on each coordinate (Dwork, McSherry, Nissim and Smith 2006).

    >>> Laplace.histogram(0.1, "replace-one").scale
    20.0
    """

    name: ClassVar[str] = "laplace"
    title: ClassVar[str] = "Laplace"

    def draw(self, values: ArrayLike, stream: np.random.Generator, *, shares: int = 1) -> NDArray[np.float64]:
        """The values with noise, float64, of the same shape.

        Args:
            values: Finite numbers, any shape: one release, whose L1 sensitivity is `sensitivity`.
            stream: The random stream of this release, and of no other.
            shares: The number of independent noises in the added one: the sum of n Laplace noises
                is the difference of two Gamma(n) variables.

        Raises:
            InputError: A value is not finite, or `shares` is below 1.
        """
        check_size("shares", shares)
        numbers = np.asarray(values, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise InputError(
                "values: must all be finite; NaN and infinity would show through any noise. "
                "Cut them to a range before."
            )
        # A difference of two exponentials (Gamma(1)) is Laplace. The usual inverse of the distribution
        # function takes the logarithm of a uniform number, which may be 0.
        up = stream.standard_gamma(shares, numbers.shape)
        return numbers + self.scale * (up - stream.standard_gamma(shares, numbers.shape))

    @property
    def variance(self) -> float:
        """2 b^2, the variance of one coordinate's noise."""
        return 2 * self.scale**2

    def tail(self, t: float) -> float:
        """P(|Z| > t) = e^(-t/b) of one coordinate's noise Z; 1 for t below 0."""
        return math.exp(-max(t, 0.0) / self.scale)

    def _beyond(self, chance: float) -> float:
        return -self.scale * math.log(chance)

    def event(self, adjacency: str) -> dp.DpEvent:
        """The event of one release; under replace-one the accountant doubles its sensitivity.

        The event is that of one number. A vector of the same L1 sensitivity costs no more: moving coordinate
        after coordinate is group privacy, where the trade-off functions f and g of two steps give g(1 - f)
        (Dong, Roth and Su 2022), and for a log-concave noise that is the one of the summed shift.

        Raises:
            InputError: The adjacency is none of the three.
        """
        check_adjacency(adjacency)
        return dp.LaplaceDpEvent((2 if adjacency == "replace-one" else 1) / self.epsilon)


@dataclass(frozen=True)
class DiscreteLaplace(AdditiveNoise):
    """The geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009): integer noise on integers.

    P(Z = z) = tanh(a/2) e^(-a |z|) with a = epsilon / sensitivity on each coordinate.

    Args:
        epsilon: The budget of one release, from 1e-6 to 1e4.
        sensitivity: In L1, under the adjacency that is meant: a whole number from 1 to 1e9.

    >>> DiscreteLaplace.count(1.0, "replace-one").half_width(0.95)
    3.0
    """

    sensitivity: int
    name: ClassVar[str] = "discrete-laplace"
    title: ClassVar[str] = "discrete Laplace"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not 1 <= self.sensitivity <= MAX_COUNT or self.sensitivity != math.floor(self.sensitivity):
            raise InputError(
                f"sensitivity = {self.sensitivity}: must be a whole number from 1 to {MAX_COUNT:g}; "
                "for other numbers take Laplace noise."
            )

    def draw(self, values: ArrayLike, stream: np.random.Generator, *, shares: int = 1) -> NDArray[np.int64]:
        """The values with noise, int64, of the same shape.

        Args:
            values: Whole numbers of an integer type, any shape: one release.
            stream: The random stream of this release, and of no other.
            shares: The number of independent noises in the added one.

        Raises:
            InputError: The values are of another type or beyond 2^62, or `shares` is below 1.
        """
        check_size("shares", shares)
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "iu" or (
            numbers.size and not -_LARGEST <= int(numbers.min()) <= int(numbers.max()) <= _LARGEST
        ):
            raise InputError("values: must be integers from -2^62 to 2^62, and of an integer type.")
        # A difference of two geometric variables has the two-sided geometric law of the mechanism.
        up = self._geometric(numbers.shape, stream, shares)
        return numbers.astype(np.int64) + (up - self._geometric(numbers.shape, stream, shares))

    def _geometric(
        self, shape: tuple[int, ...], stream: np.random.Generator, shares: int
    ) -> NDArray[np.int64]:
        # P(G >= k) = e^(-ak): an exponential variable rounded down. A sum of n is negative binomial, which is
        # Poisson of a Gamma(n) mean.
        if shares == 1:
            return np.floor(stream.standard_exponential(shape) * self.scale).astype(np.int64)
        means = stream.standard_gamma(shares, shape) / math.expm1(min(1 / self.scale, 700.0))
        return np.asarray(stream.poisson(means), dtype=np.int64)

    @property
    def variance(self) -> float:
        """1/(2 sinh^2(a/2)) = 2 e^-a / (1 - e^-a)^2, the variance of one coordinate's noise."""
        a = 1 / self.scale
        return 2 * math.exp(-a) / math.expm1(-a) ** 2

    def tail(self, t: float) -> float:
        """P(|Z| > t) = 2 e^(-a (floor(t) + 1)) / (1 + e^-a) of one coordinate's noise Z; 1 for t below 0."""
        if t < 0:
            return 1.0
        a = 1 / self.scale
        return 2 * math.exp(-a * (math.floor(t) + 1)) / (1 + math.exp(-a))

    def _beyond(self, chance: float) -> float:
        a = 1 / self.scale
        exact = math.log(2 / (chance * (1 + math.exp(-a)))) / a - 1
        return float(max(0, math.ceil(exact)))

    def event(self, adjacency: str) -> dp.DpEvent:
        """The event of one release; a vector costs no more, as for `Laplace.event`.

        The accountant doubles the event's sensitivity under replace-one. An odd sensitivity has no half: then
        the event states the epsilon alone, which for sensitivity 1 is all there is to say (the privacy loss
        is epsilon or -epsilon, as in randomised response).

        Raises:
            InputError: The adjacency is none of the three.
        """
        check_adjacency(adjacency)
        half, odd = divmod(self.sensitivity, 2)
        if 1 / self.scale < MIN_NOISE or (adjacency == "replace-one" and odd):
            return PureDpEvent(self.epsilon)
        return dp.DiscreteLaplaceDpEvent(
            1 / self.scale, half if adjacency == "replace-one" else self.sensitivity
        )
