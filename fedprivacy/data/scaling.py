"""Prepares records for training: columns, scaling, missing values.

"none", "per-record", "per-image" and "bounds" use nothing but the record and the scenario, and "public"
nothing but records that no client owns: none of them costs privacy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.images import square_image
from fedprivacy.data.npz import usable
from fedprivacy.errors import InputError

Block = NDArray[Any]
_LARGE = 1e15  # beyond, squares in float32 may overflow
COLUMN_SHARE = 2 / 3  # of the mean of a column of pixels; chosen on a development split of the digits


@dataclass(frozen=True)
class Scaling:
    """Scales a block of records to a model's inputs.

    Args:
        how: "none", "per-record", "per-image", "bounds" or "public".
        columns: The columns that are used, in this order; None for all.
        fill: Whether a missing value becomes 0 after scaling, or is an error.
        low: "bounds": becomes 0. "public": becomes 0. One number, or one for each value of a record.
        width: "bounds": high - low. "public": the standard deviation.
        cut: "public": scaled values beyond this, either way, are cut.
    """

    how: str = "none"
    columns: tuple[int, ...] | None = None
    fill: bool = False
    low: NDArray[np.float64] | float = 0.0
    width: NDArray[np.float64] | float = 1.0
    cut: float = 3.0

    @property
    def key(self) -> str:
        """Identifies this scaling among others."""
        numbers = (np.asarray(self.low, np.float64), np.asarray(self.width, np.float64))
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.how, self.columns, self.fill, self.cut, numbers[0].shape)).encode())
        digest.update(b"".join(number.tobytes() for number in numbers))
        return digest.hexdigest()

    def used(self, block: Block) -> Block:
        """The columns of a block that are used."""
        return block if self.columns is None else block[:, list(self.columns)]

    def __call__(self, block: Block) -> NDArray[np.float32]:
        """Scaled records, shape (records, *features).

        Raises:
            InputError: if a value is missing and may not be.
        """
        block = self.used(block)
        there = usable(block)
        if there.all():
            return self._scaled(block, None)
        if not self.fill:
            raise InputError('values are missing (NaN or infinite). Set data.missing = "zero".')
        return np.where(there, self._scaled(np.where(there, block, 0), there), np.float32(0))

    def _scaled(self, block: Block, there: NDArray[np.bool_] | None) -> NDArray[np.float32]:
        if self.how == "per-record":
            return per_record(block.astype(np.float32, copy=False), there)
        if self.how == "per-image":
            return per_image(block.astype(np.float32, copy=False), there)
        if self.how == "none":
            return block.astype(np.float32, copy=False)
        scaled = (block - self.low) / self.width
        low, high = (0.0, 1.0) if self.how == "bounds" else (-self.cut, self.cut)
        return np.clip(scaled, low, high).astype(np.float32)


def per_record(x: NDArray[np.float32], there: NDArray[np.bool_] | None = None) -> NDArray[np.float32]:
    """Each record minus its own mean, over its own standard deviation (a constant record becomes 0).

    It uses nothing but the record, so it costs no privacy. All records get the same norm, so clipping
    treats their gradients alike, and no noise is spent on a mean that all records share.

    Args:
        x: Records, shape (records, *features).
        there: Where a value is not missing, same shape; the others count for nothing and stay 0.
    """
    flat = x.reshape(len(x), -1)
    largest = np.abs(flat).max(axis=1, keepdims=True, initial=0)
    if largest.max(initial=0) > _LARGE:  # the scale of a record is taken away in any case
        flat = flat / np.maximum(largest, 1)
        largest = np.minimum(largest, 1)
    if there is None:
        centred = flat - flat.mean(axis=1, keepdims=True)
        deviation = centred.std(axis=1, keepdims=True)
    else:
        valid = there.reshape(flat.shape)
        count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
        centred = np.where(valid, flat - flat.sum(axis=1, keepdims=True, where=valid) / count, 0)
        deviation = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    # Below the rounding of the mean, what deviates is rounding.
    flat_out = deviation <= np.maximum(1e-6, 1e-6 * largest)
    return (
        np.where(flat_out, 0, centred / np.where(flat_out, 1, deviation)).reshape(x.shape).astype(np.float32)
    )


def per_image(x: NDArray[np.float32], there: NDArray[np.bool_] | None = None) -> NDArray[np.float32]:
    """As `per_record`, with two thirds of the mean of each column of pixels taken away in between.

    The common part of a column's pixels reveals little of the image's content, and noise on updates
    costs least where few directions carry the signal. It uses only the record itself.

    Args:
        x: Square images, shape (records, *features) as `square_image` takes them.
        there: Where a value is not missing, same shape; the others count for nothing and stay 0.

    Raises:
        ValueError: if the records are no square images.
    """
    shape = square_image(x.shape[1:])
    if shape is None:
        raise ValueError(f"records of shape {x.shape[1:]} are no square images")
    channels, side = shape
    images = per_record(x, there).reshape(len(x), side, side, channels)
    valid = np.ones_like(images, bool) if there is None else there.reshape(images.shape)
    means = images.sum(axis=1, keepdims=True) / np.maximum(valid.sum(axis=1, keepdims=True), 1)
    left = np.where(valid, images - np.float32(COLUMN_SHARE) * means, 0)
    return per_record(left.reshape(x.shape).astype(np.float32), there)


def moments(blocks: Iterable[Block]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each value over all records of some blocks, missing ones left out.

    Blocks are merged as in Chan, Golub and LeVeque 1979, which loses no digits to a large mean.

    Returns:
        Both float64, of the shape of a record. A value that does not vary has deviation 1.
    """
    count: Any = 0
    mean: Any = 0.0
    squares: Any = 0.0
    for block in blocks:
        there = usable(block)
        values = np.where(there, block, 0).astype(np.float64)
        size = there.sum(axis=0)
        sums = values.sum(axis=0) / np.maximum(size, 1)
        gap, both = sums - mean, np.maximum(count + size, 1)
        squares = (
            squares + (np.where(there, values - sums, 0) ** 2).sum(axis=0) + gap**2 * count * size / both
        )
        mean = mean + gap * size / both
        count = count + size
    deviation = np.sqrt(squares / np.maximum(count, 1))
    return mean, np.where(deviation > 0, deviation, 1.0)
