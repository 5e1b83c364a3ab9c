"""Sums of many vectors with a rounding error that does not grow with their number.

Vectors are added up plainly in blocks of `BLOCK`, and blocks with compensation: the rounding error of each
addition of two blocks is itself summed, and added at the end (Neumaier 1974; Ogita, Rump and Oishi 2005,
algorithm 4.4). With u = 2^-53 and M the sum of the absolute addends the error is at most

    (BLOCK + 2) u M + 2 (n u)^2 M      for n addends below 2^31 (there, Proposition 4.5)

where BLOCK u M is the error of the plain sum of a block. A plain sum of all would err by up to n u M.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = 1024


class RunningSum:
    """A float64 sum of vectors that arrive one by one.

    Args:
        length: Of each vector.
    """

    def __init__(self, length: int) -> None:
        self._high, self._low, self._block = np.zeros(length), np.zeros(length), np.zeros(length)
        self._added, self._first = 0, True

    def add(self, values: NDArray[np.float64]) -> None:
        """Adds a vector, shape (length,)."""
        self._block += values
        self._added += 1
        if self._added == BLOCK:
            self._compensate()

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum so far, shape (length,)."""
        self._compensate()
        return self._high + self._low

    @np.errstate(invalid="ignore")  # infinity less infinity
    def _compensate(self) -> None:
        if not self._added:
            return
        high, block = self._high, self._block
        if self._first:  # zero plus the block is the block, without a rounding error
            self._high, self._block, self._added, self._first = block, high, 0, False
            return
        total = high + block
        back = total - high
        rest = (high - (total - back)) + (block - back)
        # Of an overflow the rest is not a number; added, it would hide that the sum is infinite.
        self._low += np.where(np.isfinite(total), rest, 0.0)
        self._high, self._block, self._added = total, np.zeros_like(block), 0


def sum_of_rows(rows: Tensor) -> Tensor:
    """The sum of the rows of a matrix, float64, shape (columns,), on the CPU.

    Nodes that reply with a sum and the server that receives single updates use this one function, so both get
    the same bits.

    Args:
        rows: float64, shape (rows, columns).
    """
    if len(rows) <= BLOCK:
        return rows.sum(dim=0).cpu()
    total = RunningSum(rows.shape[1])
    for block in rows.split(BLOCK):
        total.add(block.sum(dim=0).cpu().numpy())
    return torch.from_numpy(total.total)
