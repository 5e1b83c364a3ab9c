"""The confidence interval of the TPR at an FPR, for a threshold that non-members set.

Two draws are uncertain: which FPR a threshold has, and how many members are above it. An interval for each,
at half the error, would be much too wide together. Here one distribution joins both, as the Bayesian
bootstrap of an ROC curve does (Gu, Ghosal and Roy 2008), in closed form:

- of N non-members Binomial(N, FPR) lie above the true threshold, so that it lies between the j-th and the
  (j+1)-th largest with a known probability, anywhere between them;
- given the members above it, the TPR is distributed between the two beta distributions whose quantiles are
  the ends of Clopper and Pearson (1934).

The interval lies between a quantile of the lower mixture and one of the upper. In simulations it covers at
least 93 %, with ties, for tiny and for large TPRs, and for scores chosen or learned by folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc

from fedprivacy.attacks.intervals import CONFIDENCE
from fedprivacy.attacks.targets import Direction

_TAIL = (1 - CONFIDENCE) / 2
_CUT = 1e-9  # ranks of a smaller probability on either side are left out

Vector = NDArray[np.float64]


def tpr_interval(directions: Sequence[Direction], fpr: float) -> tuple[float, float]:
    """The 95 % interval of the TPR at the best threshold whose FPR is not above the wanted one.

    Of several directions it is that of their mean TPR, by members. Each counts its members above the
    non-members of the same rank, known and measured; the rank of the true threshold is taken for the same in
    all, since they share their non-members, which is exact for one score and too wide for several.

    Args:
        directions: With measured members.
        fpr: In (0, 1).
    """
    pools = [np.concatenate([each.nonmembers, each.known_nonmembers]) for each in directions]
    nonmembers = min(map(len, pools))
    ranks, weights = _ranks(nonmembers, fpr)
    hits = np.zeros(len(ranks), dtype=np.int64)
    for each, pool in zip(directions, pools, strict=True):
        # Rank 0 is above all scores, and the one after the last below all.
        falling = np.concatenate([[np.inf], np.sort(pool)[::-1], [-np.inf]])
        at = np.minimum(ranks * len(pool) // nonmembers, len(pool) + 1)
        hits += len(each.members) - np.searchsorted(np.sort(each.members), falling[at], side="right")
    members = sum(len(each.members) for each in directions)
    counts, places = np.unique(hits, return_inverse=True)
    shares = np.bincount(places, weights)

    def below(x: float) -> float:
        """The probability that the TPR is at most x, by the lower mixture."""
        inner = betainc(np.maximum(counts, 1), members - counts + 1, x)
        return float(shares @ np.where(counts > 0, inner, 1.0))

    def above(x: float) -> float:
        """The probability that the TPR is at least x, by the upper mixture."""
        inner = betainc(np.maximum(members - counts, 1), counts + 1, 1 - x)
        return float(shares @ np.where(counts < members, inner, 1.0))

    low = 0.0 if below(0.0) >= _TAIL else brentq(lambda x: below(x) - _TAIL, 0.0, 1.0)
    high = 1.0 if above(1.0) >= _TAIL else brentq(lambda x: above(x) - _TAIL, 0.0, 1.0)
    return float(low), float(high)


@lru_cache(maxsize=1024)  # every attack on the same targets asks for the same ones
def _ranks(nonmembers: int, fpr: float) -> tuple[NDArray[np.int64], Vector]:
    """The ranks between which the true threshold lies, and their weights: half of each gap to either end."""
    first, last = (int(scipy.stats.binom.ppf(share, nonmembers, fpr)) for share in (_CUT, 1 - _CUT))
    ranks = np.arange(first, last + 2)
    gaps = scipy.stats.binom.pmf(ranks[:-1], nonmembers, fpr)
    weights = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2
    return ranks, weights / weights.sum()
