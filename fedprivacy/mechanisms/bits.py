"""Randomised response: a private report of one bit, or of one number in [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.coins import MIN_EPSILON, coins, rounded_up
from fedprivacy.mechanisms.pure import MAX_EPSILON
from fedprivacy.mechanisms.ranges import MOST_PEOPLE, check_chance, check_epsilon, check_error

Answers = NDArray[np.uint8]


@dataclass(frozen=True)
class RandomizedResponse:
    """Reports the true bit with probability 1/2 + gamma, else the other one (Warner 1965).

    That is epsilon-DP with epsilon = ln((1 + 2 gamma) / (1 - 2 gamma)), hence gamma = tanh(epsilon/2)/2,
    the lectures' form.

    Args:
        epsilon: The budget of one answer, from `MIN_EPSILON` to `MAX_EPSILON`.

    Raises:
        InputError: epsilon is out of range.

    >>> round(RandomizedResponse(1.0).gamma, 4), round(RandomizedResponse.from_gamma(0.25).epsilon, 4)
    (0.2311, 1.0986)
    """

    epsilon: float
    name: ClassVar[str] = "randomized-response"
    title: ClassVar[str] = "randomized response"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon, MIN_EPSILON, MAX_EPSILON, self.title)

    @classmethod
    def from_gamma(cls, gamma: float) -> Self:
        """The mechanism that reports the true bit with probability 1/2 + gamma.

        Raises:
            InputError: gamma is not between 0 and 1/2, or so near to either that epsilon is out of range.
        """
        if not math.tanh(MIN_EPSILON / 2) / 2 <= gamma <= math.tanh(MAX_EPSILON / 2) / 2:
            raise InputError(
                f"{cls.title}: gamma = {gamma}: must be above 0 (no answer tells anything) and below 1/2 "
                f"(every answer is true), so that epsilon is from {MIN_EPSILON:g} to {MAX_EPSILON:g}."
            )
        return cls(min(max(2 * math.atanh(2 * gamma), MIN_EPSILON), MAX_EPSILON))

    @property
    def gamma(self) -> float:
        """The excess over 1/2 of the probability of the true bit."""
        return math.tanh(self.epsilon / 2) / 2

    @property
    def flip(self) -> float:
        """The probability 1/2 - gamma of the other answer, rounded up to what coins can show."""
        # Rounded to the private side: a grid of 2^-53 would otherwise make rare flips rarer than claimed.
        return rounded_up(float(expit(-self.epsilon)))

    def draw(self, bits: ArrayLike, stream: np.random.Generator) -> Answers:
        """The answers, uint8 of 0 and 1, in the shape of the bits.

        Args:
            bits: True answers, 0 or 1 (bool or integers), any shape; each is randomised separately.
            stream: The random stream of these answers, and of no others.

        Raises:
            InputError: The bits hold something else than 0 and 1.
        """
        array = np.asarray(bits)
        if array.dtype.kind not in "bui" or (array.size and not 0 <= array.min() <= array.max() <= 1):
            raise InputError(
                f"{self.title}: the bits must all be 0 or 1. Numbers between them go to draw_numbers."
            )
        return array.astype(np.uint8) ^ coins(array.shape, self.flip, stream).view(np.uint8)

    def draw_numbers(self, values: ArrayLike, stream: np.random.Generator) -> Answers:
        """Reports numbers: each is rounded at random to a bit of that mean, which is randomised.

        Both steps are one coin, of probability 1/2 + 2 gamma (x - 1/2). For 0 and 1 that is `draw`.

        Args:
            values: Numbers in [0, 1], any shape.
            stream: The random stream of these answers, and of no others.

        Raises:
            InputError: A number is not in [0, 1].
        """
        array = np.asarray(values, dtype=np.float64)
        if not ((array >= 0) & (array <= 1)).all():
            raise InputError(f"{self.title}: the numbers must be in [0, 1]. Scale or cut them first.")
        # Rounding keeps the order, so that every probability lies in [flip, 1 - flip], whose ends are exact.
        likely = self.flip + (1 - 2 * self.flip) * array
        return (stream.random(array.shape) < likely).astype(np.uint8)

    def estimate(self, ones: int, clients: int) -> float:
        """The unbiased estimate of the mean of the clients' bits or numbers; it may leave [0, 1].

        (ybar - (1/2 - gamma)) / (2 gamma) for the share ybar of ones among the answers.

        Args:
            ones: How many answers are 1.
            clients: How many answers there are.

        Raises:
            InputError: There are no clients, or more ones than clients.
        """
        return (self._share(ones, clients) - (0.5 - self.gamma)) / (2 * self.gamma)

    def variance(self, clients: int, mean: float | None = None) -> float:
        """The variance of the estimate for clients drawn at random from people of a known mean.

        (1/(16 gamma^2) - (mean - 1/2)^2) / clients. It is exact where people's answers are bits, and
        an upper bound for numbers, and for any given clients of that mean (`given_variance`).

        Args:
            clients: How many answer, at least 1.
            mean: Of the people's bits or numbers, in [0, 1]. None: the largest over all means, the
                lectures' bound 1/(16 gamma^2 clients).

        Raises:
            InputError: There are no clients, or the mean is out of range.
        """
        self._share(0, clients)
        if mean is not None and not 0 <= mean <= 1:
            raise InputError(f"{self.title}: mean = {mean}: must be in [0, 1].")
        off = 0.0 if mean is None else mean - 0.5
        return (1 / (16 * self.gamma**2) - off**2) / clients

    def given_variance(self, clients: int) -> float:
        """The variance of the estimate around the mean of these very clients' bits, whatever they are.

        Only the answers are random: (1/4 - gamma^2) / (4 gamma^2 clients), the lectures' variance. It does
        not hold for numbers, whose rounding adds to it.

        Args:
            clients: How many answer, at least 1.
        """
        self._share(0, clients)
        return 1 / (4 * math.sinh(self.epsilon / 2) ** 2) / clients

    def estimated_variance(self, ones: int, clients: int) -> float:
        """Estimates the variance of the estimate from the answers, for confidence intervals.

        ybar (1 - ybar) / (4 gamma^2 clients). Since y (1 - y) is concave, it is conservative for numbers
        and for given clients alike; half an answer is added to either side, so that it is never 0.
        A normal interval of this variance alone does not have its nominal coverage where clients
        are few, or where nearly all answers are the same: the answers are then far from normal.

        Args:
            ones: How many answers are 1.
            clients: How many answers there are.

        Raises:
            InputError: There are no clients, or more ones than clients.
        """
        self._share(ones, clients)
        share = (ones + 0.5) / (clients + 1)
        return share * (1 - share) / (4 * self.gamma**2 * clients)

    def clients_needed(self, error: float, confidence: float = 0.95) -> int:
        """The number of clients for an estimate within `error`, by Hoeffding's inequality.

        n >= ln(2/(1 - confidence)) / (8 gamma^2 error^2): the lectures' n >= c/(epsilon^2 error^2), for small
        epsilon with c = 2 ln(2/(1 - confidence)). It holds for bits and numbers of any mean.

        Args:
            error: The largest distance from the mean that is wanted, above 0; at most 1e30 clients are found.
            confidence: With which probability, in (0, 1).

        Raises:
            InputError: error or confidence is out of range.
        """
        check_chance("confidence", confidence)
        needed = math.log(2 / (1 - confidence)) / (8 * self.gamma**2)  # for an error of 1
        check_error(error, math.sqrt(needed / MOST_PEOPLE))
        return max(1, math.ceil(needed / error**2))

    def event(self) -> dp.DpEvent:
        """The event of one answer, as the accountant reads it."""
        return PureDpEvent(self.epsilon)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"epsilon {self.epsilon:.4g} an answer"

    def _share(self, ones: int, clients: int) -> float:
        if clients < 1 or not 0 <= ones <= clients:
            raise InputError(
                f"{self.title}: {ones} ones among {clients} answers: there must be at least one answer, "
                "and no more ones than answers."
            )
        return ones / clients
