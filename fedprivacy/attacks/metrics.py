"""The figures of one attack on one run: all measured on the evaluation half, from two ROC curves.

Thresholds are fitted on the calibration half's curve, and nothing in the evaluation half moves them: a
threshold that was fitted where it is measured flatters the attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from fedprivacy.attacks.bounds import RATES
from fedprivacy.attacks.intervals import (
    CONFIDENCE,
    Figure,
    difference,
    proportion_high,
    proportion_low,
)
from fedprivacy.attacks.roc import Counts, Roc, auc
from fedprivacy.attacks.targets import Targets

BALANCED = "balanced"  # the name of the operating point of the largest balanced accuracy
LEAST_OF_A_CLASS = 10  # members, and as many non-members, in the evaluation half
NONMEMBERS_PER_RATE = 5  # the least expected number of false positives for a figure
_TAIL = (1 - CONFIDENCE) / 4  # an interval of the TPR has four ends that may miss


@dataclass(frozen=True)
class ClassFigure:
    """The separation of one class's members from its non-members; None for too few records.

    Each class's interval holds for itself: of twenty, one is expected to miss.
    """

    auc: Figure | None
    members: int
    nonmembers: int


@dataclass(frozen=True)
class RateAt:
    """The TPR at one FPR.

    Args:
        threshold: Fitted on the calibration half.
        counts: Of the evaluation half at this threshold.
        tpr: Of the evaluation half's members; the interval is for the TPR at the best threshold whose FPR is
            not above the wanted one.
    """

    threshold: float
    counts: Counts
    tpr: Figure

    @property
    def fpr(self) -> Figure:
        """The threshold's FPR on the evaluation half, with its Clopper-Pearson interval."""
        alarms, nonmembers = self.counts.alarms, self.counts.nonmembers
        error = (1 - CONFIDENCE) / 2
        return Figure(
            alarms / nonmembers,
            proportion_low(alarms, nonmembers, error),
            proportion_high(alarms, nonmembers, error),
        )


@dataclass(frozen=True)
class Measured:
    """One attack on one run, in figures. Every interval is over targets.

    Args:
        roc: Of the evaluation half. Its area needs no fitting, yet it too is of this half alone: a score may
            have been fitted on the other.
        threshold: Of the largest balanced accuracy on the calibration half; above it is called a member.
        tpr_at_fpr: By FPR ("0.1"); None where too few non-members were scored.
        per_class: By class.
        members: Members scored, in both halves.
        nonmembers: Non-members scored, in both halves.
        fitted: Whether the score was fitted or chosen on the calibration half.
    """

    roc: Roc
    threshold: float
    tpr_at_fpr: dict[str, RateAt | None]
    per_class: dict[int, ClassFigure]
    members: int
    nonmembers: int
    fitted: bool

    @property
    def auc(self) -> Figure:
        """The area under the ROC curve of the evaluation half."""
        return self.roc.auc

    @property
    def measured(self) -> int:
        """The number of targets in the evaluation half."""
        return self.roc.members + self.roc.nonmembers

    @property
    def advantage(self) -> Figure:
        """TPR - FPR at the threshold; its interval is that of a difference of two proportions."""
        counts = self.roc.at(self.threshold)
        return difference(counts.hits, counts.members, counts.alarms, counts.nonmembers)

    @property
    def balanced_accuracy(self) -> Figure:
        """(1 + advantage) / 2, with its interval."""
        advantage = self.advantage
        return Figure((1 + advantage.value) / 2, (1 + advantage.low) / 2, (1 + advantage.high) / 2)

    @property
    def points(self) -> dict[str, Counts]:
        """The counts at each existing threshold, by "balanced" and by FPR ("0.1")."""
        rates = {name: rate.counts for name, rate in self.tpr_at_fpr.items() if rate is not None}
        return {BALANCED: self.roc.at(self.threshold), **rates}


