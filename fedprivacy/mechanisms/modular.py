"""Integers modulo 2^b: what clients send and a secure sum adds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

LEAST_BITS, MOST_BITS = 2, 28


def reduce_modulo(values: Integers, bits: int) -> Integers:
    """Reduces integers modulo 2^b, into [0, 2^b)."""
    return values & ((1 << bits) - 1)


def centre(residues: Integers, bits: int) -> Integers:
    """Returns the integers of least size with these residues, in [-2^(b-1), 2^(b-1))."""
    half = 1 << (bits - 1)
    return reduce_modulo(residues + half, bits) - half


class ModularSum:
    """A running sum of messages modulo 2^b, which no order of addition changes.

    Args:
        dimension: The number of coordinates.
        bits: b.
    """

    def __init__(self, dimension: int, bits: int) -> None:
        self.total: Integers = np.zeros(dimension, dtype=np.int64)
        self._bits = bits

    def add(self, message: Integers) -> None:
        """Adds a message, or the sum of several, of shape (dimension,)."""
        self.total = reduce_modulo(self.total + message, self._bits)
