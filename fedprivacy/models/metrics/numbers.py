"""Metrics of predicted numbers; R2 of several targets of a record is the mean over the targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import REGRESSION
from fedprivacy.models.metrics.metric import BlockMean, Metric, finite
from fedprivacy.models.prediction import Predictions


class _PerTarget(Metric):
    """A mean of one number for each target, target by target.

    As a metric it is of a single target: several may have different units, and their mean has none.
    """

    tasks = frozenset({REGRESSION})
    higher_is_better = False
    is_share = False
    most = math.inf

    def __init__(self) -> None:
        self._means: list[BlockMean] = []

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        self._means = self._means or [BlockMean() for _ in range(targets.shape[1])]
        with np.errstate(over="ignore", invalid="ignore"):  # a model that diverged
            values = self._of(outputs.named - targets)
        for mean, column in zip(self._means, values.T, strict=True):
            mean.update(np.ascontiguousarray(column))

    def _of(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError

    def single(self) -> float | None:
        """The mean of the only target; None of several."""
        return self.values()[0] if len(self._means) == 1 else None

    def values(self) -> list[float]:
        """The mean of each target."""
        return [mean.value() for mean in self._means]


class Rmse(_PerTarget):
    """The root of the mean squared error."""

    name, title = "rmse", "RMSE"
    meaning = "the root of the mean squared error, in units of a single target; 0 is best"

    def _of(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        return errors**2

    def value(self) -> float | None:
        """As `Metric` has it; None of several targets."""
        square = self.single()
        return None if square is None else finite(math.sqrt(square))


class MeanAbsoluteError(_PerTarget):
    """The mean distance between prediction and target."""

    name, title = "mean_absolute_error", "mean absolute error"
    meaning = "the mean distance of prediction and target, in units of a single target; 0 is best"

    def _of(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(errors)

    def value(self) -> float | None:
        """As `Metric` has it; None of several targets."""
        mean = self.single()
        return None if mean is None else finite(mean)


class R2(Metric):
    """The share of the targets' variance that the predictions explain: 1 - squared error / variance.

    Both are over the held-out records. Targets are taken relative to the first, so that a mean far from
    zero loses no digits.
    """

    name, title = "r2", "R2"
    meaning = "the share of the targets' variance that is explained; predicting their mean gives 0 %"
    tasks = frozenset({REGRESSION})
    least = -math.inf

    def __init__(self) -> None:
        self._errors = Rmse()
        self._first: NDArray[np.float64] | None = None
        self._means: list[tuple[BlockMean, BlockMean]] = []

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        self._errors.update(outputs, targets)
        if self._first is None:
            self._first = targets[0].astype(np.float64)
            self._means = [(BlockMean(), BlockMean()) for _ in range(targets.shape[1])]
        for (mean, square), column in zip(self._means, (targets - self._first).T, strict=True):
            mean.update(np.ascontiguousarray(column))
            square.update(column**2)

    def value(self) -> float | None:
        """As `Metric` has it; None where a target is the same for all records."""
        variances = [square.value() - mean.value() ** 2 for mean, square in self._means]
        if not all(variance > 0 for variance in variances):
            return None
        errors = self._errors.values()
        shares = [1 - error / variance for error, variance in zip(errors, variances, strict=True)]
        return finite(math.fsum(shares) / len(shares)) if all(map(math.isfinite, shares)) else None
