"""The cost of one run, and the law that fits several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Row:
    """One run.

    Args:
        axis: What is changed: a key of `AXES`.
        work: "lr" or "mlp".
        value: Clients of a round, records of a client, parameters or rounds.
        seconds: Of a round, the median; of rounds, of the run.
        peak: Bytes, the most that the process of the run held.
        worker_peak: Bytes, the most that a worker held; None where the run had none of its own.
    """

    axis: str
    work: str
    value: int
    seconds: float
    peak: float
    worker_peak: float | None


@dataclass(frozen=True)
class Law:
    """A cost that is fixed, and one for each unit: y = fixed + each * x."""

    fixed: float
    each: float

    @classmethod
    def of(cls, x: Sequence[float], y: Sequence[float]) -> Law:
        """The one of the least squared relative error, neither part below 0."""
        values, costs = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
        largest = values.max()  # so that both columns are of a size
        (fixed, each), _ = nnls(np.stack([1 / costs, values / largest / costs], axis=1), np.ones(len(values)))
        return cls(float(fixed), float(each / largest))

    def at(self, x: float) -> float:
        """The cost of x units."""
        return self.fixed + self.each * x
