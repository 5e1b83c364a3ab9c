"""The exponential mechanism on a public finite grid of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.approach import Approach, Estimate
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.selection import ExponentialMechanism

Vector = NDArray[np.float64]
MOST_CANDIDATES = 10**6
_LEAST = 1e-9


def regular_grid(radius: float, points: int, dimension: int) -> Vector:
    """The points of a regular grid on [-radius, radius]^d that lie within the ball, shape (k, d).

    It is public, and exponential in the dimension: points^d are looked at.

    Raises:
        InputError: They would be more than a million.
    """
    if points < 1 or points**dimension > MOST_CANDIDATES:
        raise InputError(
            f"{points} points in {dimension} dimensions: must be from 1 to {MOST_CANDIDATES:g} in all; the "
            "exponential mechanism is for few dimensions."
        )
    axis = np.linspace(-radius, radius, points) if points > 1 else np.zeros(1)
    corners = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    return corners[np.einsum("ij,ij->i", corners, corners) <= radius**2 * (1 + 1e-12)]


@dataclass(frozen=True)
class GridExponential(Approach):
    """Chooses theta of a public grid with weight exp(-epsilon m J(theta)/(2 D)), or without the 2 (see D).

    D is how far apart one record's losses at two candidates are at most. What is common to all candidates
    moves no choice, so that a record counts as its loss less the least that it has: from 0 to D. Under
    add-remove and zero-out all scores then move the same way, and the 2 goes. J's regulariser depends on no
    record, and the grid is the hypothesis class: the error grows with d ln(points).

    Args:
        candidates: The grid, as rows of d numbers each.
        public: That no candidate was chosen by looking at the records; must be True.

    Raises:
        InputError: The grid is empty, of another dimension, or not stated to be public.
    """

    candidates: Sequence[Sequence[float]] = ()
    public: bool = False
    name: ClassVar[str] = "exponential-grid"
    title: ClassVar[str] = "exponential mechanism on a grid"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Plain numbers, so that two of the same grid are equal.
        rows = np.asarray(self.candidates, dtype=np.float64)
        object.__setattr__(self, "candidates", tuple(map(tuple, rows.tolist())) if rows.ndim == 2 else ())
        if not self.public:
            raise InputError(
                "public = False: the condition of a public grid is not stated. Candidates taken from the "
                "records "
                "(fits, quantiles, bids) give them away whatever epsilon says: take a grid known before, and "
                "say so."
            )
        grid = self.grid
        if grid.ndim != 2 or len(grid) == 0 or grid.shape[1] != self.objective.dimension:
            raise InputError(
                f"candidates: have shape {grid.shape}, and must be (k, {self.objective.dimension}), k at "
                f"least 1."
            )
        if not np.isfinite(grid).all():
            raise InputError("candidates: must all be finite.")

    @cached_property
    def grid(self) -> Vector:
        """The candidates, shape (k, d)."""
        return np.asarray(self.candidates, dtype=np.float64)

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        """The mechanism that chooses."""
        loss, reach = self.objective.loss, float(np.linalg.norm(self.grid, axis=1).max())
        span = max(loss.span(reach), _LEAST)  # 0 where all candidates are 0
        return ExponentialMechanism(self.epsilon, span, monotone=self.adjacency != "replace-one")

    @property
    def noise(self) -> float:
        """0: the result is an unmodified candidate."""
        return 0.0

    def event(self) -> dp.DpEvent:
        """As `Approach` has it."""
        return self.mechanism.event()

    def scores(self, x: Vector, y: Vector) -> Vector:
        """-m J of each candidate, shape (k,): not to be released."""
        losses = np.array([self.objective.loss.value(x @ theta, y).sum() for theta in self.grid])
        penalties = self.objective.regularisation / 2 * np.einsum("ij,ij->i", self.grid, self.grid)
        return -(losses + self.objective.records * penalties)

    def fit(self, x: ArrayLike, y: ArrayLike, stream: np.random.Generator) -> Estimate:
        """As `Approach` has it."""
        features, targets = self.objective.data(x, y, self.adjacency, self.clip)
        chosen = self.grid[int(self.mechanism.draw(self.scores(features, targets), stream))]
        return self._estimate(chosen.copy())

    def assumptions(self) -> tuple[str, ...]:
        """As `Approach` has it."""
        return (*super().assumptions(), f"the grid of {len(self.grid):,} candidates is public")

    @property
    def words(self) -> str:
        """As `Approach` has it."""
        return f"a choice among {len(self.grid):,} candidates, {self.mechanism.words}"

    def excess_bound(self, beta: float = 0.05) -> float:
        """J(estimate) - min over the grid of J is at most this with probability 1 - beta."""
        return self.mechanism.utility_bound(len(self.grid), beta) / self.objective.records
