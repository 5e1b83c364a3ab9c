"""Pure-DP releases known only by their epsilon, and the optimal composition theorem for them.

Kairouz, Oh and Viswanath 2015, Theorems 3.2 and 3.3: every epsilon_0-DP release is a function of randomised
response on one bit at epsilon_0, so k answers of that bound the cost of k such releases. The number N of true
answers is binomial, under either bit, and the privacy loss is (2N - k) epsilon_0.
"""

from __future__ import annotations

import math

import attr
import numpy as np
import scipy
from dp_accounting import dp_event as dp

# scipy's binomial tails are right to some 1e-12 of themselves (measured against exact fractions up to
# 10,000 answers); this share is subtracted from delta.
_RELATIVE_ERROR = 1e-9


@attr.s(frozen=True, slots=True, auto_attribs=True)
class PureDpEvent(dp.DpEvent):
    """A release of which only its epsilon under the adjacency of the run is known.

    dp_accounting has no event for it: its RandomizedResponseDpEvent covers replaced answers alone.

    Args:
        epsilon: At least 0.
    """

    epsilon: float


def composed_delta(epsilon: float, epsilon_0: float, count: int) -> float:
    """The least delta of `count` answers of randomised response, each epsilon_0-DP, at `epsilon`.

    Args:
        epsilon: At least 0.
        epsilon_0: Of one answer, above 0.
        count: The number of answers.
    """
    # Losses above epsilon: 2N - count > epsilon / epsilon_0.
    most = math.floor((epsilon / epsilon_0 + count) / 2)
    if most >= count:
        return 0.0
    # By the probability of the other answer: 1 minus it would round to 1 for a large epsilon_0.
    other = math.exp(-epsilon_0) / (1 + math.exp(-epsilon_0))
    log_true = scipy.stats.binom.logcdf(count - most - 1, count, other)
    log_other = scipy.stats.binom.logsf(most, count, other)
    if not np.isfinite(log_true):
        return 0.0
    return float(math.exp(log_true) * -math.expm1(min(0.0, epsilon + log_other - log_true)))


def composed_epsilon(delta: float, epsilon_0: float, count: int) -> float:
    """The least epsilon of `count` answers of randomised response at `delta`, rounded up.

    Args:
        delta: In (0, 1).
        epsilon_0: Of one answer, above 0.
        count: The number of answers.
    """
    delta *= 1 - _RELATIVE_ERROR
    low, high = 0.0, count * epsilon_0
    if composed_delta(low, epsilon_0, count) <= delta:
        return low
    # Keeps delta(high) <= delta, so the result is rounded up.
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if composed_delta(middle, epsilon_0, count) <= delta else (middle, high)
    return high
