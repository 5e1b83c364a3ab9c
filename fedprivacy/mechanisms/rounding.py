"""Rounding of vectors to integers whose norm has a bound that is checked exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]

LOG_BETA = -0.5  # log of beta, the probability at most that a rounded vector is longer than the bound
MOST = 2.0**31  # below it coordinates have an exact norm
_ATTEMPTS = 64


def largest_squared_norm(norm: float, dimension: int) -> int:
    """Returns L, the bound on the squared norm of a vector rounded at random, rounded down.

    L = min(norm + sqrt d, sqrt(norm^2 + d/4 + sqrt(2 ln(1/beta)) (norm + sqrt(d)/2)))^2 for beta = e^-1/2. A
    rounded vector keeps to it with probability 1 - beta = 0.39 at least (Kairouz, Liu and Steinke 2021).

    Args:
        norm: The most that the L2 norm is before.
        dimension: d.
    """
    root = math.sqrt(dimension)
    always = (norm + root) ** 2
    likely = norm**2 + dimension / 4 + math.sqrt(-2 * LOG_BETA) * (norm + root / 2)
    return math.floor(min(always, likely))


def squared_norm(vector: Integers) -> int:
    """Returns the squared L2 norm of integers below 2^31 in size, exactly."""
    # Of x = 2^16 a + b each of the three sums stays below 2^63, for up to 2^30 coordinates.
    high, low = vector >> 16, vector & 0xFFFF
    return (int(high @ high) << 32) + (int(high @ low) << 17) + int(low @ low)


def round_within(vector: Numbers, largest: int, stream: np.random.Generator) -> Integers:
    """Rounds each number up or down at random, with the vector as mean, until the norm keeps to its bound.

    Conditioning on the norm costs a small bias, and no privacy: the result always keeps to the bound, and is
    fixed before any noise is drawn. How often it is rounded depends on the vector: do not report it.

    Args:
        vector: Shape (d,), of size below 2^31.
        largest: L, the most that the squared norm of the result may be.
        stream: The random stream of this vector's rounding, and of nothing else.

    Raises:
        ValueError: Even rounded towards zero the vector is too long: it was not clipped.
    """
    down = np.floor(vector)
    whole, part = down.astype(np.int64), vector - down
    for _ in range(_ATTEMPTS):
        rounded = whole + (stream.random(len(vector)) < part)
        if squared_norm(rounded) <= largest:
            return rounded
    # Once in 10^13 vectors at most.
    short = np.trunc(vector).astype(np.int64)
    if squared_norm(short) > largest:
        raise ValueError("the vector is longer than it may be before it is rounded")
    return short
