"""The base of frequency oracles: reports, their support, and counts estimated from it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.coins import MIN_EPSILON
from fedprivacy.mechanisms.pure import MAX_EPSILON
from fedprivacy.mechanisms.ranges import check_epsilon

MAX_CATEGORIES = 2**30  # reports are int32
Counts = NDArray[np.int64]
Estimates = NDArray[np.float64]
Reports = NDArray[Any]


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """A local randomiser of one of k categories: a "pure" protocol of Wang et al. 2017, Section 4.

    A report supports some categories: the true one with probability p, any other one with q. So many
    reports are expected to support a category of which there are n_j among n clients: n_j p + (n - n_j) q.

    Args:
        categories: k, a whole number from 2 to `MAX_CATEGORIES`.
        epsilon: The budget of one report, from `MIN_EPSILON` to `MAX_EPSILON`.

    Raises:
        InputError: An argument is out of range.
    """

    categories: int
    epsilon: float
    name: ClassVar[str]
    title: ClassVar[str]
    procedure: ClassVar[str]  # what each client does, for a reader

    def __post_init__(self) -> None:
        if not 2 <= self.categories <= MAX_CATEGORIES or self.categories % 1 != 0:
            raise InputError(
                f"{self.title}: categories = {self.categories}: must be a whole number from 2 to "
                f"{MAX_CATEGORIES}. "
                "Put rare ones together."
            )
        check_epsilon(self.epsilon, MIN_EPSILON, MAX_EPSILON, self.title)

    @property
    @abstractmethod
    def p(self) -> float:
        """The probability that a report supports the client's own category."""

    @property
    @abstractmethod
    def q(self) -> float:
        """The probability that a report supports any other category."""

    @abstractmethod
    def draw(self, values: ArrayLike, stream: np.random.Generator) -> Reports:
        """The clients' reports; the first axis is the client.

        Args:
            values: The clients' categories, integers in [0, k), shape (clients,).
            stream: The random stream of these reports, and of no others.

        Raises:
            InputError: A value is no category.
        """

    @abstractmethod
    def support(self, reports: Reports) -> Counts:
        """The number of reports that support each category, int64, shape (categories,).

        Supports of parts add up to that of the whole.

        Raises:
            InputError: These are no reports of this mechanism.
        """

    @abstractmethod
    def event(self) -> dp.DpEvent:
        """The event of one report, as the accountant reads it."""

    def estimate(self, support: Counts, clients: int) -> Estimates:
        """Unbiased counts of each category, float64, shape (categories,); they may be negative.

        (support - n q) / (p - q), Wang et al. 2017, equation 3.

        Args:
            support: Of the reports of all clients, shape (categories,).
            clients: n, how many reports there are.

        Raises:
            InputError: There are no clients.
        """
        self._check_clients(clients)
        return np.asarray((support - clients * self.q) / (self.p - self.q), dtype=np.float64)

    def variance(self, clients: int, share: float = 0.0) -> float:
        """The variance of one category's estimated count, for given clients.

        n (f p (1 - p) + (1 - f) q (1 - q)) / (p - q)^2: Wang et al. 2017, Theorem 2.

        Args:
            clients: n, at least 1.
            share: f, the category's true share of the clients, in [0, 1].

        Raises:
            InputError: There are no clients, or the share is out of range.
        """
        self._check_clients(clients)
        if not 0 <= share <= 1:
            raise InputError(f"{self.title}: share = {share}: must be in [0, 1].")
        return float(self._variances(clients, share))

    def estimated_variance(self, support: Counts, clients: int) -> Estimates:
        """The variance of each estimated count at its estimated share, shape (categories,).

        For confidence intervals; estimated shares outside [0, 1] are cut.

        Args:
            support: Of the reports of all clients, shape (categories,).
            clients: n, how many reports there are.

        Raises:
            InputError: There are no clients.
        """
        shares = np.clip(self.estimate(support, clients) / clients, 0.0, 1.0)
        return np.asarray(self._variances(clients, shares))

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"epsilon {self.epsilon:.4g} a report"

    def _variances(self, clients: int, share: Any) -> Any:
        true_variance, other = self.p * (1 - self.p), self.q * (1 - self.q)
        return clients * (share * true_variance + (1 - share) * other) / (self.p - self.q) ** 2

    def _check_clients(self, clients: int) -> None:
        if clients < 1:
            raise InputError(f"{self.title}: {clients} clients: there must be at least one report.")

    def _checked(self, values: ArrayLike) -> NDArray[Any]:
        array = np.asarray(values)
        return self._integers(array, array.ndim == 1, self.categories, "values must be categories")

    def _integers(self, array: NDArray[Any], shaped: bool, limit: int, what: str) -> NDArray[Any]:
        """The array, if it has its shape and holds integers in [0, limit)."""
        whole = array.dtype.kind in "ui" and shaped
        if not whole or (array.size and not 0 <= array.min() <= array.max() < limit):
            raise InputError(
                f"{self.title}: the {what}: whole numbers from 0 to {limit - 1}, one for each client."
            )
        return array


def half_distinguished(epsilon: float) -> dp.DpEvent:
    """The event of a report that distinguishes two categories half of the time, and then costs epsilon.

    For any two categories the privacy loss is 0 with probability 1/2, and else that of randomised response
    on a bit. The answers of k-ary randomised response do not distinguish two categories with probability
    (k - 2)/(e^epsilon + k - 1): for k <= e^epsilon + 3 in no more than half of all cases, so that it reports
    at least as much, and dp_accounting has an event for it. That event is right under replace-one.

    Args:
        epsilon: The cost of a report that distinguishes the categories.
    """
    odds = math.exp(epsilon)
    buckets = math.floor(odds + 3)
    # A hair less noise than that, so that rounding claims no smaller epsilon.
    noise = buckets / (odds + buckets - 1) * (1 - 1e-15)
    return dp.RandomizedResponseDpEvent(noise, buckets)
