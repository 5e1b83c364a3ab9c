"""Empirical epsilon: what repeated runs with and without a canary prove about a mechanism.

A claim is false if a lower bound here exceeds it. The converse is no proof of privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.accounting.gaussian import gaussian_epsilon

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class LowerBound:
    """The result of an audit: a proved lower bound.

    Args:
        epsilon: With the stated confidence the true epsilon is at least this; 0 if nothing was proved.
        ceiling: The largest value that this number of trials can prove.
        confidence: The probability that the statement holds.
        method: How it was computed, and what it assumes.
    """

    epsilon: float
    ceiling: float
    confidence: float
    method: str


def least_distance(statistic: float, freedom: float, scale: float, confidence: float = 0.95) -> float:
    """The lower end of the exact interval of mu, the distance of two normal means in standard deviations.

    The two-sample t statistic has the noncentral t distribution with noncentrality mu * scale.

    Args:
        statistic: The t statistic, positive where the first mean is larger.
        freedom: Its degrees of freedom.
        scale: sqrt(n m / (n + m)) for samples of n and m.
        confidence: One-sided.

    Returns:
        At least 0.
    """

    def excess(mu: float) -> float:
        return float(scipy.stats.nct.sf(statistic, freedom, mu * scale)) - (1 - confidence)

    if statistic <= 0 or excess(0.0) >= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, statistic / scale))


def gaussian_bound(present: Scores, absent: Scores, delta: float, confidence: float = 0.95) -> LowerBound:
    """The bound for scores that are normal with equal variance in both worlds.

    Unsampled Gaussian noise on a canary of known update has such scores, so few trials suffice.
    The effect size mu has the exact interval of the noncentral t distribution, and (epsilon, delta)
    follow from mu-Gaussian DP (Dong, Roth and Su 2022).

    Args:
        present: One score for each run with the canary, shape (trials,).
        absent: One score for each run on the neighbouring data, shape (trials,).
        delta: The delta of the claim.
        confidence: One-sided.
    """
    n, m = len(present), len(absent)
    pooled = math.sqrt((present.var(ddof=1) * (n - 1) + absent.var(ddof=1) * (m - 1)) / (n + m - 2))
    scale = math.sqrt(n * m / (n + m))
    statistic = abs(present.mean() - absent.mean()) / pooled * scale
    low = least_distance(statistic, n + m - 2, scale, confidence)
    method = "difference of means of equal-variance normal scores"
    return LowerBound(gaussian_epsilon(delta, low) if low > 0 else 0.0, math.inf, confidence, method)


def threshold_bound(present: Scores, absent: Scores, delta: float, confidence: float = 0.95) -> LowerBound:
    """The bound for any scores: true and false positive rates at one threshold.

    The threshold is chosen on the first half of the trials and judged on the second, by exact
    binomial intervals (Clopper and Pearson), each at half the error: epsilon >= log((TPR - delta)/FPR).

    Args:
        present: One score for each run with the canary, shape (trials,); larger means present.
        absent: One score for each run on the neighbouring data, shape (trials,).
        delta: The delta of the claim.
        confidence: One-sided.
    """
    half_p, half_a = len(present) // 2, len(absent) // 2
    candidates = np.unique(np.concatenate([present[:half_p], absent[:half_a]]))
    on_first = _bounds(present[:half_p], absent[:half_a], candidates, delta, confidence)
    chosen = candidates[[on_first.argmax()]]
    proved = float(_bounds(present[half_p:], absent[half_a:], chosen, delta, confidence)[0])
    trials = min(len(present) - half_p, len(absent) - half_a)
    error = (1 - confidence) / 2
    least = 1 - error ** (1 / trials)  # the Clopper-Pearson upper end of 0 out of `trials`
    ceiling = math.log(max(1 - least - delta, least) / least)
    return LowerBound(max(0.0, proved), ceiling, confidence, "Clopper-Pearson at one threshold")


def _bounds(present: Scores, absent: Scores, thresholds: Scores, delta: float, confidence: float) -> Scores:
    """The bound that each threshold proves, shape (thresholds,); -infinity for none."""
    error = (1 - confidence) / 2
    n, m = len(present), len(absent)
    hits = n - np.searchsorted(np.sort(present), thresholds)
    alarms = m - np.searchsorted(np.sort(absent), thresholds)
    # Without hits there is no lower end but 0, and where all are alarms no upper one but 1.
    lower = scipy.special.betaincinv(np.maximum(hits, 1), n - hits + 1, error)
    upper = scipy.special.betaincinv(alarms + 1, np.maximum(m - alarms, 1), 1 - error)
    tpr, fpr = np.where(hits > 0, lower, 0.0), np.where(alarms < m, upper, 1.0)
    return np.log(tpr - delta, out=np.full(len(thresholds), -np.inf), where=tpr > delta) - np.log(fpr)
