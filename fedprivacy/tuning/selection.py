"""Private selection: releases the best of a random number of runs, and nothing of the others.

Liu and Talwar 2019 (random stopping), Papernot and Steinke 2022 (other laws of the number, in Renyi terms).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.epsilon import Accounted, epsilon
from fedprivacy.accounting.events import releases
from fedprivacy.errors import InputError
from fedprivacy.tuning.repetitions import Repetitions


@dataclass(frozen=True)
class PrivateSelection:
    """Each repetition runs one candidate, drawn uniformly with replacement, on noise of its own.

    A repetition returns a private model and a private score. Only the best model and its score are released;
    the others and their number stay secret. Adaptive choice of the next candidate by the scores of earlier
    ones is *not* covered.

    Args:
        candidates: The number of candidates to draw from.
        repetitions: The law of the number of runs.

    Raises:
        InputError: There is no candidate.

    >>> selection = PrivateSelection(candidates=3, repetitions=Repetitions.geometric(6))
    >>> selection.draw(np.random.default_rng(1)).tolist()
    [2, 2, 0, 0]
    """

    candidates: int
    repetitions: Repetitions
    name: ClassVar[str] = "random-stopping"
    title: ClassVar[str] = "the best of a random number of tries"

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise InputError(f"candidates = {self.candidates}: must be at least 1.")

    def draw(self, stream: np.random.Generator) -> NDArray[np.int64]:
        """The candidate of each repetition, shape (repetitions,); a Poisson number of them may be 0.

        Args:
            stream: The random stream of this choice, and of no other.
        """
        number = int(self.repetitions.draw(stream))
        # With replacement: the theorems are of independent repetitions of one random trial.
        return stream.integers(self.candidates, size=number)

    def event(self, each: Sequence[dp.DpEvent], adjacency: str) -> dp.DpEvent:
        """The event of the best: all repetitions are one event.

        Args:
            each: The event of one run of each candidate, its score included.
            adjacency: "replace-one", "add-remove" or "zero-out".

        Raises:
            InputError: The candidates do not release the same: which one a repetition runs is drawn at
                random, so that one event has to represent all.
        """
        return self.repetitions.event(_the_same(each, self.candidates, adjacency))

    @property
    def words(self) -> str:
        """The selection rule, in words."""
        return f"the best of {self.repetitions.words}, each of one of {self.candidates} candidates"


def best(scores: Sequence[float]) -> int | None:
    """The released repetition: that of the largest score, the first of equal ones; None without any.

    Raises:
        InputError: A score is not a number.
    """
    if not len(scores):
        return None
    given = np.asarray(scores, dtype=np.float64)
    # numpy takes NaN for the largest of all: a candidate that failed would win, whatever the others scored.
    if np.isnan(given).any():
        raise InputError("scores: one is not a number; score what fails below everything else.")
    return int(given.argmax())


@dataclass(frozen=True)
class Cost:
    """The cost of a choice, compared with releasing each candidate once with its score.

    Args:
        chosen: Of the choice as it is made.
        naive: Of all candidates composed; the choice itself is free then.
        once: Of one candidate that nobody had to choose.
    """

    chosen: Accounted
    naive: Accounted
    once: Accounted

    @property
    def worth_it(self) -> bool:
        """Whether the choice costs less than releasing all candidates."""
        return self.chosen.epsilon < self.naive.epsilon


def cost(selection: PrivateSelection, each: Sequence[dp.DpEvent], delta: float, adjacency: str) -> Cost:
    """The cost of a private selection, beside the naive one.

    Args:
        selection: How the choice is made.
        each: The event of one run of each candidate, its score included.
        delta: In [0, 1).
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: The candidates do not release the same, or a number is out of range.
        UnsupportedEvent: No accountant answers; Poisson-sampled training under replace-one is such a case.

    >>> eight = PrivateSelection(8, Repetitions.geometric(8))
    >>> c = cost(eight, [dp.GaussianDpEvent(8.0)] * 8, 1e-5, "add-remove")
    >>> round(c.once.epsilon, 2), round(c.chosen.epsilon, 2), round(c.naive.epsilon, 2)
    (0.43, 1.03, 1.36)
    """
    event = selection.event(each, adjacency)
    return Cost(
        epsilon(event, delta, adjacency),
        epsilon(naive(each), delta, adjacency),
        epsilon(each[0], delta, adjacency),
    )


def naive(each: Sequence[dp.DpEvent]) -> dp.DpEvent:
    """Every candidate run once and released with its score."""
    return dp.ComposedDpEvent(list(each))


def _the_same(each: Sequence[dp.DpEvent], candidates: int, adjacency: str) -> dp.DpEvent:
    if len(each) != candidates:
        raise InputError(f"{len(each)} events for {candidates} candidates: give one for each.")
    # Papernot and Steinke's theorems bound the best of repetitions of one cost. A candidate that costs more
    # would break the bound whenever it is drawn.
    first = releases(each[0], adjacency)
    for number, candidate in enumerate(each):
        if releases(candidate, adjacency) != first:
            raise InputError(
                f"candidate {number} releases something else than candidate 0: random stopping is "
                "accounted for where all candidates cost the same. Vary what leaves noise, sampling and "
                "rounds alone."
            )
    return each[0]
