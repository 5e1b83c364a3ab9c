"""LiRA, the likelihood ratio attack of Carlini et al. 2022 on the released model.

The confidence of a record is taken for normal, with one mean and deviation over models that were trained on
it and another over models that were not. The score is the log-likelihood ratio of the target's confidence
(online); or, from models without the record alone, how many deviations it lies above their mean (offline,
equation 4).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedprivacy.attacks.released.references import Flags
from fedprivacy.attacks.released.signals import Signals
from fedprivacy.errors import InputError

Variance = Literal["per-record", "global"]
_LEAST = 1e-6  # deviations below it are taken for it: models that agree to the bit would prove anything


def lira(
    target: Signals,
    references: Signals,
    members: Flags,
    *,
    variance: Variance = "per-record",
    offline: bool = False,
) -> Signals:
    """The score of each record, larger for rather a member, shape (records,).

    Args:
        target: Logit-scaled confidences of the target model, shape (records,).
        references: Of the reference models, shape (models, records).
        members: Which records each of these was trained on, shape (models, records).
        variance: Whether each record has variances of its own, or all have two in common, with and
            without the record, pooled over records about their own means. With few models the latter is
            better.
        offline: Whether only models without the record are used.

    Raises:
        InputError: shapes differ, or a record lacks models.
    """
    check(target, references, members)
    mean_out, deviation_out = _normal(references, ~members, variance, "without")
    if offline:
        return (target - mean_out) / deviation_out
    mean_in, deviation_in = _normal(references, members, variance, "with")
    return _log_density(target, mean_in, deviation_in) - _log_density(target, mean_out, deviation_out)


def check(target: Signals, references: Signals, members: Flags) -> None:
    """Refuses signals that do not fit each other.

    Raises:
        InputError: shapes differ, or a signal is not finite.
    """
    if references.shape != members.shape or references.shape[1:] != target.shape:
        raise InputError(
            f"signals: shapes {target.shape} of the target, {references.shape} of references and "
            f"{members.shape} of members; must be (records,), (models, records) and (models, records)."
        )
    if not (np.isfinite(target).all() and np.isfinite(references).all()):
        raise InputError("signals: NaN or infinite; a model's training diverged.")


def _normal(references: Signals, counted: Flags, variance: Variance, which: str) -> tuple[Signals, Signals]:
    """Means, shape (records,), and deviations, of the models that count for each record."""
    models = counted.sum(axis=0)
    needed = 2 if variance == "per-record" else 1
    if models.min(initial=needed) < needed or models.sum() <= len(models):
        raise InputError(
            f"references: {models.min(initial=len(references))} models {which} a record are too few for "
            f"{variance} variances; train more references."
        )
    means = np.where(counted, references, 0.0).sum(axis=0) / models
    squares = (np.where(counted, references - means, 0.0) ** 2).sum(axis=0)
    if variance == "global":
        squares, models = squares.sum(), models.sum() - len(models) + 1
    return means, np.maximum(np.sqrt(squares / (models - 1)), _LEAST)


def _log_density(values: Signals, mean: Signals, deviation: Signals) -> Signals:
    return -np.log(deviation) - ((values - mean) / deviation) ** 2 / 2
