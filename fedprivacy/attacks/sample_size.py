"""When an attack's interval tells nothing, and how many targets or canaries would do."""

from __future__ import annotations

import math
import statistics
from functools import lru_cache
from itertools import count

from fedprivacy.attacks.intervals import CONFIDENCE, proportion_high, proportion_low
from fedprivacy.attacks.one_run_epsilon import Guesses, p_value

WIDEST = 0.5  # of shares: an interval wider than half of all that is possible is no result
GOAL = 0.2  # the width that the numbers below are for
MOST_CANARIES = 100_000  # that an audit adds
_ERROR = (1 - CONFIDENCE) / 2


def tells(low: float, high: float) -> bool:
    """Whether the interval of a share is narrow enough for the share to be a result.

    >>> tells(0.0, 0.99), tells(0.4, 0.6)
    (False, True)
    """
    return high - low <= WIDEST


def tells_epsilon(low: float, high: float | None, claim: float | None) -> bool:
    """Whether the interval of an estimated epsilon tells anything: it excludes 0, or the claim.

    Args:
        low: Its lower end.
        high: Its upper end; None where there is none.
        claim: The claimed epsilon; None without a claim.

    >>> tells_epsilon(0.0, 6.1, 4.8), tells_epsilon(0.0, 2.0, 4.8), tells_epsilon(0.5, None, 4.8)
    (False, True, True)
    """
    return low > 0 or (high is not None and claim is not None and high < claim)


def width(hits: int, trials: int) -> float:
    """The width of the exact 95 % interval (Clopper and Pearson 1934) of `hits` out of `trials`."""
    return proportion_high(hits, trials, _ERROR) - proportion_low(hits, trials, _ERROR)


@lru_cache
def members_needed(widest: float = GOAL) -> int:
    """The smallest number of members of whom any share has an interval of at most this width.

    The interval is widest where half of them are found, so that it holds whatever the attack finds.

    Args:
        widest: In (0, 1].
    """
    return next(number for number in count(1) if width(number // 2, number) <= widest)


def targets_needed(fpr: float, widest: float = GOAL) -> tuple[int, int]:
    """Members and non-members that show the TPR at an FPR in an interval of about this width.

    An empirical TPR has the variance TPR (1 - TPR)/members + slope^2 FPR (1 - FPR)/non-members, with the
    slope of the ROC curve there (Hsieh and Turnbull 1996). Of two normal scores of equal variance the
    interval is widest where half of the members are found; each part is given half of the variance there.

    Args:
        fpr: The false positive rate, in (0, 1).
        widest: In (0, 1].
    """
    normal = statistics.NormalDist()
    variance = (widest / 2 / normal.inv_cdf(1 - _ERROR)) ** 2 / 2
    slope = normal.pdf(0.0) / normal.pdf(normal.inv_cdf(fpr))
    return math.ceil(0.25 / variance), math.ceil(slope**2 * fpr * (1 - fpr) / variance)


@lru_cache
def canaries_needed(
    epsilon: float, delta: float, error: float, share: float, rate: float = 1.0
) -> int | None:
    """The number of canaries whose guesses prove more than an epsilon; None where `MOST_CANARIES` do not.

    Args:
        epsilon: To be exceeded, at least 0.
        delta: Of the claim.
        error: The probability of a false alarm that one check has.
        share: Of the canaries, for how many a guess is made, in (0, 1].
        rate: The share of right guesses; 1: all of them, with which fewest canaries do.
    """

    def proves(canaries: int) -> bool:
        guesses = max(1, round(share * canaries))
        return p_value(Guesses(canaries, guesses, int(rate * guesses + 1e-9)), epsilon, delta) <= error

    # By 5 % at a time: a delta outgrows what ever more guesses prove, so that doubling may miss all that do.
    low, high = 1, 2
    while not proves(high):
        low, high = high, max(high + 1, high * 21 // 20)
        if high > MOST_CANARIES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def rounded_up(number: int) -> int:
    """A needed number with two digits, rounded up.

    >>> rounded_up(104), rounded_up(1675)
    (110, 1700)
    """
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
