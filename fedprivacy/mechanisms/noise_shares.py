"""Noise in shares: clients send integers modulo 2^b, of which the server learns the sum alone.

A client clips its update to C, rotates it by a public random rotation, multiplies it by s, rounds it at
random to integers, adds its share of integer noise and reduces modulo 2^b. The server centres the modular
sum, divides by s and rotates back.

    client:  v = round(s rotate(clip(x)))        again until ||v||^2 <= L, in exact arithmetic
             message = v + share mod 2^b
    server:  sum of x = rotate_back(centre(sum of messages mod 2^b)) / s

*Shares* are fixed before the round. With at least n_min survivors, of whom at most t collude, each adds noise
of variance mu/(n_min - t): the honest ones alone add mu at least. More survivors add more noise than claimed.
Fewer than n_min must not be summed: the round then releases nothing, and is charged as if it had.

*The guarantee* rests on a secure sum, ideal or cryptographic, which shows the server the modular sum and
nothing else. It holds under zero-out and replace-one adjacency. No observer is amplified by sampling. Who
drops out is assumed to be independent of the victim's records.

*The scale* leaves the sum room for four deviations at worst, when all n updates are equal:

    2^(b-1) = 4 sqrt(s^2 C^2 n^2/d + n/4 + n mu/(n_min - t))      with mu = (z s C)^2

for the noise multiplier z, which is relative to C as everywhere. So s is a function of z in closed form.

Sources: Kairouz, Liu and Steinke 2021 (rotation, conditional rounding, discrete Gaussian); Agarwal, Kairouz
and Liu 2021 (Skellam).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.epsilon import epsilon as accounted_epsilon
from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
from fedprivacy.accounting.events import MAX_NOISE
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.modular import LEAST_BITS, MOST_BITS, centre, reduce
from fedprivacy.mechanisms.ranges import check_size
from fedprivacy.mechanisms.rotation import padded, rotate, rotate_back
from fedprivacy.mechanisms.rounding import MOST, largest_squared_norm, round_within

Observer = Literal["server", "participant", "outsider"]
Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]

DEVIATIONS = 4.0  # of the sum that the modulus has room for


@dataclass(frozen=True)
class NoiseShares(ABC):
    """The common part of Skellam and discrete Gaussian noise in shares.

    Args:
        clipping_norm: C, the L2 bound of one client's update.
        noise_multiplier: z, the standard deviation of the n_min - t honest shares together / C; 0 means
            noise before calibration, and states an event without privacy.
        dimension: The numbers of an update, before padding.
        bits: b, of one coordinate of a message, from 2 to 28.
        clients: n, the most clients in a sum.
        survivors: n_min, the fewest clients in a sum, from 1 to n.
        colluders: t, how many of the survivors may collude with the observer, below n_min.

    Raises:
        InputError: A value is out of range, or the bits are too few for these clients.
    """

    clipping_norm: float
    noise_multiplier: float
    dimension: int
    bits: int
    clients: int
    survivors: int
    colluders: int = 0
    name: ClassVar[str]
    title: ClassVar[str]

    def __post_init__(self) -> None:
        _ = Gaussian(self.clipping_norm, self.noise_multiplier)  # the same ranges
        check_size("dimension", self.dimension)
        check_size("clients", self.clients)
        if not 1 <= self.survivors <= self.clients:
            raise InputError(f"survivors = {self.survivors}: must be from 1 to clients = {self.clients}.")
        if not 0 <= self.colluders < self.survivors:
            raise InputError(
                f"colluders = {self.colluders}: must be from 0 to survivors - 1 = {self.survivors - 1}: "
                "of a sum without honest clients nothing is private."
            )
        if not LEAST_BITS <= self.bits <= MOST_BITS:
            raise InputError(f"bits = {self.bits}: must be from {LEAST_BITS} to {MOST_BITS}; 16 is usual.")
        if self._room <= 0:
            least = math.floor(math.log2(DEVIATIONS * math.sqrt(self.clients) / 2)) + 2
            raise InputError(
                f"bits = {self.bits}: the rounding of {self.clients} clients alone fills the modulus. "
                f"Use at least {least} bits."
            )

    @property
    def padded(self) -> int:
        """d, the coordinates of a message: the dimension, padded to a power of two."""
        return padded(self.dimension)

    @property
    def honest(self) -> int:
        """n_min - t, the honest shares in every sum."""
        return self.survivors - self.colluders

    @property
    def _room(self) -> float:
        """The variance that the modulus has room for, less that of rounding."""
        return (2.0 ** (self.bits - 1) / DEVIATIONS) ** 2 - self.clients / 4

    @cached_property
    def scale(self) -> float:
        """s, by which a rotated update is multiplied before it is rounded."""
        signal = self.clients**2 / self.padded
        noise = self.noise_multiplier**2 * self.clients / self.honest
        # Few clients and many coordinates leave more room than exact norms have.
        return min(math.sqrt(self._room / (signal + noise)), MOST - 2) / self.clipping_norm

    @property
    def share_variance(self) -> float:
        """The variance of one client's noise in each coordinate, in the units of the integers."""
        return (self.noise_multiplier * self.scale * self.clipping_norm) ** 2 / self.honest

    @cached_property
    def squared_norm(self) -> int:
        """L, the most that the squared norm of a client's integers is."""
        return largest_squared_norm(self.scale * self.clipping_norm, self.padded)

    @property
    def bits_per_message(self) -> int:
        """The bits of one client's message in one round, without masks and framing."""
        return self.bits * self.padded

    def encode(self, update: Numbers, signs: Numbers, stream: np.random.Generator) -> Integers:
        """One client's integers before noise, int64, shape (d,), of squared norm at most L.

        Args:
            update: Shape (dimension,); a longer one than C is clipped, one that is not finite becomes zero.
            signs: The round's rotation, of `rotation.random_signs`.
            stream: The random stream of this client's rounding, and of nothing else.
        """
        size = float(np.linalg.norm(update))
        factor = min(1.0, self.clipping_norm / size) if size > 0 else 1.0
        clipped = update * factor if math.isfinite(size) else np.zeros(len(update))
        return round_within(rotate(clipped, signs) * self.scale, self.squared_norm, stream)

    @abstractmethod
    def draw(self, dimension: int, stream: np.random.Generator, *, shares: int = 1) -> Integers:
        """Noise of one client, or of several together, int64, shape (dimension,).

        Args:
            dimension: The number of coordinates.
            stream: The random stream of these draws, and of no others.
            shares: The number of clients whose noise this is.
        """

    def message(self, encoded: Integers, stream: np.random.Generator) -> Integers:
        """One client's message: its integers and its share of noise modulo 2^b, int64, shape (d,).

        Args:
            encoded: Of `encode`.
            stream: The random stream of this client's noise, and of nothing else.
        """
        return reduce(encoded + self.draw(len(encoded), stream), self.bits)

    def decode(self, total: Integers, signs: Numbers) -> Numbers:
        """The noisy sum of updates, float64, shape (dimension,); divide by a fixed number for a mean.

        Args:
            total: The sum of messages modulo 2^b, of n_min clients at least, shape (d,).
            signs: The round's rotation.
        """
        return rotate_back(centre(total, self.bits) / self.scale, signs, self.dimension)

    def shares_against(self, observer: Observer) -> int:
        """The honest shares of noise that an observer does not know.

        Raises:
            InputError: A participant would know all of them.
        """
        if observer != "participant":
            return self.honest
        # A participant knows its share: it is one of the colluders.
        if (shares := self.survivors - max(self.colluders, 1)) < 1:
            raise InputError(
                "survivors = 1: a participant would know all of the noise, so that it has no guarantee. "
                "Use at least 2 survivors."
            )
        return shares

    @abstractmethod
    def event(self, observer: Observer = "server") -> dp.DpEvent:
        """The event of one sum, as the accountant reads it.

        Raises:
            InputError: The observer is a participant who knows all of the noise.
        """

    @abstractmethod
    def log_moment(self, t: float, shares: int) -> float:
        """A bound on log E e^(t Z) for the noise Z of so many clients in one coordinate."""

    @property
    def wrap_chance(self) -> float:
        """A bound on the probability that one coordinate of the sum exceeds the modulus.

        It holds whatever the updates are, also all equal: over signs and noise alone, with less than 1 for
        each client's rounding (Chernoff).
        """
        room = 2.0 ** (self.bits - 1) - self.clients
        if room <= 0:
            return 1.0
        signal = (self.scale * self.clipping_norm * self.clients) ** 2 / self.padded
        t = room / (signal + self.clients * self.share_variance)
        exponent = signal * t**2 / 2 + self.log_moment(t, self.clients) - t * room
        return min(1.0, 2 * math.exp(exponent)) if exponent < 0 else 1.0

    @property
    def error(self) -> float:
        """Mean squared error of the sum per coordinate, in units of C^2, of n_min - t shares.

        Each of n clients' rounding has a variance of 1/4 at most, where all numbers end in a half.
        """
        unit = (self.scale * self.clipping_norm) ** 2
        return (self.honest * self.share_variance + self.clients / 4) / unit

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same mechanism at another noise multiplier, and so at another scale."""
        return replace(self, noise_multiplier=noise_multiplier)

    def calibrated(
        self,
        epsilon: float,
        delta: float,
        adjacency: str,
        rounds: int = 1,
        observer: Observer = "server",
    ) -> Self:
        """The same mechanism with the least noise for a budget over all rounds.

        Args:
            epsilon: Of all rounds together.
            delta: In (0, 1).
            adjacency: "replace-one" or "zero-out".
            rounds: In how many sums a client takes part.
            observer: Who the budget is against.

        Raises:
            InputError: A value is out of range, or the bits are too few for this epsilon.
            UnsupportedEvent: The adjacency is add-remove.
        """

        def released(noise_multiplier: float) -> dp.DpEvent:
            return dp.SelfComposedDpEvent(self.with_noise(noise_multiplier).event(observer), rounds)

        least = accounted_epsilon(released(MAX_NOISE), delta, adjacency).epsilon
        if 0 < epsilon < least:
            raise InputError(
                f"bits = {self.bits}: with {self.clients} clients the modulus has room for noise down to "
                f"epsilon = {least:.3g} only, not {epsilon:g}. Use more bits."
            )
        return self.with_noise(least_noise(released, epsilon, delta, adjacency))

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return (
            f"noise multiplier {self.noise_multiplier:.4g} in {self.honest} honest shares, "
            f"{self.bits} bits a coordinate"
        )
