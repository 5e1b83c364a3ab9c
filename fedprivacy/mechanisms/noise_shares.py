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

for the noise multiplier z, which is relative to C as everywhere. So s is a function of z in closed form. It
is at least 4/C: below, conditional rounding shortens an update by more than an eighth, down to zero.

Sources: Kairouz, Liu and Steinke 2021 (rotation, conditional rounding, discrete Gaussian); Agarwal, Kairouz
and Liu 2021 (Skellam).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NoReturn, Self, get_args

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from fedprivacy.accounting.epsilon import epsilon as accounted_epsilon
from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
from fedprivacy.accounting.events import MAX_COUNT, MIN_NOISE
from fedprivacy.errors import InputError, RunError
from fedprivacy.mechanisms.modular import LEAST_BITS, MOST_BITS, Integers, centre, reduce_modulo
from fedprivacy.mechanisms.ranges import check_epsilon, check_noise, check_size
from fedprivacy.mechanisms.rotation import Numbers, padded, rotate, rotate_back
from fedprivacy.mechanisms.rounding import LARGEST_COORDINATE, largest_squared_norm, round_within

Observer = Literal["server", "participant", "outsider"]

DEVIATIONS = 4.0  # of the sum that the modulus has room for
LEAST_SCALE = 4.0  # of s C
_LARGE = 1e150  # numbers whose squares do not overflow


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
        min_survivors: n_min, the fewest clients in a sum, from 1 to n.
        colluders: t, how many of these may collude with the observer, below n_min.

    Raises:
        InputError: A value is out of range, or the bits are too few for these clients.
    """

    clipping_norm: float
    noise_multiplier: float
    dimension: int
    bits: int
    clients: int
    min_survivors: int
    colluders: int = 0
    name: ClassVar[str]
    title: ClassVar[str]
    least_share: ClassVar[float] = MIN_NOISE  # the variance of a share of noise that has an account
    derived_fields: ClassVar[tuple[str, ...]] = ("scale", "squared_norm", "share_variance")

    def __post_init__(self) -> None:
        check_noise(self.clipping_norm, self.noise_multiplier)
        for name in ("dimension", "bits", "clients", "min_survivors"):
            _check_whole(name, getattr(self, name), 1)
        _check_whole("colluders", self.colluders, 0)
        if self.min_survivors > self.clients:
            raise InputError(
                f"min_survivors = {self.min_survivors}: must be from 1 to clients = {self.clients}."
            )
        if self.colluders >= self.min_survivors:
            raise InputError(
                f"colluders = {self.colluders}: must be from 0 to min_survivors - 1 = "
                f"{self.min_survivors - 1}: of a sum without honest clients nothing is private."
            )
        if not LEAST_BITS <= self.bits <= MOST_BITS:
            raise InputError(f"bits = {self.bits}: must be from {LEAST_BITS} to {MOST_BITS}; 16 is usual.")
        if self._room < LEAST_SCALE**2 * self._spread:
            self._refuse_bits()

    def _refuse_bits(self) -> NoReturn:
        least = DEVIATIONS * math.sqrt(LEAST_SCALE**2 * self._spread + self.clients / 4)
        bits = math.ceil(math.log2(least)) + 1
        remedy = f"Use at least {bits} bits." if bits <= MOST_BITS else "Use fewer clients or less noise."
        raise InputError(
            f"bits = {self.bits}: too few for {self.clients} clients at noise multiplier "
            f"{self.noise_multiplier:g}: an update would be rounded to almost nothing. {remedy}"
        )

    @property
    def padded(self) -> int:
        """d, the coordinates of a message: the dimension, padded to a power of two."""
        return padded(self.dimension)

    @property
    def honest(self) -> int:
        """n_min - t, the honest shares in every sum."""
        return self.min_survivors - self.colluders

    @property
    def _room(self) -> float:
        """The variance that the modulus has room for, less that of rounding."""
        return (2.0 ** (self.bits - 1) / DEVIATIONS) ** 2 - self.clients / 4

    @property
    def _spread(self) -> float:
        """The variance of the sum without rounding where all updates are equal, in units of s^2 C^2."""
        return self.clients**2 / self.padded + self.noise_multiplier**2 * self.clients / self.honest

    @cached_property
    def scale(self) -> float:
        """s, by which a rotated update is multiplied before it is rounded."""
        # Few clients and many coordinates leave more room than exact norms have.
        return min(math.sqrt(self._room / self._spread), LARGEST_COORDINATE - 1) / self.clipping_norm

    @property
    def largest_noise(self) -> float:
        """The largest noise multiplier that the modulus has room for, at the least scale."""
        noise = self._room / LEAST_SCALE**2 - self.clients**2 / self.padded
        return math.sqrt(noise * self.honest / self.clients) * (1 - 1e-9)

    @property
    def share_variance(self) -> float:
        """The variance of one client's noise in each coordinate, in the units of the integers."""
        return (self.noise_multiplier * self.scale * self.clipping_norm) ** 2 / self.honest

    @cached_property
    def squared_norm(self) -> int:
        """L, the most that the squared norm of a client's integers is."""
        return largest_squared_norm(self.scale * self.clipping_norm, self.padded)

    @property
    def derived(self) -> dict[str, float]:
        """The values of `derived_fields`, which a plan states beside those that they follow from."""
        return {name: getattr(self, name) for name in self.derived_fields}

    @property
    def bits_per_message(self) -> int:
        """The bits of one client's message in one round, without masks and framing."""
        return self.bits * self.padded

    def encode(self, update: ArrayLike, signs: Numbers, stream: np.random.Generator) -> Integers:
        """One client's integers before noise, int64, shape (d,), of squared norm at most L.

        Args:
            update: Shape (dimension,); a longer one than C is clipped, one that is not finite becomes zero.
            signs: The round's rotation, of `rotation.random_signs`.
            stream: The random stream of this client's rounding, and of nothing else.

        Raises:
            InputError: An array has another shape. Nothing else about the update raises an error.
        """
        import torch  # plans are read without it

        from fedprivacy.mechanisms.clipping import clip

        numbers = np.array(update, dtype=np.float64)
        _check_shape("update", numbers, self.dimension)
        _check_shape("signs", signs, self.padded)
        largest = float(np.abs(numbers).max())
        if _LARGE < largest < math.inf:  # far above any C: it is clipped below
            numbers *= _LARGE / largest
        clipped = clip(torch.from_numpy(numbers)[None], self.clipping_norm)[0][0].numpy()
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
        return reduce_modulo(encoded + self.draw(len(encoded), stream), self.bits)

    def decode(self, total: Integers, signs: Numbers, survivors: int) -> Numbers:
        """The noisy sum of updates, float64, shape (dimension,); divide by a fixed number for a mean.

        Args:
            total: The sum of messages modulo 2^b, shape (d,).
            signs: The round's rotation.
            survivors: The number of clients in the sum.

        Raises:
            RunError: They are fewer than n_min.
            InputError: They are more than n, or an array has another shape.
        """
        self.check_survivors(survivors)
        _check_shape("total", total, self.padded)
        _check_shape("signs", signs, self.padded)
        return rotate_back(centre(total, self.bits) / self.scale, signs, self.dimension)

    def check_survivors(self, survivors: int) -> None:
        """Refuses a number of clients that no sum may have.

        Raises:
            RunError: They are fewer than n_min.
            InputError: They are more than n, or it is not a whole number.
        """
        _check_whole("survivors", survivors, 0)
        if survivors < self.min_survivors:
            raise RunError(
                f"survivors = {survivors}: fewer than min_survivors = {self.min_survivors}, so that the sum "
                "has less noise than the guarantee states. The round releases nothing, and stays charged."
            )
        if survivors > self.clients:
            raise InputError(f"survivors = {survivors}: must be at most clients = {self.clients}.")

    def shares_against(self, observer: Observer) -> int:
        """The honest shares of noise that an observer does not know.

        Raises:
            InputError: A participant would know all of them, or there is no such observer.
        """
        match observer:
            case "server" | "outsider":
                return self.honest
            case "participant":
                # A participant knows its share: it is one of the colluders.
                if (shares := self.min_survivors - max(self.colluders, 1)) < 1:
                    raise InputError(
                        "min_survivors = 1: a participant would know all of the noise, so that it has no "
                        "guarantee. Use at least 2."
                    )
                return shares
            case _:
                raise InputError(f"observer = {observer!r}: must be one of {', '.join(get_args(Observer))}.")

    def event(self, observer: Observer = "server") -> dp.DpEvent:
        """The event of one sum, as the accountant reads it.

        Raises:
            InputError: The observer is a participant who knows all of the noise, or there is no such one.
        """
        shares = self.shares_against(observer)
        return dp.NonPrivateDpEvent() if self.share_variance < self.least_share else self._event(shares)

    @abstractmethod
    def _event(self, shares: int) -> dp.DpEvent:
        """The event of a sum with so many honest shares, of which each has an account."""

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

    def variance(self, survivors: int) -> float:
        """The variance of the sum of so many survivors per coordinate, in units of C^2.

        It counts their noise and the largest variance of rounding: 1/4 for each survivor, where all numbers
        end in a half. The bias of conditional rounding is not in it; it is small where s C is well above 1.

        Raises:
            RunError: There are fewer than n_min.
            InputError: There are more than n.
        """
        self.check_survivors(survivors)
        return survivors * (self.share_variance + 0.25) / (self.scale * self.clipping_norm) ** 2

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

        check_epsilon(epsilon)
        check_size("rounds", rounds)
        if rounds > MAX_COUNT:
            raise InputError(f"rounds = {rounds}: must be at most {MAX_COUNT}.")
        largest = self.largest_noise

        def released(noise_multiplier: float) -> dp.DpEvent:
            # More noise than there is room for changes nothing: the search passes by there.
            mechanism = self.with_noise(min(noise_multiplier, largest))
            return dp.SelfComposedDpEvent(mechanism.event(observer), rounds)

        least = accounted_epsilon(released(largest), delta, adjacency).epsilon
        if least == math.inf:
            raise InputError(
                f"bits = {self.bits}: too few for {self.clients} clients and {rounds} rounds: there is no "
                f"room for shares of a variance of {self.least_share:g}, so that no epsilon is proved. Use "
                "more bits or fewer clients."
            )
        if epsilon < least:
            raise InputError(
                f"bits = {self.bits}: too few: with {self.clients} clients the modulus has room for noise "
                f"down to epsilon = {least:.3g} only, not {epsilon:g}. Use more bits."
            )
        noise = least_noise(released, epsilon, delta, adjacency)
        return self.with_noise(min(noise, largest))

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return (
            f"noise multiplier {self.noise_multiplier:.4g} in {self.honest} honest shares, "
            f"{self.bits} bits a coordinate"
        )


def likely_survivors(clients: int, dropout: float, colluders: int = 0) -> int:
    """The number of clients that 99.9 % of rounds keep, and at least as many as noise against all needs.

    Rounds with fewer are void. Where few clients drop out often, the least number makes more of them so.

    Args:
        clients: n, the most clients in a round.
        dropout: The probability that one of them drops out.
        colluders: t; one share more is then left against a participant, who knows its own.

    >>> likely_survivors(100, 0.0), likely_survivors(100, 0.3), likely_survivors(3, 0.9, 1)
    (100, 55, 2)
    """
    # The most k with P(fewer than k survive) <= 0.1 %.
    usual = bisect_right(range(clients), 1e-3, key=lambda k: float(bdtr(k, clients, 1 - dropout)))
    return min(clients, max(usual, max(colluders, 1) + 1))


def _check_whole(name: str, value: int, least: int) -> None:
    check_size(name, value, least)
    if isinstance(value, float):
        raise InputError(f"{name} = {value}: must be a whole number, written without a decimal point.")


def _check_shape(name: str, array: NDArray[Any], size: int) -> None:
    if array.shape != (size,):
        raise InputError(f"{name}: has the shape {array.shape}, and must have {(size,)}.")
