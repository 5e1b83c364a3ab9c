"""Rules that estimate the mean update though some clients upload what they like.

Each takes the updates of a round, one a row in the order of client ids, float64, shape (clients, parameters),
and the number f of malicious clients that it is to withstand. Reductions run over rows in this order and in
no threaded kernel, so that hosts, chunks and workers change no bit of the result.

| rule | withstands | source |
|---|---|---|
| median | a minority | Yin, Chen, Ramchandran and Bartlett 2018 |
| trimmed-mean | f < n / 2 | the same |
| krum | f < (n - 2) / 2 | Blanchard, El Mhamdi, Guerraoui and Stainer 2017 |
| geometric-median | a minority | Pillutla, Kakade and Harchaoui 2022 |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedprivacy.scenario.sections import Aggregation, least_answers

Rows = NDArray[np.float64]
Update = NDArray[np.float64]

_STEPS, _TOLERANCE = 1000, 1e-12  # of Weiszfeld's algorithm; the tolerance is relative to the spread
_SMOOTHING = 1e-6  # relative to the spread: a row nearer than this weighs as if it were that far away


@dataclass(frozen=True)
class RobustRule:
    """A robust rule in place of the mean.

    Args:
        name: As scenarios have it.
        byzantine: The number of malicious clients that it is to withstand, where the rule needs one.
    """

    name: Aggregation
    byzantine: int = 0

    def enough(self, answers: int) -> bool:
        """Whether so many answers outvote the malicious ones among them."""
        return answers >= least_answers(self.name, self.byzantine)

    def estimate(self, rows: Rows) -> Update:
        """The estimated mean update, shape (parameters,).

        Args:
            rows: At least one, and `enough` of them.
        """
        with np.errstate(over="ignore"):  # a malicious row may be as long as floats allow
            return RULES[self.name](rows, self.byzantine)


def median(rows: Rows, byzantine: int = 0) -> Update:
    """The median of each coordinate."""
    return np.median(rows, axis=0)


def trimmed_mean(rows: Rows, byzantine: int) -> Update:
    """The mean of each coordinate without its f smallest and f largest values."""
    return np.sort(rows, axis=0)[byzantine : len(rows) - byzantine].mean(axis=0)


def krum(rows: Rows, byzantine: int) -> Update:
    """The update with the least sum of squared distances to its n - f - 2 nearest neighbours."""
    count = len(rows)
    squared = np.zeros((count, count))
    for at in range(count - 1):  # differences, since products of long rows would cancel
        squared[at, at + 1 :] = squared[at + 1 :, at] = ((rows[at + 1 :] - rows[at]) ** 2).sum(axis=1)
    np.fill_diagonal(squared, np.inf)  # no row is a neighbour of itself
    scores = np.sort(squared, axis=1)[:, : count - byzantine - 2].sum(axis=1)
    return rows[int(scores.argmin())].copy()


def geometric_median(rows: Rows, byzantine: int = 0) -> Update:
    """The point with the least sum of distances to all updates, by smoothed Weiszfeld steps."""
    point = np.median(rows, axis=0)  # near the honest rows, however far away the others are
    spread = float(np.median(_distances(rows, point)))
    if not spread:
        return point  # most rows are this point, which has the least sum then
    for _ in range(_STEPS):
        weights = 1.0 / np.maximum(_distances(rows, point), _SMOOTHING * spread)
        following = (weights[:, None] * rows).sum(axis=0) / weights.sum()
        moved = float(np.sqrt(((following - point) ** 2).sum()))
        point = following
        if moved <= _TOLERANCE * spread:
            break
    return point


def _distances(rows: Rows, point: Update) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.sqrt(((rows - point) ** 2).sum(axis=1))
    return distances


RULES: Mapping[Aggregation, Callable[[Rows, int], Update]] = {
    "median": median,
    "trimmed-mean": trimmed_mean,
    "krum": krum,
    "geometric-median": geometric_median,
}
