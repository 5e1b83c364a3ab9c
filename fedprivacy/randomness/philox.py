"""Philox4x64-10 for many counters at once: the words that numpy draws one stream at a time.

A block of four words is a function of a key and a counter alone (Salmon et al. 2011), so that the blocks of
many streams are one computation on arrays. The words are those of `numpy.random.Philox`, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_ROUNDS = 10
_LOW, _HALF = np.uint64(2**32 - 1), np.uint64(32)
_FACTORS = np.array([[0xD2E7470EE14C6C93], [0xCA5A826395121157]], np.uint64)
_LOW_FACTORS, _HIGH_FACTORS = _FACTORS & _LOW, _FACTORS >> _HALF
_WEYL = np.array([[0x9E3779B97F4A7C15], [0xBB67AE8584CAA73B]], np.uint64)  # added to the key in each round


def half_words(key: Words, members: NDArray[np.int64], round: int, blocks: int) -> NDArray[np.uint32]:
    """The first words of several streams, cut in halves as generators use them for 32-bit draws.

    Args:
        key: Of all streams, shape (2,).
        members: The third word of each stream's counter, shape (streams,).
        round: The fourth word of all counters.
        blocks: How many blocks of each stream.

    Returns:
        Shape (8 * blocks, streams).
    """
    first, second = np.empty((2, 2, blocks, len(members)), np.uint64)
    first[0], first[1] = np.arange(1, blocks + 1, dtype=np.uint64)[:, None], members  # numpy counts from 1
    second[0], second[1] = 0, round
    even, odd = _rounds(key, first.reshape(2, -1), second.reshape(2, -1))
    halves = np.empty((blocks, 4, 2, len(members)), np.uint32)
    for place, words in enumerate((even[0], odd[0], even[1], odd[1])):
        block = words.reshape(blocks, -1)
        halves[:, place, 0] = block  # cut to the lower half
        halves[:, place, 1] = block >> _HALF
    return halves.reshape(8 * blocks, -1)


def _rounds(key: Words, even: Words, odd: Words) -> tuple[Words, Words]:
    """The even and the odd words of each block, both of shape (2, counters), from those of its counter."""
    key = key.reshape(2, 1).copy()
    for number in range(_ROUNDS):
        if number:
            key += _WEYL
        # The product of 128 bits by schoolbook, in four products of 64 bits.
        low, high = even & _LOW, even >> _HALF
        middle = low * _LOW_FACTORS
        middle >>= _HALF
        low *= _HIGH_FACTORS
        middle += low & _LOW
        middle += high * _LOW_FACTORS
        middle >>= _HALF
        low >>= _HALF
        high *= _HIGH_FACTORS
        high += low
        high += middle
        even, odd = high[::-1] ^ odd ^ key, (even * _FACTORS)[::-1]
    return even, odd
