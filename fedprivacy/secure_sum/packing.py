"""Integers of b bits as bytes, without a gap between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

BLOCK = 2**16  # coordinates at once, a multiple of 8: each block ends with a byte


def packed_size(dimension: int, bits: int) -> int:
    """The bytes of so many integers."""
    return (dimension * bits + 7) // 8


def pack(words: Words, bits: int) -> bytes:
    """Packs the lower b bits of each integer.

    Args:
        words: Shape (dimension,).
        bits: b.
    """
    parts = []
    for start in range(0, len(words), BLOCK):
        raw = words[start : start + BLOCK].astype(">u4").view(np.uint8).reshape(-1, 4)
        parts.append(np.packbits(np.unpackbits(raw, axis=1)[:, 32 - bits :]).tobytes())
    return b"".join(parts)


def unpack(packed: bytes, dimension: int, bits: int) -> Words:
    """Returns the integers of `pack`, in [0, 2^b), shape (dimension,).

    Raises:
        ValueError: The bytes have another length.
    """
    if len(packed) != packed_size(dimension, bits):
        raise ValueError(f"{len(packed)} bytes, not {packed_size(dimension, bits)}")
    words = np.empty(dimension, np.uint32)
    raw = np.frombuffer(packed, np.uint8)
    for start in range(0, dimension, BLOCK):
        count = min(BLOCK, dimension - start)
        part = raw[start * bits // 8 : packed_size(start + count, bits)]
        wide = np.zeros((count, 32), np.uint8)
        wide[:, 32 - bits :] = np.unpackbits(part, count=count * bits).reshape(count, bits)
        words[start : start + count] = np.packbits(wide, axis=1).view(">u4").ravel()
    return words
