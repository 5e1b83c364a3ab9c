"""Shuffled orders from many streams at once, each the one that its stream alone shuffles.

`numpy.random.Generator.shuffle` swaps each place, from the last, with one that it draws below or at it: 32
bits of the stream, cut to the length of the place's number and drawn again while they exceed it (Fisher and
Yates; rejection by masks). Here the streams go through their draws side by side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.randomness.philox import Words, half_words

Index = NDArray[np.int64]

_LONGEST, _STREAMS = 40, 8  # measured: longer orders, or fewer streams for each number, take less one by one
_MARGIN = 3.0  # standard deviations of the number of draws


def side_by_side(streams: int, count: int) -> bool:
    """Whether `shuffled_orders` takes less time than shuffling with each stream."""
    return 1 < count <= min(_LONGEST, streams // _STREAMS)


def shuffled_orders(
    key: Words, members: Index, round: int, count: int, passes: int
) -> tuple[Index, NDArray[np.bool_]]:
    """Shuffles the numbers from 0 to `count` - 1 in each stream, one pass after the other.

    Args:
        key: Of all streams, shape (2,).
        members: As `half_words` has them, shape (streams,).
        round: As `half_words` has it.
        count: How many numbers, at least 2.
        passes: How many orders of each stream.

    Returns:
        Orders, shape (streams, passes, count); and which streams rejected so many draws that theirs are not
        complete, shape (streams,).
    """
    tops = np.tile(np.arange(count - 1, 0, -1), passes)  # the place of each swap
    masks = (1 << np.frexp(tops)[1]) - 1
    chances = (tops + 1) / (masks + 1)
    draws = (1 / chances).sum() + _MARGIN * np.sqrt(((1 - chances) / chances**2).sum())
    halves = half_words(key, members, round, int(np.ceil(draws / 8)))
    swaps = _accepted(halves, np.append(masks, 0).astype(np.uint32), np.append(tops, -1))
    incomplete = swaps[0] < 0
    swaps[:, incomplete] = 0
    streams = len(members)
    orders = np.empty((passes, count, streams), np.int64)
    orders[:] = np.arange(count)[:, None]
    places = (swaps * streams + np.arange(streams)).reshape(passes, count - 1, streams)
    for rows, others in zip(orders, places, strict=True):
        flat = rows.reshape(-1)
        for top, other in zip(range(count - 1, 0, -1), others, strict=True):
            moved = flat.take(other)
            flat[other] = rows[top]
            rows[top] = moved
    return orders.transpose(2, 0, 1), incomplete


def _accepted(halves: NDArray[np.uint32], masks: NDArray[np.uint32], tops: Index) -> Index:
    """The accepted draw of each swap, shape (swaps, streams); where a stream lacks some, its first is -1.

    Args:
        halves: The draws of each stream, shape (draws, streams).
        masks: Of each swap, and of the end.
        tops: The largest draw that each swap accepts; none at the end.
    """
    streams = halves.shape[1]
    swap, stream = np.zeros(streams, np.int64), np.arange(streams)
    accepted = np.empty(len(tops) * streams, np.int64)
    for half in halves:
        drawn = masks.take(swap)
        drawn &= half
        accepted[swap * streams + stream] = drawn  # the next draw replaces it where it is rejected
        swap += drawn <= tops.take(swap)
    swaps = accepted.reshape(-1, streams)[:-1]
    swaps[0, swap < len(swaps)] = -1
    return swaps
