"""Metrics of several labels of a record, each yes or no; F1 and AUROC are means over the labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import MULTI_LABEL
from fedprivacy.models.metrics.areas import MeanArea
from fedprivacy.models.metrics.metric import BlockMean, Metric
from fedprivacy.models.prediction import Predictions


class _LabelCounts(Metric):
    """Counts, label by label: records that have it, records named so, and hits."""

    tasks = frozenset({MULTI_LABEL})

    def __init__(self) -> None:
        self._records = 0
        self._counted: NDArray[np.int64] | None = None

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        true, named = targets > 0.5, outputs.named > 0.5
        counted = np.stack([each.sum(axis=0) for each in (true, named, true & named)])
        self._records += len(targets)
        self._counted = counted if self._counted is None else self._counted + counted


class LabelAccuracy(_LabelCounts):
    """The share of all labels of all records that are named rightly."""

    name, title = "label_accuracy", "accuracy of labels"
    meaning = "the share of all yes-or-no labels that are named rightly"

    def value(self) -> float:
        """As `Metric` has it."""
        assert self._counted is not None
        true, named, hits = self._counted
        wrong = int((true + named - 2 * hits).sum())
        return 1 - wrong / (self._records * len(true))


class LabelF1(_LabelCounts):
    """The mean of F1, the harmonic mean of precision and recall, over the labels that occur.

    A label occurs where a record has it, or is predicted to have it.
    """

    name, title = "label_f1", "F1 of labels"
    meaning = "the mean, over labels that are true or predicted of a record, of the F1 score"

    def value(self) -> float | None:
        """As `Metric` has it; None where no label is true or predicted of any record."""
        assert self._counted is not None
        true, named, hits = self._counted[:, (self._counted[0] + self._counted[1]) > 0]
        return math.fsum(2 * hits / (true + named)) / len(true) if len(true) else None


class LabelAuroc(MeanArea):
    """The mean over the labels that some records have and some have not of the area under the ROC curve."""

    name, title = "label_auroc", "AUROC of labels"
    meaning = "the mean over labels of the area under the ROC curve; guessing gives 50 %"
    tasks = frozenset({MULTI_LABEL})

    def _inside(self, targets: NDArray[Any], at: int) -> NDArray[np.bool_]:
        return targets[:, at] > 0.5


class LabelBrier(Metric):
    """The mean squared distance between the probabilities of labels and the truth."""

    name, title = "label_brier", "Brier score of labels"
    meaning = "the squared distance of the labels' probabilities from the truth; 0 is best"
    tasks = frozenset({MULTI_LABEL})
    higher_is_better = False
    needs_finite = True

    def __init__(self) -> None:
        self._mean = BlockMean()

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        self._mean.update(((outputs.probabilities - targets) ** 2).mean(axis=1))

    def value(self) -> float:
        """As `Metric` has it."""
        return self._mean.value()
