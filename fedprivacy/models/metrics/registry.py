"""All metrics, and the one that is the headline of each task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL, NEXT_TOKEN, REGRESSION
from fedprivacy.models.metrics.classes import F1, Accuracy, Auroc, BalancedAccuracy, Brier, CalibrationError
from fedprivacy.models.metrics.labels import LabelAccuracy, LabelAuroc, LabelBrier, LabelF1
from fedprivacy.models.metrics.metric import Metric
from fedprivacy.models.metrics.numbers import R2, MeanAbsoluteError, Rmse
from fedprivacy.models.metrics.tokens import Perplexity, TokenAccuracy
from fedprivacy.models.prediction import Predictions

# In the order of pages.
METRICS: tuple[type[Metric], ...] = (
    *(Accuracy, BalancedAccuracy, F1, Auroc, CalibrationError, Brier),
    *(R2, Rmse, MeanAbsoluteError),
    *(LabelAccuracy, LabelF1, LabelAuroc, LabelBrier),
    *(TokenAccuracy, Perplexity),
)
# Higher is better for each: comparisons and choices of settings read it so.
PRIMARY: dict[str, type[Metric]] = {
    CLASSIFICATION: Accuracy,
    REGRESSION: R2,
    MULTI_LABEL: LabelAccuracy,
    NEXT_TOKEN: TokenAccuracy,
}


def metrics_of(task: str) -> tuple[type[Metric], ...]:
    """The metrics of a task beside its primary one, in their order."""
    return tuple(metric for metric in METRICS if task in metric.tasks and metric is not PRIMARY[task])


class Measurement:
    """Several metrics of the same records, collected chunk by chunk.

    Args:
        metrics: Their classes.
    """

    def __init__(self, metrics: Sequence[type[Metric]]) -> None:
        self.metrics = [metric() for metric in metrics]
        self._finite = True

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """Adds a chunk of records, as `Metric.update` does."""
        self._finite = self._finite and bool(np.isfinite(outputs.probabilities).all())
        for metric in self.metrics:
            if self._finite or not metric.needs_finite:
                metric.update(outputs, targets)

    def values(self) -> dict[str, float | None]:
        """By name; None where a metric is not defined, or a probability that it reads is no number."""
        return {
            metric.name: None if metric.needs_finite and not self._finite else metric.value()
            for metric in self.metrics
        }


def measure(
    metrics: Sequence[type[Metric]], chunks: Iterable[tuple[Predictions, NDArray[Any]]]
) -> dict[str, float | None]:
    """The values of metrics by name.

    Args:
        metrics: Their classes.
        chunks: Predictions with the targets of the same records, at least one record in all.
    """
    measurement = Measurement(metrics)
    for outputs, targets in chunks:
        measurement.update(outputs, targets)
    return measurement.values()
