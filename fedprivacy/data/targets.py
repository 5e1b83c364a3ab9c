"""Targets of records that are no classes: numbers within public bounds, and labels that are 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TargetBounds:
    """The public bounds by which numbers are scaled: what clients have determines none of them.

    Args:
        low: What becomes 0, one number for each target.
        high: What becomes 1, one number for each target, above `low`.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, low: float | Sequence[float], high: float | Sequence[float], targets: int) -> TargetBounds:
        """The bounds of so many targets, of which a single number is for all."""
        ends = [tuple(np.broadcast_to(np.asarray(end, np.float64), targets).tolist()) for end in (low, high)]
        return cls(ends[0], ends[1])

    @property
    def width(self) -> NDArray[np.float64]:
        """The distance of the bounds of each target, shape (targets,)."""
        return np.subtract(self.high, self.low)

    def scaled(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Numbers with the bounds at 0 and 1, float32, shape (records, targets); none is cut.

        Args:
            values: Shape (records, targets).
        """
        return ((values.astype(np.float64) - np.array(self.low)) / self.width).astype(np.float32)

    def restored(self, scaled: NDArray[Any]) -> NDArray[np.float64]:
        """Scaled numbers in the units of the targets, shape (records, targets)."""
        return scaled.astype(np.float64) * self.width + np.array(self.low)


def columns(values: NDArray[Any]) -> NDArray[Any]:
    """Targets with a column for each, also where each record has a single one."""
    return values[:, None] if values.ndim == 1 else values
