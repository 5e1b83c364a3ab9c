"""SQKR: a few quantised coordinates in a random basis, reported by k-ary randomised response."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fedprivacy.mechanisms.pure import PureMechanism
from fedprivacy.mechanisms.rotation import padded, random_signs, rotate, rotate_back

Vector = NDArray[np.float64]
# Rotated coordinates are cut at this number of their standard deviations. It balances the error of
# quantising, which grows with it, against the error of cutting.
RANGE = 2.5
# The mean share of a normal coordinate that remains after cutting: E[x cut(x)] / E[x^2].
UNCUT = 1 - 2 * float(ndtr(-RANGE))
MAX_BITS = 20


@dataclass(frozen=True)
class SQKR(PureMechanism):
    """Subsampled, quantised k-ary randomised response (Chen, Kairouz and Ozgur 2020, Section 3).

    The update is rotated by a random Hadamard transform, which spreads it out; b coordinates are drawn;
    each is rounded at random to one of two values; and the word of b bits is reported by randomised
    response over 2^b words. Only these b bits leave a client, since rotation and
    coordinates come from randomness that client and server share, and are independent of the update.
    Here the client computes the server's reading of them and sends that: its distribution is the
    mechanism's, its size on the wire is not.

    The paper spreads an update by Kashin's representation. This code rotates it at random, cuts coordinates
    beyond 2.5 standard deviations and corrects the mean loss: half the work, and a smaller error
    (quantisation range 2.5 instead of about 2.8).

    Args:
        clipping_norm: C.
        epsilon: The budget of one message.
    """

    name: ClassVar[str] = "sqkr"
    title: ClassVar[str] = "SQKR"

    def bits(self, size: int) -> int:
        """The bits b of one message of the least error, about epsilon; at most `size`, a power of two."""
        return _best_bits(self.epsilon, size)

    def randomise(self, update: Vector, stream: np.random.Generator) -> Vector:
        """The server's reading of one client's message, float64, shape (dimension,).

        It is unbiased except for the cut, whose mean over rotations is about 0: a rotated vector has few
        coordinates beyond it, and the mean loss is corrected.

        Args:
            update: The clipped update, shape (dimension,).
            stream: The random stream of this message, and of no other.
        """
        dimension = len(update)
        size = padded(dimension)
        bits = self.bits(size)
        # Signs, coordinates and the transform do not depend on the update, so they cost nothing; only the
        # word of bits below does.
        flips = random_signs(dimension, stream)
        rotated = rotate(update, flips)
        bound = RANGE * self.clipping_norm / math.sqrt(size)
        chosen = stream.choice(size, bits, replace=False, shuffle=False)
        ups = stream.random(bits) < (1.0 + np.clip(rotated[chosen] / bound, -1.0, 1.0)) / 2.0
        truthful = _keep_probability(self.epsilon, bits)
        if stream.random() >= truthful:
            ups = stream.integers(0, 2, bits) == 1  # any word, the true one among them
        read = np.zeros(size)
        read[chosen] = np.where(ups, 1.0, -1.0) * (bound / truthful * size / bits / UNCUT)
        return rotate_back(read, flips, dimension)

    def error(self, dimension: int) -> float:
        """Mean squared error of a message per coordinate, in units of C^2, for an update of norm C."""
        size = padded(dimension)
        bits = self.bits(size)
        # b coordinates of size^2/b^2 times the squared range each; rotating back keeps dimension/size of it.
        return (RANGE / _keep_probability(self.epsilon, bits) / UNCUT) ** 2 / bits - 1 / dimension


def _keep_probability(epsilon: float, bits: int) -> float:
    """The probability that the word is reported, less that of every other word."""
    return math.expm1(epsilon) / (math.exp(epsilon) + 2.0**bits - 1)


@lru_cache(maxsize=64)  # the same for every message
def _best_bits(epsilon: float, size: int) -> int:
    return min(range(1, min(MAX_BITS, size) + 1), key=lambda b: 1 / (_keep_probability(epsilon, b) ** 2 * b))