def measure(targets: Targets, *, fitted: bool = False) -> Measured:
    """Turns scores into figures.

    Args:
        targets: The scored targets of one run.
        fitted: Whether the score was fitted on the calibration half (`supervised`), or chosen there
            (`choose_score`), and not fixed before any membership was known; see `tpr_at`.
    """
    fitting, measured = (
        Roc.of(*(targets.of(member=member, calibration=half) for member in (True, False)))
        for half in (True, False)
    )
    pooled = (
        measured
        if fitted
        else Roc.of(targets.of(member=True, calibration=False), targets.scores[~targets.members])
    )
    return Measured(
        roc=measured,
        threshold=fitting.balanced_threshold,
        tpr_at_fpr={f"{rate:g}": tpr_at(rate, fitting, measured, pooled) for rate in RATES},
        per_class=_per_class(targets),
        members=int(targets.members.sum()),
        nonmembers=int((~targets.members).sum()),
        fitted=fitted,
    )


def tpr_at(fpr: float, fitting: Roc, measured: Roc, pooled: Roc) -> RateAt | None:
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
        fpr: The false positive rate, in (0, 1).
        fitting: The curve of the calibration half.
        measured: The curve of the evaluation half.
        pooled: That half's members with the non-members that the interval rests on: those of both halves. If
            the score was fitted, or chosen among others, on the calibration half, its non-members there are
            no fair sample of scores: then those of the evaluation half alone, and with fewer than 5/FPR
            there the lower end is 0.
    """
    k = math.floor(fpr * (fitting.nonmembers + 1) + 1e-9)
    if (fitting.nonmembers + measured.nonmembers) * fpr < NONMEMBERS_PER_RATE - 1e-9 or k == 0:
        return None
    threshold = fitting.largest_nonmember(k)
    counts = measured.at(threshold)
    low, high = _tpr_interval(pooled, fpr)
    value = counts.hits / counts.members
    return RateAt(threshold, counts, Figure(value, min(low, value), max(high, value)))


def _tpr_interval(roc: Roc, fpr: float) -> tuple[float, float]:
    error, low, high = _TAIL, 0.0, 1.0
    above, below = _ranks_beside(roc.nonmembers, fpr)
    if above:
        low = proportion_low(roc.at(roc.largest_nonmember(above)).hits, roc.members, error)
    if below < roc.nonmembers:
        high = proportion_high(roc.at(roc.largest_nonmember(below + 1)).hits, roc.members, error)
    return low, high


@lru_cache(maxsize=1024)  # every attack on the same targets asks for the same ones
def _ranks_beside(nonmembers: int, fpr: float) -> tuple[int, int]:
    """How many of the largest scores lie above the true threshold for sure, and how many may lie above it."""
    ranks = np.arange(1, nonmembers + 1)
    # The j-th largest lies below the true threshold only if fewer than j are at or above that.
    above = int((scipy.stats.binom.cdf(ranks - 1, nonmembers, fpr) <= _TAIL).sum())
    # It lies above the true threshold only if j or more are above that.
    below = int((scipy.stats.binom.sf(ranks - 1, nonmembers, fpr) > _TAIL).sum())
    return above, below


def points_of(runs: Sequence[Measured]) -> dict[str, list[Counts]]:
    """The operating points that every run has, by name, with the counts of each run.

    Args:
        runs: One for each training seed.
    """
    return {
        name: [run.points[name] for run in runs]
        for name in runs[0].points
        if all(name in run.points for run in runs)
    }


def _per_class(targets: Targets) -> dict[int, ClassFigure]:
    if targets.classes is None:
        return {}
    by_class = {}
    for label in np.unique(targets.classes):
        of_class = ~targets.calibration & (targets.classes == label)
        members = targets.scores[of_class & targets.members]
        others = targets.scores[of_class & ~targets.members]
        enough = min(len(members), len(others)) >= LEAST_OF_A_CLASS
        by_class[int(label)] = ClassFigure(
            auc(members, others) if enough else None, len(members), len(others)
        )
    return by_class
