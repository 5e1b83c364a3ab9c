"""Attacks at a threshold: balanced accuracy and advantage, and the TPR at a fixed FPR.

A target is called a member if its score is *above* the threshold. Thresholds are fitted on the calibration
half, and nothing in the evaluation half moves them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from fedprivacy.attacks.counts import count
from fedprivacy.attacks.intervals import (
    CONFIDENCE,
    Figure,
    difference,
    proportion_high,
    proportion_low,
)
from fedprivacy.attacks.targets import Scores, Targets

NONMEMBERS_PER_RATE = 5  # so many false positives are expected at least, or no figure is given


def balanced_threshold(members: Scores, nonmembers: Scores) -> float:
    """The threshold of the largest balanced accuracy: halfway between two scores, or the largest score.

    Of several as good the highest is taken. If no threshold is better than calling nobody a member, that is
    the largest score, above which there is nobody.

    Args:
        members: Scores of the calibration half, shape (members,), not empty.
        nonmembers: Scores of the calibration half, shape (nonmembers,), not empty.
    """
    values = np.unique(np.concatenate([members, nonmembers]))[::-1]
    gains = _share_above(members, values) - _share_above(nonmembers, values)
    best = int(np.argmax(gains))
    if best == 0:
        return float(values[0])
    above, below = values[best - 1], values[best]
    middle = above / 2 + below / 2  # halved first: a sum may overflow
    return float(middle if below < middle < above else below)


def _share_above(scores: Scores, values: Scores) -> NDArray[np.float64]:
    return 1 - np.searchsorted(np.sort(scores), values, side="right") / len(scores)


def advantage(targets: Targets) -> tuple[float, Figure]:
    """The threshold fitted on the calibration half, and TPR - FPR at it on the evaluation half.

    The interval is over targets: that of a difference of two proportions.
    """
    threshold = balanced_threshold(
        targets.of(member=True, calibration=True), targets.of(member=False, calibration=True)
    )
    found = count(targets, threshold)
    return threshold, difference(found.hits, found.members, found.alarms, found.nonmembers)


def balanced_accuracy(advantage: Figure) -> Figure:
    """(1 + advantage) / 2, with its interval."""
    return Figure((1 + advantage.value) / 2, (1 + advantage.low) / 2, (1 + advantage.high) / 2)


@dataclass(frozen=True)
class RateAt:
    """The TPR at one FPR.

    Args:
        tpr: Of the evaluation half's members; the interval is for the TPR at the best threshold whose FPR is
            not above the wanted one.
        threshold: Fitted on the calibration half.
        fpr: What the threshold's FPR is on the evaluation half, with its Clopper-Pearson interval.
    """

    tpr: Figure
    threshold: float
    fpr: Figure


def tpr_at(targets: Targets, fpr: float, *, fitted: bool) -> RateAt | None:
    """The TPR at an FPR; None where fewer than 5/FPR non-members were scored, or too few to fit on.

    *The threshold* is the k-th largest of the n calibration non-members, k the whole part of FPR (n + 1): a
    further non-member is above it with probability k/(n + 1) <= FPR at most, ties or not (a conformal
    p-value, Bates et al. 2023). It is a score; nothing is interpolated.

    *Which non-members count for 5/FPR*: those of both halves, since both work here: one half sets the
    threshold, the other shows what its FPR is, and the interval rests on both together.

    *The interval* covers the draw of the threshold too. Order statistics of the non-members lie above, and
    below, the true threshold with probability 1 - .0125 each, and the exact intervals of Clopper and Pearson
    for the members above them spend as much again. 5/FPR non-members are just enough for a lower end above 0:
    with e^-5 < .0125 the largest of them lies above the true threshold. The interval is widened where it must
    to hold the value.

    Args:
        targets: The scored targets.
        fpr: The false positive rate, in (0, 1).
        fitted: Whether the score was fitted, or chosen among others, on the calibration half. Its calibration
            non-members are then no fair sample of scores, and the interval rests on those of the evaluation
            half alone: with fewer than 5/FPR there its lower end is 0.
    """
    calibration, others = (targets.of(member=False, calibration=half) for half in (True, False))
    k = math.floor(fpr * (len(calibration) + 1) + 1e-9)
    if (len(calibration) + len(others)) * fpr < NONMEMBERS_PER_RATE - 1e-9 or k == 0:
        return None
    threshold = float(np.sort(calibration)[-k])
    members, found = targets.of(member=True, calibration=False), count(targets, threshold)
    error = (1 - CONFIDENCE) / 2
    low, high = _tpr_interval(members, others if fitted else np.append(calibration, others), fpr)
    value = found.hits / found.members
    return RateAt(
        Figure(value, min(low, value), max(high, value)),
        threshold,
        Figure(
            found.alarms / found.nonmembers,
            proportion_low(found.alarms, found.nonmembers, error),
            proportion_high(found.alarms, found.nonmembers, error),
        ),
    )


def _tpr_interval(members: Scores, nonmembers: Scores, fpr: float) -> tuple[float, float]:
    error = (1 - CONFIDENCE) / 4
    descending, ranks = np.sort(nonmembers)[::-1], np.arange(1, len(nonmembers) + 1)
    # The j-th largest lies below the true threshold only if fewer than j are at or above that.
    above = int((binom.cdf(ranks - 1, len(nonmembers), fpr) <= error).sum())
    # It lies above the true threshold only if j or more are above that.
    below = int((binom.sf(ranks - 1, len(nonmembers), fpr) > error).sum())
    low, high = 0.0, 1.0
    if above:
        hits = int((members > descending[above - 1]).sum())
        low = proportion_low(hits, len(members), error)
    if below < len(nonmembers):
        hits = int((members > descending[below]).sum())
        high = proportion_high(hits, len(members), error)
    return low, high
