"""The area under the ROC curve, one output against the rest; the mean over outputs."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.models.metrics.metric import Metric
from fedprivacy.models.prediction import Predictions

MOST_SCORES = 5 * 10**7  # of an AUROC over all classes: beyond, sorting them takes minutes


class MeanArea(Metric):
    """The mean over the outputs that some records have and some have not of the area under the ROC curve.

    Its chunks are kept, in at most `MOST_SCORES` numbers.
    """

    needs_finite = True

    def __init__(self) -> None:
        self._targets: list[NDArray[Any]] = []
        self._scores: list[NDArray[np.float64]] = []
        self._held = 0

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        self._held += outputs.probabilities.size
        if self._held > MOST_SCORES:
            self._targets, self._scores = [], []
            return
        self._targets.append(targets)
        self._scores.append(outputs.probabilities)

    def value(self) -> float | None:
        """As `Metric` has it; None without such an output, or of too many records."""
        if self._held > MOST_SCORES:
            return None
        targets, scores = np.concatenate(self._targets), np.concatenate(self._scores)
        areas = []
        for at in range(scores.shape[1]):
            inside = self._inside(targets, at)
            if inside.any() and not inside.all():
                areas.append(_area(scores[inside, at], scores[~inside, at]))
        return math.fsum(areas) / len(areas) if areas else None

    @abstractmethod
    def _inside(self, targets: NDArray[Any], at: int) -> NDArray[np.bool_]:
        """Whether each record has an output, shape (records,)."""


def _area(inside: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """How often a record inside scores above one outside; ties count half (Mann and Whitney 1947)."""
    ordered = np.sort(others)
    below, at_most = (np.searchsorted(ordered, inside, side) for side in ("left", "right"))
    return float((below.mean() + at_most.mean()) / 2 / len(others))
