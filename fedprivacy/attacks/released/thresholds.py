"""Attacks that compare one number of the target's output with a threshold; none needs another model.

The loss (Yeom et al. 2018), the largest probability and the entropy (Salem et al. 2019, Shokri et al. 2017),
the modified entropy and thresholds of each class (Song and Mittal 2021).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.attacks.cross_fitting import cross_fitted
from fedprivacy.attacks.released.signals import Signals, scaled
from fedprivacy.attacks.roc import Roc
from fedprivacy.attacks.targets import Flags, Numbers, check_folds

Labels = NDArray[np.int64]


def loss(logs: Signals, y: Labels) -> Signals:
    """Minus the logarithm of the odds against the label: ordered as minus the loss, shape (records,).

    Args:
        logs: Log-probabilities of the target, shape (records, classes).
        y: Labels, shape (records,).
    """
    return scaled(logs, y)


def confidence(logs: Signals) -> Signals:
    """The logit-scaled largest probability, whatever the label; arguments as in `loss`."""
    return scaled(logs, logs.argmax(axis=1))


def entropy(logs: Signals) -> Signals:
    """Minus the logarithm of the entropy of the output; arguments as in `loss`."""
    return -np.log(np.maximum(-(np.exp(logs) * logs).sum(axis=1), np.finfo(np.float64).tiny))


def modified_entropy(logs: Signals, y: Labels) -> Signals:
    """Minus the logarithm of the modified entropy, which is 0 for certainty in the label alone.

    -(1 - p_y) log p_y - sum over others of p_i log(1 - p_i); arguments as in `loss`.
    """
    rows, probabilities = np.arange(len(y)), np.exp(logs)
    # 1 - p, of all classes, to the last digit: the sum of the others.
    odds = np.stack([scaled(logs, np.full(len(y), c)) for c in range(logs.shape[1])], axis=1)
    rest = -np.logaddexp(0.0, odds)  # log(1 - p)
    terms = -probabilities * rest
    terms[rows, y] = -np.exp(rest[rows, y]) * logs[rows, y]
    return -np.log(np.maximum(terms.sum(axis=1), np.finfo(np.float64).tiny))


def by_class(scores: Signals, y: Labels, members: Flags, folds: Numbers) -> Signals:
    """Scores less the threshold of their class, so that one threshold, 0, serves all.

    Each class's is that of the largest balanced accuracy on known records; where these have no members or no
    non-members of a class, it is that of all classes. Shape (directions, records), see `cross_fitted`.

    Args:
        scores: Shape (records,).
        y: Labels, shape (records,).
        members: Whether a record is a member, shape (records,).
        folds: The fold of each record, shape (records,).

    Raises:
        InputError: a direction lacks members or non-members.
    """
    check_folds(members, folds, len(scores))

    def fit(known: Flags, _: int) -> Signals:
        inside, outside = known & members, known & ~members
        centred = scores - Roc.of(scores[inside], scores[outside]).balanced_threshold
        for label in np.unique(y):
            of_class = y == label
            if (of_class & inside).any() and (of_class & outside).any():
                curve = Roc.of(scores[of_class & inside], scores[of_class & outside])
                centred[of_class] = scores[of_class] - curve.balanced_threshold
        return centred

    return cross_fitted(fit, members, folds, by_direction=False)
