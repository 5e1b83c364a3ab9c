"""Tests the number of right guesses in one run against a whole trade-off curve.

The theorem of Steinke et al. (`empirical`) takes one (epsilon, delta) and loses much where noise is Gaussian:
it does not notice that half of the noise is missing. Mahloujifar, Melis and Chaudhuri 2024 ("Auditing
f-differential privacy in one run") compare guesses with the curve. Of m fair coins r are guessed, W rightly.
For each canary an output with W = j and a right guess on it is, if its coin falls otherwise, one with W = j-1
and a wrong guess on it; so, on average over coins and canaries, for a curve T (the largest TPR at each FPR,
concave) and every c

    sum over j >= c of j/m P[W = j]  <=  T(sum over j >= c of (r - j + 1)/m P[W = j - 1]).

Starting from P[W >= v] = p these inequalities force probability on W = v - 1, v - 2, ... If the total exceeds
1, p is too large. The total is least if none of these gets more than the forced probability.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from fedprivacy.attacks.one_run_epsilon import Guesses
from fedprivacy.attacks.tradeoff import TradeOff

LEAST = 1e-9  # smaller probabilities are reported as this
_HALVINGS = 30
# False positive rates; between two of them the lower one is taken, which allows more guesses.
_RATES = np.unique(np.concatenate([[0.0], np.geomspace(1e-15, 1e-3, 6000), np.linspace(1e-3, 1.0, 20000)]))


class Inverse:
    """The least FPR at which a curve allows a TPR, rounded down.

    Args:
        curve: Concave, for neighbours either way round.
    """

    def __init__(self, curve: TradeOff) -> None:
        self._rates: list[float] = _RATES.tolist()
        self._reached: list[float] = np.maximum.accumulate(curve.tpr(_RATES)).tolist()

    def __call__(self, tpr: float) -> float:
        return self._rates[max(0, bisect_left(self._reached, tpr) - 1)]


def curve_p_value(guesses: Guesses, curve: TradeOff | Inverse) -> float:
    """Upper bound of the probability of at least this many right guesses, for anything within the curve.

    Args:
        guesses: m, r and v, with r fixed before the coins that were guessed.
        curve: What is claimed.

    Returns:
        From `LEAST` to 1.
    """
    inverse = curve if isinstance(curve, Inverse) else Inverse(curve)
    if guesses.right == 0 or not _too_large(guesses, inverse, 1.0):
        return 1.0
    low, high = np.log(LEAST), 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _too_large(guesses, inverse, float(np.exp(middle))) else (middle, high)
    return float(np.exp(high))


def _too_large(guesses: Guesses, inverse: Inverse, p: float) -> bool:
    """Whether P[W >= v] = p would require more than probability 1.

    `right` is the sum of j/m P[W = j] so far, `wrong` that of (r - j)/m P[W = j], each as small as it can be.
    """
    m, r, v = guesses.trials, guesses.made, guesses.right
    right, wrong = p * v / m, p * (r - v) / m
    for c in range(v, 0, -1):
        needed = max(wrong, inverse(right))
        right += (c - 1) / (r - c + 1) * (needed - wrong)
        wrong = needed
        if right + wrong > r / m * (1 + 1e-12):
            return True
    return False
