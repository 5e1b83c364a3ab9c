"""The common part of Laplace noise on numbers and on integers: scale, intervals, bounds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from dp_accounting import dp_event as dp

from fedprivacy.mechanisms.ranges import (
    MOST_PEOPLE,
    check_chance,
    check_epsilon,
    check_error,
    check_sensitivity,
    check_size,
)
from fedprivacy.mechanisms.sensitivity import count_sensitivity, histogram_sensitivity


@dataclass(frozen=True)
class AdditiveNoise(ABC):
    """Noise of density or mass proportional to exp(-epsilon |z| / sensitivity) on each coordinate.

    Args:
        epsilon: The budget of one release, from 1e-6 to 1e4.
        sensitivity: The most that one record can change the released vector, in L1, under the adjacency
            that is meant.

    Raises:
        InputError: epsilon or sensitivity is out of range.
    """

    epsilon: float
    sensitivity: float
    name: ClassVar[str]
    title: ClassVar[str]

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_sensitivity(self.sensitivity)

    @classmethod
    def count(cls, epsilon: float, adjacency: str) -> Self:
        """For one count of records."""
        return cls(epsilon, count_sensitivity(adjacency))

    @classmethod
    def histogram(cls, epsilon: float, adjacency: str) -> Self:
        """For a histogram of which each record falls into one cell."""
        return cls(epsilon, histogram_sensitivity(adjacency))

    @property
    def scale(self) -> float:
        """b = sensitivity / epsilon, in the units of the answer."""
        return self.sensitivity / self.epsilon

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of one coordinate's noise."""

    @abstractmethod
    def tail(self, t: float) -> float:
        """P(|Z| > t) of one coordinate's noise Z; 1 for t below 0."""

    @abstractmethod
    def event(self, adjacency: str) -> dp.DpEvent:
        """The event of one release, as the accountant reads it."""

    @abstractmethod
    def _beyond(self, chance: float) -> float:
        """The least t with P(|Z| > t) at most `chance`."""

    def half_width(self, confidence: float) -> float:
        """The least t with P(|Z| <= t) at least `confidence`: half the width of a confidence interval.

        Raises:
            InputError: The confidence is not in (0, 1).
        """
        check_chance("confidence", confidence)
        return self._beyond(1 - confidence)

    def largest_error(self, cells: int, beta: float) -> float:
        """A bound on the largest of `cells` errors that holds with probability 1 - beta (union bound).

        The lectures' (10 + ln k)/epsilon with probability 1 - e^-10 is the Laplace histogram of k cells under
        add-remove; under replace-one the noise is Lap(2/epsilon), and the bound twice as large.

        Raises:
            InputError: `cells` is below 1, or beta not in (0, 1).
        """
        check_size("cells", cells)
        check_chance("beta", beta)
        # A union bound holds for dependent errors too, such as those of cells that are read off one release.
        return self._beyond(beta / cells)

    def clients_needed(self, error: float, confidence: float = 0.95) -> int:
        """The number of records for which a mean's noise is at most `error` with this confidence.

        The noise is added to the sum, so the mean of n has 1/n of it: n >= c/(epsilon error) with
        c = sensitivity ln(1/(1 - confidence)), the lectures' bound; local answers need c/(epsilon error)^2.

        Raises:
            InputError: The error is below `half_width` / 1e30 or not finite, or the confidence not in (0, 1).
        """
        width = self.half_width(confidence)
        check_error(error, width / MOST_PEOPLE)
        return max(1, math.ceil(width / error))

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"{self.title} noise of scale {self.scale:.4g}"
