"""Randomised response over k categories."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.mechanisms.coins import coins, rounded_up
from fedprivacy.mechanisms.frequency import Counts, FrequencyOracle, Reports


@dataclass(frozen=True)
class KaryRandomizedResponse(FrequencyOracle):
    """Reports the true category with probability e^eps/(e^eps + k - 1), and any other one otherwise.

    Kairouz, Oh and Viswanath 2014; "direct encoding" of Wang et al. 2017. A report is a category,
    int32, shape (clients,).
    """

    name: ClassVar[str] = "k-ary-randomized-response"
    title: ClassVar[str] = "k-ary randomized response"
    procedure: ClassVar[str] = "each client names its category, or by chance any other"

    @property
    def noise(self) -> float:
        """The probability k/(e^eps + k - 1) of a uniform report over all k categories."""
        # A coin is exact on a grid of 2^-53 alone; rounding down would exceed the budget.
        return rounded_up(self.categories / (math.exp(self.epsilon) + self.categories - 1))

    @property
    def p(self) -> float:
        """The probability that the client's own category is reported."""
        return 1 - self.noise + self.q

    @property
    def q(self) -> float:
        """The probability that any other category is reported."""
        return self.noise / self.categories

    def draw(self, values: ArrayLike, stream: np.random.Generator) -> NDArray[np.int32]:
        """The reported categories, int32, shape (clients,); see `FrequencyOracle.draw`."""
        checked = self._checked(values)
        # Each client draws a category and a coin: how much randomness is used does not depend on its answer.
        reports = stream.integers(0, self.categories, len(checked), dtype=np.int32)
        np.copyto(reports, checked, where=~coins(len(checked), self.noise, stream), casting="same_kind")
        return reports

    def support(self, reports: Reports) -> Counts:
        """The number of reports of each category, int64, shape (categories,)."""
        checked = self._integers(reports, reports.ndim == 1, self.categories, "reports must be categories")
        return np.bincount(checked, minlength=self.categories)

    def event(self) -> dp.DpEvent:
        """The event of one report: k-ary randomised response, which dp_accounting accounts for exactly.

        Right under replace-one, where two answers of a client are compared.
        """
        return dp.RandomizedResponseDpEvent(self.noise, self.categories)
