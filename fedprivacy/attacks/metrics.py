"""The figures of one attack on one run; each target is measured by what was fitted without its fold.

A threshold that was fitted where it is measured flatters the attack. So the targets of each fold are measured
at thresholds of the other folds, and counts of all folds are added up. Counts that are held against a bound
are those of the single direction, whose targets helped to fit nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap

import numpy as np

from fedprivacy.attacks.bounds import RATES
from fedprivacy.attacks.intervals import (
    CONFIDENCE,
    Figure,
    difference,
    proportion_high,
    proportion_low,
)
from fedprivacy.attacks.roc import Counts, Roc, auc, auc_within, fold_inflation, mean_curve
from fedprivacy.attacks.targets import Direction, Flags, Targets
from fedprivacy.attacks.tpr_interval import tpr_interval
from fedprivacy.documents.roc import Curve

BALANCED = "balanced"  # the name of the operating point of the largest balanced accuracy
LEAST_OF_A_CLASS = 10  # members, and as many non-members
NONMEMBERS_PER_RATE = 5  # the least expected number of false positives for a figure


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
        thresholds: Of each fold, fitted on the others.
        counts: Of all folds, each at its threshold.
        tpr: Of all members; the interval is for the mean TPR of the folds' scores, each at the best threshold
            whose FPR is not above the wanted one.
    """

    thresholds: tuple[float, ...]
    counts: Counts
    tpr: Figure

    @property
    def fpr(self) -> Figure:
        """The thresholds' mean FPR with its Clopper-Pearson interval."""
        alarms, nonmembers = self.counts.alarms, self.counts.nonmembers
        error = (1 - CONFIDENCE) / 2
        return Figure(
            alarms / nonmembers,
            proportion_low(alarms, nonmembers, error),
            proportion_high(alarms, nonmembers, error),
        )


@dataclass(frozen=True)
class Performance:
    """How well directions tell members apart, by one score or by several. Every interval is over targets.

    Args:
        auc: The area under the ROC curve.
        thresholds: Of each fold that of the largest balanced accuracy on the others.
        balanced: The counts of all folds, each at its threshold.
        tpr_at_fpr: By FPR ("0.1"); None where too few non-members were scored.
        fitted: Whether the scores were chosen or learned from memberships.
    """

    auc: Figure
    thresholds: tuple[float, ...]
    balanced: Counts
    tpr_at_fpr: dict[str, RateAt | None]
    fitted: bool

    @property
    def advantage(self) -> Figure:
        """TPR - FPR at the thresholds; its interval is that of a difference of two proportions.

        Thresholds that are fitted by folds correlate their counts little: of a fixed score the interval
        covers 92 to 95 %. Chosen scores correlate them more: it would cover 80 to 91 %. So their counts are
        divided by what multiplies the variance of an area (`fold_inflation`).
        """
        counts = self.balanced
        parts = (counts.hits, counts.members, counts.alarms, counts.nonmembers)
        figure = difference(*parts)
        if not self.fitted:
            return figure
        wide = difference(*(part / fold_inflation(len(self.thresholds)) for part in parts))
        return Figure(figure.value, wide.low, wide.high)

    @property
    def balanced_accuracy(self) -> Figure:
        """(1 + advantage) / 2, with its interval."""
        advantage = self.advantage
        return Figure((1 + advantage.value) / 2, (1 + advantage.low) / 2, (1 + advantage.high) / 2)


@dataclass(frozen=True)
class Measured(Performance):
    """One attack on one run, in figures.

    Args:
        curve: The ROC curve; of a fitted score the mean of the folds' curves.
        points: The counts of the single direction at each existing threshold, by "balanced" and by FPR
            ("0.1").
        per_class: By class.
        members: Members scored.
        nonmembers: Non-members scored.
    """

    curve: Curve
    points: dict[str, Counts]
    per_class: dict[int, ClassFigure]
    members: int
    nonmembers: int


def measure(targets: Targets) -> Measured:
    """Turns scores into figures.

    Args:
        targets: The scored targets of one run.
    """
    figures = performance(targets.directions, None if targets.fitted else area(targets))
    rates = [float(rate) for rate, figure in figures.tpr_at_fpr.items() if figure is not None]
    return Measured(
        **vars(figures),
        curve=_curve(targets),
        points=_points(targets.single, rates),
        per_class=_per_class(targets),
        members=int(targets.members.sum()),
        nonmembers=int((~targets.members).sum()),
    )


