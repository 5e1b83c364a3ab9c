"""The ROC curve of a score, in counts: the source of every rate, area, threshold and chart.

A target is called a member if its score is *above* a threshold. From score to page there are three views:
`Roc` has each threshold with its counts, `Counts` is one operating point of it, and `Curve` the drawn line,
which result documents store and the report reads (`fedprivacy.documents.roc`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedprivacy.attacks.intervals import Figure, score_interval
from fedprivacy.attacks.targets import FOLDS, Numbers, Scores
from fedprivacy.documents.roc import Curve
from fedprivacy.errors import InputError


@dataclass(frozen=True)
class Counts:
    """One operating point of one attack on one run: the numbers of targets called members there.

    The threshold was fitted on other targets than those that are counted: given the threshold, the counts of
    one direction are numbers of successes in independent trials. Counts of several folds may be added up.

    Args:
        hits: Members that are called members.
        members: All of them.
        alarms: Non-members that are called members.
        nonmembers: All of them.
    """

    hits: int
    members: int
    alarms: int
    nonmembers: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.hits + other.hits,
            self.members + other.members,
            self.alarms + other.alarms,
            self.nonmembers + other.nonmembers,
        )

    @classmethod
    def above(cls, threshold: float, members: Scores, nonmembers: Scores) -> Counts:
        """The operating point of a threshold."""
        hits, alarms = (int((scores > threshold).sum()) for scores in (members, nonmembers))
        return cls(hits, len(members), alarms, len(nonmembers))

    def to_json(self) -> dict[str, int]:
        """The counts as a JSON object."""
        return {
            "hits": self.hits,
            "members": self.members,
            "alarms": self.alarms,
            "nonmembers": self.nonmembers,
        }


@dataclass(frozen=True, eq=False)
class Roc:
    """The ROC curve of a score: the counts of members and non-members above each threshold.

    Args:
        thresholds: Each different score, falling, then -infinity, shape (points,).
        hits: Members above each threshold, from 0 to all, shape (points,).
        alarms: Non-members above each threshold, from 0 to all, shape (points,).

    Raises:
        ValueError: the points are not equally many.
    """

    thresholds: Scores
    hits: Numbers
    alarms: Numbers

    def __post_init__(self) -> None:
        if not 2 <= len(self.thresholds) == len(self.hits) == len(self.alarms):
            raise ValueError("thresholds, hits and alarms are not equally many")

    @classmethod
    def of(cls, members: Scores, nonmembers: Scores) -> Roc:
        """Computes the curve.

        Args:
            members: Scores, larger means rather a member, shape (members,), not empty.
            nonmembers: Scores, shape (nonmembers,), not empty.
        """
        thresholds = np.unique(np.concatenate([members, nonmembers]))[::-1]
        hits, alarms = (
            np.append(len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right"), len(scores))
            for scores in (members, nonmembers)
        )
        return cls(np.append(thresholds, -np.inf), hits, alarms)

    @property
    def members(self) -> int:
        """The number of scored members."""
        return int(self.hits[-1])

    @property
    def nonmembers(self) -> int:
        """The number of scored non-members."""
        return int(self.alarms[-1])

    @property
    def tpr(self) -> NDArray[np.float64]:
        """The true positive rate at each threshold, shape (points,)."""
        return np.asarray(self.hits / self.members)

    @property
    def fpr(self) -> NDArray[np.float64]:
        """The false positive rate at each threshold, shape (points,)."""
        return np.asarray(self.alarms / self.nonmembers)

    @property
    def curve(self) -> Curve:
        """The line to draw: corners only, since a point on the line between its neighbours adds nothing."""
        hits, alarms = self.hits, self.alarms
        turns = np.diff(hits[:-1]) * np.diff(alarms[1:]) != np.diff(hits[1:]) * np.diff(alarms[:-1])
        corners = np.concatenate([[True], turns, [True]])
        return Curve(fpr=tuple(self.fpr[corners].tolist()), tpr=tuple(self.tpr[corners].tolist()))

    @property
    def balanced_threshold(self) -> float:
        """The threshold of the largest balanced accuracy: halfway between two scores, or the largest score.

        Of several as good the highest is taken. If no threshold is better than calling nobody a member, that
        is the largest score, which no score is above.
        """
        # From the targets below, not above: the rounding decides between thresholds that are equally good.
        missed, rejected = self.members - self.hits, self.nonmembers - self.alarms
        gains = (1 - missed / self.members) - (1 - rejected / self.nonmembers)
        best = int(np.argmax(gains[:-1]))
        if best == 0:
            return float(self.thresholds[0])
        above, below = self.thresholds[best - 1], self.thresholds[best]
        middle = above / 2 + below / 2  # halved first: a sum may overflow
        return float(middle if below < middle < above else below)


def auc(members: Scores, nonmembers: Scores) -> Figure:
    """The area under the ROC curve: P(a member's score is larger), ties counting half.

    Its variance over targets is that of DeLong, DeLong and Clarke-Pearson 1988. Their interval closes up near
    an area of 1, on the logit scale too (10 + 10 targets, true area .996: it covers 17 %, in 2,000
    simulations). So here the variance becomes the number of trials that a proportion of that variance has,
    and the interval is Wilson's for it, as is done for survey samples (Franco et al. 2019). That number stays
    between the smaller group, since no scores have a larger variance (Birnbaum and Klose 1957), and what
    equal distributions give. In simulations it covers 93 to 99 %, from 10 + 10 targets on and
    up to an area of .996, if the score was fixed.

    Args:
        members: Scores, larger means rather a member, shape (members,), not empty.
        nonmembers: Scores, shape (nonmembers,), not empty.
    """
    area, trials = _area([(members, nonmembers)])
    return Figure(area, *score_interval(area, trials))


def auc_within(folds: Sequence[tuple[Scores, Scores]]) -> Figure:
    """The mean area of folds by their members, each by a score that was fitted on the other folds.

    Such scores are not comparable across folds, so that a pair counts if both are in one fold (LeDell,
    Petersen and van der Laan 2015), and deviations are from the fold's area.

    The areas of folds are not independent: each fold helps to fit what the others are measured by. Without
    that the interval covers 84 to 88 % of fitted scores that tell nothing. No variance that the folds show
    accounts for it without bias (Bengio and Grandvalet 2004). So it is multiplied (`fold_inflation`). In
    simulations of chosen and learned scores the interval then covers at least 93 %, of those that tell
    nothing and of strong ones.

    Args:
        folds: The scores of members and of non-members in each; a fold without both counts for nothing.

    Raises:
        InputError: no fold has both.
    """
    pairs = [(members, others) for members, others in folds if len(members) and len(others)]
    if not pairs:
        raise InputError("members: no fold has both members and non-members: take more targets.")
    area, trials = _area(pairs)
    return Figure(area, *score_interval(area, trials / fold_inflation(len(pairs))))


def fold_inflation(folds: int) -> float:
    """What the variance of a mean over folds is multiplied by where each helps to fit the others.

    It is 1 + K n/N of K folds, n targets in one and N in the others (Nadeau and Bengio 2003).

    >>> fold_inflation(5)
    2.25
    """
    return 1 + folds / (FOLDS - 1)


def _area(pairs: Sequence[tuple[Scores, Scores]]) -> tuple[float, float]:
    """The mean area of independent folds, and the number of trials of a proportion as uncertain."""
    m, n = (np.array([len(pair[kind]) for pair in pairs]) for kind in (0, 1))
    weights = m / m.sum()
    # For each target the share of the other group in its fold that it is on the right side of.
    beaten = [_below(members, others) / len(others) for members, others in pairs]
    beating = [1 - _below(others, members) / len(members) for members, others in pairs]
    areas = np.array([shares.mean() for shares in beaten])
    area = float(np.clip(weights @ areas, 0.0, 1.0))
    least = 1 / float((weights**2 / np.minimum(m, n)).sum())
    most = max(least, 3 / float((weights**2 * (m + n + 1) / (m * n)).sum()))
    trials = least
    if 0 < area < 1 and min(m.sum(), n.sum()) > len(pairs):
        spread, other_spread = (
            sum(float(((shares - mean) ** 2).sum()) for shares, mean in zip(parts, areas, strict=True))
            / (int(sizes.sum()) - len(pairs))
            for parts, sizes in ((beaten, m), (beating, n))
        )
        variance = spread / m.sum() + other_spread * float((weights**2 / n).sum())
        trials = float(np.clip(area * (1 - area) / variance, least, most)) if variance > 0 else most
    return area, trials


def mean_curve(curves: Sequence[Curve], weights: Sequence[float]) -> Curve:
    """The mean TPR of several curves at each FPR, whose area is the mean of their areas.

    Args:
        curves: At least one.
        weights: Of each, above 0.
    """
    shares = np.asarray(weights) / np.sum(weights)
    fprs = np.unique(np.concatenate([curve.fpr for curve in curves]))
    low, high = np.zeros(len(fprs)), np.zeros(len(fprs))
    for curve, share in zip(curves, shares, strict=True):
        x, y = np.array(curve.fpr), np.array(curve.tpr)
        low += share * _at(x, y, fprs, "left")  # an upright part is reached at its lower end
        high += share * _at(x, y, fprs, "right")  # and left at its upper one
    tprs = np.maximum.accumulate(np.minimum(np.stack([low, high], axis=1).ravel(), 1.0))
    points = np.stack([np.repeat(fprs, 2), tprs], axis=1)
    points = points[np.append(True, (np.diff(points, axis=0) != 0).any(axis=1))]
    return Curve(fpr=tuple(points[:, 0].tolist()), tpr=tuple(points[:, 1].tolist()))


def _at(x: Scores, y: Scores, fprs: Scores, side: Literal["left", "right"]) -> Scores:
    """The TPR at FPRs; of an upright part the lower end ("left"), or the upper one ("right")."""
    after = np.clip(np.searchsorted(x, fprs, side=side), 1, len(x) - 1)
    before = after - 1
    run = x[after] - x[before]
    # Both are on one upright part at either end of the curve alone.
    there = np.full(len(fprs), float(side == "right"))
    share = np.divide(fprs - x[before], run, out=there, where=run > 0)
    return y[before] + share * (y[after] - y[before])


def _below(scores: Scores, others: Scores) -> Scores:
    """How many of the others lie below each score, equal ones counting half, shape (scores,)."""
    ordered = np.sort(others)
    return (np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")) / 2
