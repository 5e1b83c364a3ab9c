"""Unary encodings: one bit for each category, sent by randomised response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.coins import coins, rounded_up
from fedprivacy.mechanisms.frequency import Counts, FrequencyOracle, Reports, half_distinguished

_CELLS = 2**20  # bits drawn or counted at a time: a megabyte or two


@dataclass(frozen=True)
class _Unary(FrequencyOracle):
    """A bit for each category, 1 with probability p for the client's own one and q for any other.

    A report is these bits, packed: uint8, shape (clients, ceil(k/8)); `numpy.unpackbits` gives them back.
    """

    procedure: ClassVar[str] = "each client sends a bit for each category, and flips each by chance"

    def draw(self, values: ArrayLike, stream: np.random.Generator) -> NDArray[np.uint8]:
        """The packed bits, uint8, shape (clients, ceil(k/8)); see `FrequencyOracle.draw`."""
        checked = self._checked(values)
        reports = np.empty((len(checked), self._width), dtype=np.uint8)
        for part in self._parts(len(checked)):
            rows = checked[part]
            bits = coins((len(rows), self.categories), self.q, stream)
            bits[np.arange(len(rows)), rows] = coins(len(rows), self.p, stream)
            reports[part] = np.packbits(bits, axis=1)
        return reports

    def support(self, reports: Reports) -> Counts:
        """The number of reports with a 1 for each category, int64, shape (categories,)."""
        if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != self._width:
            raise InputError(
                f"{self.title}: the reports must be bytes of shape (clients, {self._width}), "
                f"not {reports.dtype} of shape {reports.shape}."
            )
        total = np.zeros(self.categories, dtype=np.int64)
        for part in self._parts(len(reports)):
            bits = np.unpackbits(reports[part], axis=1, count=self.categories)
            total += bits.sum(axis=0, dtype=np.int64)
        return total

    @property
    def _width(self) -> int:
        return -(-self.categories // 8)

    def _parts(self, clients: int) -> list[slice]:
        step = max(1, _CELLS // self.categories)
        return [slice(start, min(start + step, clients)) for start in range(0, clients, step)]


@dataclass(frozen=True)
class SymmetricUnary(_Unary):
    """SUE: each bit is reported truly with probability e^(eps/2)/(e^(eps/2) + 1).

    The basic one-time RAPPOR (Erlingsson, Pihur and Korolova 2014; Wang et al. 2017, Section 4.2). Two
    categories differ in two bits, each of which costs eps/2.
    """

    name: ClassVar[str] = "sue"
    title: ClassVar[str] = "symmetric unary encoding"

    @property
    def p(self) -> float:
        """The probability of a 1 for the client's own category."""
        return 1 - self.q

    @property
    def q(self) -> float:
        """The probability of a 1 for any other category."""
        # On the grid of `coins`; rounding down would exceed the budget.
        return rounded_up(float(expit(-self.epsilon / 2)))

    def event(self) -> dp.DpEvent:
        """The event of one report: exactly two answers of randomised response at eps/2."""
        return dp.SelfComposedDpEvent(PureDpEvent(self.epsilon / 2), 2)


@dataclass(frozen=True)
class OptimizedUnary(_Unary):
    """OUE: the own bit is 1 half of the time, every other one with probability 1/(e^eps + 1).

    Wang et al. 2017, Section 4.3: of all unary encodings the one of least variance for rare categories.
    """

    name: ClassVar[str] = "oue"
    title: ClassVar[str] = "optimized unary encoding"

    @property
    def p(self) -> float:
        """The probability of a 1 for the client's own category."""
        return 0.5

    @property
    def q(self) -> float:
        """The probability of a 1 for any other category."""
        # On the grid of `coins`; rounding down would exceed the budget.
        return rounded_up(1 / (math.exp(self.epsilon) + 1))

    def event(self) -> dp.DpEvent:
        """The event of one report.

        Two categories differ in two bits. Where these are equal, which is half of the time, they say
        nothing of the two; where not, the odds are e^eps.
        """
        return half_distinguished(self.epsilon)