def performance(directions: Sequence[Direction], auc: Figure | None = None) -> Performance:
    """The figures of directions, which may have different scores.

    Args:
        directions: One for each fold.
        auc: The area, where the score was fixed; None: that within folds.
    """
    fitted = [Roc.of(each.known_members, each.known_nonmembers).balanced_threshold for each in directions]
    return Performance(
        auc=auc_within([(each.members, each.nonmembers) for each in directions]) if auc is None else auc,
        fitted=auc is None,
        thresholds=tuple(fitted),
        balanced=_counts(directions, fitted),
        tpr_at_fpr={f"{rate:g}": tpr_at(rate, directions) for rate in RATES},
    )


def area(targets: Targets, among: Flags | None = None) -> Figure:
    """The area under the ROC curve: of all pairs where the score was fixed, else of those within folds.

    Args:
        targets: The scored targets.
        among: Of these alone; None: of all.
    """
    scores, here = targets.held_out, np.ones(len(targets.members), dtype=bool) if among is None else among
    inside, outside = here & targets.members, here & ~targets.members
    if not targets.fitted:
        return auc(scores[inside], scores[outside])
    folds = [targets.folds == fold for fold in np.unique(targets.folds)]
    return auc_within([(scores[inside & fold], scores[outside & fold]) for fold in folds])


def known_areas(targets: Targets) -> list[Figure]:
    """The area on the known targets of each direction: by it scores and attacks are chosen."""
    every = [*targets.directions, targets.single]
    return [auc(each.known_members, each.known_nonmembers) for each in every]


def tpr_at(fpr: float, directions: Sequence[Direction]) -> RateAt | None:
    """The TPR at an FPR; None where fewer than 5/FPR non-members were scored, or too few to fit on.

    *The threshold* of a fold is the k-th largest of the n non-members in the others, k the whole part of
    FPR (n + 1): by a score that was fixed, a further non-member is above it with probability
    k/(n + 1) <= FPR at most, ties or not (a conformal p-value, Bates et al. 2023). It is a score; nothing is
    interpolated.

    *The interval* (`tpr_interval`) covers the draw of the thresholds too. It is widened where it must hold
    the value.

    Args:
        fpr: The false positive rate, in (0, 1).
        directions: One for each fold.
    """
    nonmembers = min(len(each.nonmembers) + len(each.known_nonmembers) for each in directions)
    thresholds = [_threshold(each, fpr) for each in directions]
    fitted = [threshold for threshold in thresholds if threshold is not None]
    if nonmembers * fpr < NONMEMBERS_PER_RATE - 1e-9 or len(fitted) < len(thresholds):
        return None
    counts = _counts(directions, fitted)
    low, high = tpr_interval(directions, fpr)
    value = counts.hits / counts.members
    return RateAt(tuple(fitted), counts, Figure(value, min(low, value), max(high, value)))


def _threshold(direction: Direction, fpr: float) -> float | None:
    """The score of the known non-member at the rank of an FPR; None where there are too few."""
    known = direction.known_nonmembers
    rank = math.floor(fpr * (len(known) + 1) + 1e-9)
    return float(np.partition(known, -rank)[-rank]) if rank else None


def _counts(directions: Sequence[Direction], thresholds: Sequence[float]) -> Counts:
    """The counts of all directions, each at its threshold."""
    total = Counts(0, 0, 0, 0)
    for each, threshold in zip(directions, thresholds, strict=True):
        total += Counts.above(threshold, each.members, each.nonmembers)
    return total


def _points(single: Direction, rates: Sequence[float]) -> dict[str, Counts]:
    """The counts of the single direction, at its own thresholds."""
    thresholds = {BALANCED: Roc.of(single.known_members, single.known_nonmembers).balanced_threshold}
    for rate in rates:
        if (threshold := _threshold(single, rate)) is not None:
            thresholds[f"{rate:g}"] = threshold
    return {at: _counts([single], [threshold]) for at, threshold in thresholds.items()}


def _curve(targets: Targets) -> Curve:
    if not targets.fitted:
        return Roc.of(targets.scores[targets.members], targets.scores[~targets.members]).curve
    pairs = [(each.members, each.nonmembers) for each in targets.directions]
    both = [pair for pair in pairs if all(map(len, pair))]
    return mean_curve([roc.curve for roc in starmap(Roc.of, both)], [len(members) for members, _ in both])


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
        of_class = targets.classes == label
        members, others = (int((of_class & kind).sum()) for kind in (targets.members, ~targets.members))
        enough = min(members, others) >= LEAST_OF_A_CLASS
        by_class[int(label)] = ClassFigure(area(targets, of_class) if enough else None, members, others)
    return by_class
