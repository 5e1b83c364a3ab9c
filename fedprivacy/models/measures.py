"""Measures of a classifier beside its accuracy, which says little where classes are of unequal size.

- balanced accuracy: the mean accuracy within the classes that have records;
- F1: the mean over the same classes of the harmonic mean of precision and recall;
- AUROC: one class against the rest, the mean over the classes that some records have and some have not;
- calibration error: the expected calibration error of Guo et al. 2017. Records fall into 15 bins of equal
  width by the probability of the named class; it is the mean distance between accuracy and mean probability
  of a bin, weighted by its records;
- Brier score: half the mean squared distance between the probabilities and the truth, from 0 to 1; of two
  classes it is that of either.

scikit-learn has the same measures, but its import takes longer than a small run: the tests compare with it.
"""

from __future__ import annotations

import math
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
    present = np.unique(y)
    probabilities = predictions.probabilities
    finite = bool(np.isfinite(probabilities).all())
    return Measures(
        balanced_accuracy(y, predictions.named),
        _f1(y, predictions.named),
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
    records, _, hits = _counts(y, named)
    return float(np.mean(hits / records))


def _f1(y: NDArray[np.int64], named: NDArray[np.int64]) -> float:
    # 2 hits / (records + named): the harmonic mean of precision and recall, and 0 where both are.
    records, times_named, hits = _counts(y, named)
    return float(np.mean(2 * hits / (records + times_named)))


def _counts(y: NDArray[np.int64], named: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each class with records: its records, how often it was named, and how often rightly."""
    most = int(max(y.max(), named.max())) + 1
    counts = np.stack([np.bincount(each, minlength=most) for each in (y, named, y[named == y])])
    return counts[:, counts[0] > 0]


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
    if len(present) < 2 or len(present) * len(y) > MOST_SCORES:
        return None
    areas = [_area(probabilities[y == label, label], probabilities[y != label, label]) for label in present]
    return math.fsum(areas) / len(areas)


def _area(inside: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """How often a record of the class scores above another, ties counted half (Mann and Whitney 1947)."""
    ordered = np.sort(others)
    below, at_most = (np.searchsorted(ordered, inside, side) for side in ("left", "right"))
    return float((below.mean() + at_most.mean()) / 2 / len(others))


def _brier(y: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    truth = np.zeros_like(probabilities)
    truth[np.arange(len(y)), y] = 1.0
    return float(((probabilities - truth) ** 2).sum(axis=1).mean() / 2)
