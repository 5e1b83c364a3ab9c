"""Randomised response over k categories."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import dp_accounting
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedprivacy.mechanisms.coins import coins, rounded_up
from fedprivacy.mechanisms.frequency import Counts, FrequencyOracle, Reports


@dataclass(frozen=True)
class KaryRandomizedResponse(FrequencyOracle):
    """Tells the true category with probability e^eps/(e^eps + k - 1), and else any other one.

    Kairouz, Oh and Viswanath 2014; "direct encoding" of Wang et al. 2017. A report is the category told,
    int32, shape (clients,).
    """

    name: ClassVar[str] = "k-ary-randomized-response"
    title: ClassVar[str] = "k-ary randomized response"

    @property
    def noise(self) -> float:
        """The probability k/(e^eps + k - 1) that any of the k categories is told, the true one among them."""
        return rounded_up(self.categories / (math.exp(self.epsilon) + self.categories - 1))

    @property
    def p(self) -> float:
        """The probability that the client's own category is told."""
        return 1 - self.noise + self.q

    @property
    def q(self) -> float:
        """The probability that any other category is told."""
        return self.noise / self.categories

    def draw(self, values: ArrayLike, stream: np.random.Generator) -> NDArray[np.int32]:
        """The categories told, int32, shape (clients,); see `FrequencyOracle.draw`."""
        checked = self._checked(values)
        told = stream.integers(0, self.categories, len(checked), dtype=np.int32)
        np.copyto(told, checked, where=~coins(len(checked), self.noise, stream), casting="same_kind")
        return told

    def support(self, reports: Reports) -> Counts:
        """How often each category was told, int64, shape (categories,)."""
        told = self._integers(reports, reports.ndim == 1, self.categories, "reports must be categories")
        return np.bincount(told, minlength=self.categories)

    def event(self) -> dp_accounting.DpEvent:
        """What one report costs: k-ary randomised response, of which dp_accounting knows every loss.

        Right under replace-one, where two answers of a client are compared.
        """
        return dp_accounting.RandomizedResponseDpEvent(self.noise, self.categories)
