"""The ROC curve of a score and the area under it, with an interval that holds near 1 too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fedprivacy.attacks.intervals import Figure, score_interval
from fedprivacy.attacks.targets import Scores


@dataclass(frozen=True)
class Roc:
    """Points of an ROC curve, from (0, 0) to (1, 1), straight between them.

    Args:
        fpr: False positive rates, not falling, shape (points,).
        tpr: True positive rates, not falling, shape (points,).
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]

    def to_json(self) -> dict[str, list[float]]:
        """The points as a JSON object."""
        return {"fpr": self.fpr.tolist(), "tpr": self.tpr.tolist()}


def roc(members: Scores, nonmembers: Scores) -> Roc:
    """The ROC curve: one point for each different score as a threshold, corners only.

    Args:
        members: Scores, larger means rather a member, shape (members,), not empty.
        nonmembers: Scores, shape (nonmembers,), not empty.
    """
    scores = np.concatenate([members, nonmembers])
    order = np.argsort(-scores, kind="stable")
    is_member = order < len(members)
    # Targets of equal score pass a threshold together: a point only where the next score is another.
    last = np.append(np.diff(scores[order]) != 0, True)
    hits = np.append(0, np.cumsum(is_member)[last])
    alarms = np.append(0, np.cumsum(~is_member)[last])
    # A point on the line between its neighbours says nothing.
    turns = np.diff(hits[:-1]) * np.diff(alarms[1:]) != np.diff(hits[1:]) * np.diff(alarms[:-1])
    kept = np.concatenate([[True], turns, [True]])
    return Roc(alarms[kept] / len(nonmembers), hits[kept] / len(members))


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
    ranks = rankdata(np.concatenate([members, nonmembers]))
    # For each target the share of the other group that it is on the right side of.
    beaten = (ranks[:m] - rankdata(members)) / n
    beating = 1 - (ranks[m:] - rankdata(nonmembers)) / m
    area = float(np.clip(beaten.mean(), 0.0, 1.0))
    least, most = min(m, n), max(min(m, n), 3 * m * n / (m + n + 1))
    trials = float(least)
    if 0 < area < 1 and least > 1:
        variance = beaten.var(ddof=1) / m + beating.var(ddof=1) / n
        trials = float(np.clip(area * (1 - area) / variance, least, most)) if variance > 0 else most
    return Figure(area, *score_interval(area, trials))
