"""The ROC curve of a score, in counts: the source of every rate, area, threshold and chart.

A target is called a member if its score is *above* a threshold. From score to page there are three views:
`Roc` has each threshold with its counts, `Counts` is one operating point of it, and `Curve` the drawn line,
which result documents store and the report reads (`fedprivacy.documents.roc`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedprivacy.attacks.intervals import Figure, score_interval
from fedprivacy.attacks.targets import Numbers, Scores
from fedprivacy.documents.roc import Curve


@dataclass(frozen=True)
class Counts:
    """One operating point of one attack on one run: the numbers of targets called members there.

    The threshold was fitted on the calibration half, and all counts are of the evaluation half: given the
    threshold they are numbers of successes in independent trials.

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
        auc: The area under the curve, with its interval (`auc`).

    Raises:
        ValueError: the points are not equally many.
    """

    thresholds: Scores
    hits: Numbers
    alarms: Numbers
    auc: Figure

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
        return cls(np.append(thresholds, -np.inf), hits, alarms, auc(members, nonmembers))

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

    def at(self, threshold: float) -> Counts:
        """The operating point of a threshold."""
        point = int((self.thresholds > threshold).sum())
        return Counts(int(self.hits[point]), self.members, int(self.alarms[point]), self.nonmembers)

    def largest_nonmember(self, rank: int) -> float:
        """The score of the non-member at this rank, 1 for the largest score."""
        return float(self.thresholds[int(np.searchsorted(self.alarms, rank)) - 1])


def auc(members: Scores, nonmembers: Scores) -> Figure:
    """The area under the ROC curve: P(a member's score is larger), ties counting half.

    Its variance over targets is that of DeLong, DeLong and Clarke-Pearson 1988. Their interval closes up near
    an area of 1, on the logit scale too (10 + 10 targets, true area .996: it covers 17 %, in 2,000
    simulations). So here the variance becomes the number of trials that a proportion of that variance has,
    and the interval is Wilson's for it, as is done for survey samples (Franco et al. 2019). That number stays
    between the smaller group, since no scores have a larger variance (Birnbaum and Klose 1957), and what
    equal distributions give. In simulations it covers 93 to 99 %, from 10 + 10 targets on and
    up to an area of .996.

    Args:
        members: Scores, larger means rather a member, shape (members,), not empty.
        nonmembers: Scores, shape (nonmembers,), not empty.
    """
    m, n = len(members), len(nonmembers)
    # For each target the share of the other group that it is on the right side of.
    beaten = _below(members, nonmembers) / n
    beating = 1 - _below(nonmembers, members) / m
    area = float(np.clip(beaten.mean(), 0.0, 1.0))
    least, most = min(m, n), max(min(m, n), 3 * m * n / (m + n + 1))
    trials = float(least)
    if 0 < area < 1 and least > 1:
        variance = beaten.var(ddof=1) / m + beating.var(ddof=1) / n
        trials = float(np.clip(area * (1 - area) / variance, least, most)) if variance > 0 else most
    return Figure(area, *score_interval(area, trials))


def _below(scores: Scores, others: Scores) -> Scores:
    """How many of the others lie below each score, equal ones counting half, shape (scores,)."""
    ordered = np.sort(others)
    return (np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")) / 2
