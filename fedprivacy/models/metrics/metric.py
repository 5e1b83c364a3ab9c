"""The interface of a metric, and means that do not depend on how records are cut into chunks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedprivacy.models.prediction import Predictions


class Metric(ABC):
    """One figure of a model's predictions, collected chunk by chunk in bounded memory.

    The value is the same, to the last bit, however the records are cut into chunks.
    """

    name: ClassVar[str]  # its key in documents
    title: ClassVar[str]  # its name within a sentence and on axes
    meaning: ClassVar[str]  # in words, for a page
    tasks: ClassVar[frozenset[str]]  # of `fedprivacy.data.tasks`
    higher_is_better: ClassVar[bool] = True
    is_share: ClassVar[bool] = True  # printed in percent; else a number in the units of the targets
    least: ClassVar[float] = 0.0  # no value is below: intervals are cut there
    most: ClassVar[float] = 1.0  # nor above
    needs_finite: ClassVar[bool] = False  # whether it is undefined for a model that has diverged

    @abstractmethod
    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """Adds a chunk of records.

        Args:
            outputs: The predictions on them.
            targets: The true classes int64, shape (records,), numbers or labels, shape (records, targets), or
                tokens int64, shape (records, positions).
        """

    @abstractmethod
    def value(self) -> float | None:
        """The figure on all records so far, of which there is at least one; None where it is not defined."""


class BlockMean:
    """The mean of a stream of numbers, in memory of one block.

    Whole blocks are added by numpy and the sums of blocks exactly rounded, so the cut into chunks has no
    effect; up to one block it is the mean of numpy.
    """

    BLOCK = 2**20  # numbers: 8 MB

    def __init__(self) -> None:
        self.count = 0
        self._sums: list[float] = []
        self._waiting: list[NDArray[np.float64]] = []
        self._held = 0

    def update(self, values: NDArray[np.float64]) -> None:
        """Adds numbers, shape (numbers,)."""
        self.count += len(values)
        while self._held + len(values) >= self.BLOCK:
            cut = self.BLOCK - self._held
            block = np.concatenate([*self._waiting, values[:cut]])
            self._sums.append(float(block.sum()))
            self._waiting, self._held, values = [], 0, values[cut:]
        if len(values):
            self._waiting.append(values)
            self._held += len(values)

    def value(self) -> float:
        """The mean; NaN where a number was none, or a sum is too large."""
        rest = float(np.concatenate([*self._waiting, np.empty(0)]).sum())
        sums = [*self._sums, rest]
        return math.fsum(sums) / self.count if all(map(math.isfinite, sums)) else math.nan


def finite(value: float) -> float | None:
    """A figure, or None where it is no number."""
    return value if math.isfinite(value) else None
