"""Measures of a classifier beside its accuracy, which says little where classes are of unequal size.

- balanced accuracy: the mean accuracy within the classes that have records;
- F1: the mean over the same classes of the harmonic mean of precision and recall;
- AUROC: one class against the rest, the mean over the classes that some records have and some have not;
- calibration error: the expected calibration error of Guo et al. 2017. Records fall into 15 bins of equal
  width by the probability of the named class; it is the mean distance between accuracy and mean probability
  of a bin, weighted by its records;
- Brier score: half the mean squared distance between the probabilities and the truth, from 0 to 1; of two
  classes it is that of either.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedprivacy.models.prediction import Predictions

BINS = 15
MOST_SCORES = 5 * 10**7  # of an AUROC over all classes: beyond, sorting them takes minutes


@dataclass(frozen=True)
class Measures:
    """Shares between 0 and 1; None where a measure is not defined, or a probability is no number."""

    balanced_accuracy: float | None
    f1: float | None
    auroc: float | None
    calibration_error: float | None
    brier: float | None

    def to_json(self) -> dict[str, float | None]:
        """As a JSON object."""
        return asdict(self)


def measures(y: NDArray[np.int64], predictions: Predictions) -> Measures:
    """The measures of predictions on records.

    Args:
        y: The true classes, shape (records,), at least one.
        predictions: Of the same records.
    """
    from sklearn.metrics import f1_score

    present = np.unique(y)
    probabilities = predictions.probabilities
    finite = bool(np.isfinite(probabilities).all())
    f1 = f1_score(y, predictions.named, labels=present, average="macro", zero_division=0.0)
    return Measures(
        balanced_accuracy(y, predictions.named),
        float(f1),
        _auroc(y, probabilities, present) if finite else None,
        calibration_error(y, predictions) if finite else None,
        _brier(y, probabilities) if finite else None,
    )


def balanced_accuracy(y: NDArray[np.int64], named: NDArray[np.int64]) -> float:
    """The mean accuracy within the classes that have records.

    Args:
        y: The true classes, shape (records,), at least one.
        named: The predicted ones, same shape.
    """
    from sklearn.metrics import balanced_accuracy_score

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")  # as defined above
        warnings.filterwarnings("ignore", "A single label was found")
        return float(balanced_accuracy_score(y, named))


def calibration_error(y: NDArray[np.int64], predictions: Predictions) -> float:
    """The expected calibration error over `BINS` bins of equal width.

    Args:
        y: The true classes, shape (records,), at least one.
        predictions: Of the same records, all finite.
    """
    confidence = predictions.probabilities[np.arange(len(y)), predictions.named]
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    right = np.bincount(bins, weights=predictions.named == y, minlength=BINS)
    claimed = np.bincount(bins, weights=confidence, minlength=BINS)
    return float(np.abs(right - claimed).sum() / len(y))


def _auroc(
    y: NDArray[np.int64], probabilities: NDArray[np.float64], present: NDArray[np.int64]
) -> float | None:
    from sklearn.metrics import roc_auc_score

    if len(present) < 2 or len(present) * len(y) > MOST_SCORES:
        return None
    areas = [float(roc_auc_score(y == label, probabilities[:, label])) for label in present]
    return math.fsum(areas) / len(areas)


def _brier(y: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    truth = np.zeros_like(probabilities)
    truth[np.arange(len(y)), y] = 1.0
    return float(((probabilities - truth) ** 2).sum(axis=1).mean() / 2)
