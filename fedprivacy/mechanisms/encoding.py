"""Finite code books for clipped updates, small enough to account exactly for any noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from fedprivacy.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

ENCODINGS = ("signs", "top-k", "levels")
MOST_LEVELS = 1000


@dataclass(frozen=True)
class Encoder:
    """A code of updates: a public, finite set of vectors of norm at most C.

    - "signs": each coordinate is C/sqrt(d), -C/sqrt(d), or 0 where the update's is 0.
    - "top-k": the k largest coordinates (of equal ones the first) become C/sqrt(k) or -C/sqrt(k), or 0 if
      they are 0 in the update; all others become 0.
    - "levels": each coordinate is rounded towards 0 to a multiple of C/(levels sqrt(d)), so no norm
      grows.

    Every update, a zero one included, has a code in the book, which depends on that update alone. Signs and
    top-k discard the length of an update: a short one counts as much as a long one.

    Source: the idea to map updates to a smaller set before the noise is that of Nasr, Shokri and Houmansadr
    2020 (arXiv 2007.11524), whose code rounds each coordinate to the nearest of a list of levels; these
    books, whose norms and differences are bounded by their making, are ours.

    Args:
        kind: One of `ENCODINGS`.
        clipping_norm: C.
        coordinates: k, the largest number of non-zero coordinates of a code; d except for "top-k".
        dimension: d, the numbers of an update.
        levels: Of "levels"; 0 for the others.

    Raises:
        InputError: A value is out of range.
    """

    kind: str
    clipping_norm: float
    coordinates: int
    dimension: int
    levels: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ENCODINGS:
            raise InputError(f"encoding = {self.kind!r}: must be one of {', '.join(ENCODINGS)}.")
        whole = self.kind != "top-k"
        if not 1 <= self.coordinates <= self.dimension or (whole and self.coordinates != self.dimension):
            raise InputError(
                f"encoding {self.kind!r}: {self.coordinates} of {self.dimension} coordinates: must be "
                f"{'all' if whole else 'from 1 to all'}."
            )
        least = 1 if self.kind == "levels" else 0
        if not least <= self.levels <= least * MOST_LEVELS:
            raise InputError(
                f"encoding {self.kind!r}: {self.levels} levels: must be "
                f"{f'from 1 to {MOST_LEVELS}' if least else '0'}."
            )

    @property
    def ternary(self) -> bool:
        """Whether each coordinate of a code is a, 0 or -a for one a."""
        return self.kind != "levels"

    @property
    def size(self) -> float:
        """a, the size of a ternary code's non-zero coordinates: C/sqrt(k), rounded down to k a^2 <= C^2."""
        value = self.clipping_norm / math.sqrt(self.coordinates)
        while self.coordinates * Fraction(value) ** 2 > Fraction(self.clipping_norm) ** 2:
            value = math.nextafter(value, 0.0)
        return value

    @property
    def step(self) -> float:
        """The step between levels."""
        return self.clipping_norm / (self.levels * math.sqrt(self.dimension))

    def encode(self, updates: Tensor) -> Tensor:
        """The codes of clipped updates, float64, shape (clients, dimension).

        Args:
            updates: Finite, float64, of norm C at most for "levels", shape (clients, dimension).

        Raises:
            InputError: The updates have another dimension, for which the size of a code is not made.
        """
        if updates.ndim != 2 or updates.shape[1] != self.dimension:
            raise InputError(
                f"updates of shape {tuple(updates.shape)}: encoding {self.kind!r} is made for "
                f"{self.dimension} coordinates: they must have shape (clients, {self.dimension})."
            )
        if not self.ternary:
            import torch  # takes a second, and a budget needs none

            # Rounding towards 0 increases no norm, so codes keep the bound C of clipped updates.
            sizes = updates.abs()
            codes = torch.trunc(sizes / self.step) * self.step
            # Where the quotient was rounded up to a whole number.
            codes = torch.where(codes > sizes, (codes - self.step).clamp_min(0.0), codes)
            return torch.copysign(codes, updates)
        codes = updates.sign() * self.size
        if self.coordinates == self.dimension:
            return codes
        return codes.masked_fill_(~_largest(updates.abs(), self.coordinates), 0.0)


def _largest(sizes: Tensor, count: int) -> Tensor:
    """Where the `count` largest of each row are, of equal ones the first; bool, shape (rows, columns)."""
    import torch

    # Ties go to the first coordinates, so that a code never has more than `count` non-zero ones.
    least = torch.kthvalue(sizes, sizes.shape[1] - count + 1, dim=1, keepdim=True).values
    above, equal = sizes > least, sizes == least
    room = count - above.sum(dim=1, keepdim=True)
    return above | (equal & (equal.cumsum(dim=1) <= room))
