"""Metrics of a classifier. Accuracy alone says little where classes are of unequal size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.models.metrics.areas import MeanArea
from fedprivacy.models.metrics.metric import BlockMean, Metric
from fedprivacy.models.prediction import Predictions

BINS = 15


class ClassCounts(Metric):
    """Counts, class by class: its records, how often it was named, and how often rightly."""

    tasks = frozenset({CLASSIFICATION})

    def __init__(self) -> None:
        self._counted = np.zeros((3, 0), dtype=np.int64)

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        named = outputs.named
        most = max(int(max(targets.max(), named.max())) + 1, self._counted.shape[1])
        counted = np.stack(
            [np.bincount(each, minlength=most) for each in (targets, named, targets[named == targets])]
        )
        counted[:, : self._counted.shape[1]] += self._counted
        self._counted = counted

    def counts(self, classes: int = 0) -> NDArray[np.int64]:
        """Records, namings and hits, shape (3, classes); of at least so many classes."""
        missing = max(0, classes - self._counted.shape[1])
        return np.pad(self._counted, ((0, 0), (0, missing)))

    def known(self) -> NDArray[np.int64]:
        """Records, namings and hits of the classes that have records, shape (3, classes)."""
        return self._counted[:, self._counted[0] > 0]


class Accuracy(ClassCounts):
    """The share of all records whose class is named rightly."""

    name, title = "accuracy", "accuracy"
    meaning = "the share of records whose class is named rightly"

    def value(self) -> float:
        """As `Metric` has it."""
        records, _, hits = self.known()
        return int(hits.sum()) / int(records.sum())


class BalancedAccuracy(ClassCounts):
    """The mean accuracy within the classes that have records."""

    name, title = "balanced_accuracy", "balanced accuracy"
    meaning = "the mean accuracy within the k classes; guessing gives 1/k"

    def value(self) -> float:
        """As `Metric` has it."""
        records, _, hits = self.known()
        return math.fsum(hits / records) / len(records)


class F1(ClassCounts):
    """The mean over the same classes of the harmonic mean of precision and recall, which is F1."""

    name, title = "f1", "F1"
    meaning = "the mean over classes of the harmonic mean of precision and recall"

    def value(self) -> float:
        """As `Metric` has it."""
        # 2 hits / (records + named): the harmonic mean of precision and recall, and 0 where both are.
        records, times_named, hits = self.known()
        return float(np.mean(2 * hits / (records + times_named)))


class Auroc(MeanArea):
    """One class against the rest, the mean over the classes that some records have and some have not."""

    name, title = "auroc", "AUROC"
    meaning = "the mean over classes of the area under the ROC curve; guessing gives 50 %"
    tasks = frozenset({CLASSIFICATION})

    def _inside(self, targets: NDArray[Any], at: int) -> NDArray[np.bool_]:
        return targets == at


class CalibrationError(Metric):
    """The expected calibration error of Guo et al. 2017.

    Records fall into `BINS` bins of equal width by the probability of the named class; it is the mean
    distance between accuracy and mean probability of a bin, weighted by its records.
    """

    name, title = "calibration_error", "calibration error"
    meaning = "how far the probability of the named class is from its accuracy, in 15 bins; 0 is best"
    tasks = frozenset({CLASSIFICATION})
    higher_is_better = False
    needs_finite = True

    def __init__(self) -> None:
        self._records = 0
        self._right, self._claimed = np.zeros(BINS), np.zeros(BINS)

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        confidence = outputs.probabilities[np.arange(len(targets)), outputs.named]
        bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        self._records += len(targets)
        # Added one after the other, so that the cut into chunks changes no bit.
        np.add.at(self._right, bins, outputs.named == targets)
        np.add.at(self._claimed, bins, confidence)

    def value(self) -> float:
        """As `Metric` has it."""
        return float(np.abs(self._right - self._claimed).sum() / self._records)


class Brier(Metric):
    """Half the mean squared distance between the probabilities and the truth, from 0 to 1.

    Of two classes it is that of either.
    """

    name, title = "brier", "Brier score"
    meaning = "half the squared distance of the probabilities from the truth; 0 is best"
    tasks = frozenset({CLASSIFICATION})
    higher_is_better = False
    needs_finite = True

    def __init__(self) -> None:
        self._mean = BlockMean()

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        truth = np.zeros_like(outputs.probabilities)
        truth[np.arange(len(targets)), targets] = 1.0
        self._mean.update(((outputs.probabilities - truth) ** 2).sum(axis=1))

    def value(self) -> float:
        """As `Metric` has it."""
        return self._mean.value() / 2
