"""The figures of one attack on one run, all measured on the evaluation half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedprivacy.attacks.bounds import RATES
from fedprivacy.attacks.counts import Counts, count
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.roc import Roc, auc, roc
from fedprivacy.attacks.targets import Targets
from fedprivacy.attacks.thresholds import RateAt, advantage, balanced_accuracy, tpr_at

BALANCED = "balanced"  # the name of the operating point of the largest balanced accuracy
LEAST_OF_A_CLASS = 10  # members, and as many non-members, in the evaluation half


@dataclass(frozen=True)
class ClassFigure:
    """How well one class's members are told from its non-members; None where too few were measured.

    Each class's interval holds for itself: of twenty, one is expected to miss.
    """

    auc: Figure | None
    members: int
    nonmembers: int


@dataclass(frozen=True)
class Measured:
    """One attack on one run, in figures. Every interval is over targets.

    Args:
        auc: Needs no fitting, yet it too is of the evaluation half: a score may have been fitted on the
        other. roc: Of the evaluation half. threshold: Of the largest balanced accuracy on the calibration
        half; above it is called a member. advantage: TPR - FPR at that threshold. balanced_accuracy: (1 +
        advantage) / 2.
        tpr_at_fpr: By FPR ("0.1"); None where too few non-members were scored.
        points: The counts at each threshold, by "balanced" and by FPR ("0.1") where there is a threshold.
        per_class: By class.
        members: Members scored, in both halves.
        nonmembers: Non-members scored, in both halves.
        measured: The targets of the evaluation half.
        fitted: Whether the score was fitted or chosen on the calibration half.
    """

    auc: Figure
    roc: Roc
    threshold: float
    advantage: Figure
    balanced_accuracy: Figure
    tpr_at_fpr: dict[str, RateAt | None]
    points: dict[str, Counts]
    per_class: dict[int, ClassFigure]
    members: int
    nonmembers: int
    measured: int
    fitted: bool


def measure(targets: Targets, *, fitted: bool = False) -> Measured:
    """Turns scores into figures.

    Args:
        targets: The scored targets of one run.
        fitted: Whether the score was fitted on the calibration half (`supervised`), or chosen there
            (`choose_score`), and not fixed before any membership was known; see `tpr_at`.
    """
    members, others = (targets.of(member=member, calibration=False) for member in (True, False))
    threshold, gain = advantage(targets)
    rates = {f"{rate:g}": tpr_at(targets, rate, fitted=fitted) for rate in RATES}
    fixed = {name: found.threshold for name, found in rates.items() if found is not None}
    return Measured(
        auc=auc(members, others),
        roc=roc(members, others),
        threshold=threshold,
        advantage=gain,
        balanced_accuracy=balanced_accuracy(gain),
        tpr_at_fpr=rates,
        points={name: count(targets, at) for name, at in {BALANCED: threshold, **fixed}.items()},
        per_class=_per_class(targets),
        members=int(targets.members.sum()),
        nonmembers=int((~targets.members).sum()),
        measured=int((~targets.calibration).sum()),
        fitted=fitted,
    )


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
    found = {}
    for label in np.unique(targets.classes):
        there = ~targets.calibration & (targets.classes == label)
        members = targets.scores[there & targets.members]
        others = targets.scores[there & ~targets.members]
        enough = min(len(members), len(others)) >= LEAST_OF_A_CLASS
        found[int(label)] = ClassFigure(auc(members, others) if enough else None, len(members), len(others))
    return found
