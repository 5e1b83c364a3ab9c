"""Hadamard response: one bit of the true category's column of a Hadamard matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.frequency import Counts, FrequencyOracle, Reports, half_distinguished
from fedprivacy.mechanisms.rotation import padded


@dataclass(frozen=True)
class HadamardResponse(FrequencyOracle):
    """A random row of the Hadamard matrix, and the category's entry in it as a randomised bit.

    The one-bit form of Hadamard response (Acharya and Sun 2019, Section 4), which is what Apple's
    Hadamard count mean sketch does once it has hashed (2017). The matrix is Sylvester's, of the least power
    of two K >= k: the entry in row r and column j is 1 if r and j have an odd number of ones in common
    in binary, else 0. Two columns are equal in exactly half of all rows. The row needs no secret,
    so that the report is in truth one bit, where a unary encoding has k. For that its variance is
    (E + 1)^2 / 4E times that of OUE, E = e^eps: 1.06 times at eps = 0.5, 1.27 at 1, 2.4 at 2.

    A report is 2 r + bit, int32, shape (clients,). It supports the categories whose entry in row r is the
    reported bit.
    """

    name: ClassVar[str] = "hadamard-response"
    title: ClassVar[str] = "Hadamard response"
    procedure: ClassVar[str] = (
        "each client names a set of categories that holds its own, or by chance one that does not"
    )

    @property
    def size(self) -> int:
        """K, the rows of the matrix."""
        return padded(self.categories)

    @property
    def p(self) -> float:
        """The probability that the client's own category is supported: that the entry is reported truly."""
        return 1 - RandomizedResponse(self.epsilon).flip

    @property
    def q(self) -> float:
        """The probability that any other category is supported."""
        # Columns of a Hadamard matrix are orthogonal: any two agree in exactly half of the rows.
        return 0.5

    def draw(self, values: ArrayLike, stream: np.random.Generator) -> NDArray[np.int32]:
        """2 row + bit, int32, shape (clients,); see `FrequencyOracle.draw`."""
        columns = self._checked(values).astype(np.int32)
        rows = stream.integers(0, self.size, len(columns), dtype=np.int32)
        bits = RandomizedResponse(self.epsilon).draw(parity(rows & columns), stream)
        return 2 * rows + bits

    def support(self, reports: Reports) -> Counts:
        """The number of reports that agree with each category's column, int64, shape (categories,)."""
        checked = self._integers(reports, reports.ndim == 1, 2 * self.size, "reports must be 2 row + bit")
        counts = np.bincount(checked, minlength=2 * self.size).reshape(self.size, 2)
        # Agreements less disagreements are the transform of the reported zeros less ones in each row.
        difference = walsh_hadamard(counts[:, 0] - counts[:, 1])[: self.categories]
        return (difference + len(checked)) // 2

    def event(self) -> dp.DpEvent:
        """The event of one report: two columns agree in half of the rows, which then reveal nothing."""
        return half_distinguished(self.epsilon)


def parity(numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Whether numbers below 2^31 have an odd number of ones in binary: 0 or 1."""
    folded = numbers ^ (numbers >> 16)
    for shift in (8, 4, 2, 1):
        folded ^= folded >> shift
    return folded & 1


def walsh_hadamard(vector: NDArray[Any]) -> NDArray[Any]:
    """The sums over i of vector[i] (-1)^(ones that i and j have in common), for each j, in its own order.

    Exact for integers, where `rotation.hadamard` is orthonormal and has the order that was fastest.

    Args:
        vector: Its length is a power of two.
    """
    size, values = len(vector), vector
    half = 1
    while half < size:
        pairs = values.reshape(-1, 2, half)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return values.reshape(size)
