"""Rounding of vectors to integers whose norm has a bound that is checked exactly."""

from __future__ import annotations

import math

import numpy as np

from fedprivacy.mechanisms.modular import Integers
from fedprivacy.mechanisms.rotation import Numbers

LOG_BETA = -0.5  # log of beta, the probability at most that a rounded vector is longer than the bound
LARGEST_COORDINATE = 2.0**31 - 1  # up to it a vector's norm is exact
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

    Conditioning on the norm costs a bias, and no privacy: the result always keeps to the bound, and is
    fixed before any noise is drawn. The bias is small where the norm is well above 1. How often the vector is
    rounded depends on it: do not report that.

    A vector that cannot keep to the bound, since it was not clipped or is not finite, becomes zero. An
    exception would reveal it.

    Args:
        vector: Shape (d,).
        largest: L, the most that the squared norm of the result may be.
        stream: The random stream of this vector's rounding, and of nothing else.
    """
    if not (np.abs(vector) <= LARGEST_COORDINATE).all():  # also where it is not a number
        return np.zeros(len(vector), dtype=np.int64)
    down = np.floor(vector)
    whole, part = down.astype(np.int64), vector - down
    for _ in range(_ATTEMPTS):
        rounded = whole + (stream.random(len(vector)) < part)
        if squared_norm(rounded) <= largest:
            return rounded
    # Once in 10^13 vectors at most.
    short = np.trunc(vector).astype(np.int64)
    return short if squared_norm(short) <= largest else np.zeros_like(short)
