"""A public random rotation, which spreads an update evenly over its coordinates."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def padded(dimension: int) -> int:
    """Returns the least power of two that is not below a dimension."""
    return 1 << (dimension - 1).bit_length()


def random_signs(dimension: int, stream: np.random.Generator) -> Numbers:
    """Draws the signs of a rotation, shape (padded(dimension),).

    Args:
        dimension: The numbers of an update.
        stream: The same for every client and the server in a round. It needs no secrecy: no epsilon depends
            on it. It has to be independent of the updates, or a sum may exceed the modulus.
    """
    return 2.0 * stream.integers(0, 2, padded(dimension)).astype(np.float64) - 1.0


def rotate(update: Numbers, signs: Numbers) -> Numbers:
    """Pads an update with zeros and rotates it: random signs, then a Hadamard transform.

    Norms and inner products stay as they are. Each coordinate of the result is sub-Gaussian with variance
    ||update||^2/d over the draw of the signs.

    Args:
        update: Shape (dimension,).
        signs: Of `random_signs`, shape (d,).
    """
    spread = np.zeros(len(signs))
    spread[: len(update)] = update
    return hadamard(spread * signs)


def rotate_back(rotated: Numbers, signs: Numbers, dimension: int) -> Numbers:
    """Undoes `rotate` and drops the padding; shape (dimension,)."""
    return (hadamard(rotated) * signs)[:dimension]


def hadamard(vector: Numbers) -> Numbers:
    """An orthonormal Walsh-Hadamard transform of a vector whose length is a power of two; its own inverse.

    Its outputs come in bit-reversed order.
    """
    size = len(vector)
    values = vector.reshape(1, size)
    while values.shape[1] > 1:
        half = values.reshape(len(values), 2, -1)
        values = np.concatenate([half[:, 0] + half[:, 1], half[:, 0] - half[:, 1]])
    return values.reshape(size) / math.sqrt(size)
