"""Averages of a run's iterates: the model that is released and measured, at no privacy cost.

Noise of single rounds averages out in a mean of the last models, and signal stays once training has come
close to its end (Polyak and Juditsky 1992). Under differential privacy it helps as well (De et al. 2022). An
average is a function of models that each round has released and the ledger has charged: post-processing.
Participants still receive the iterates themselves, from which training goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedprivacy.scenario.sections import Server

Vector = NDArray[np.float64]

SHARE = 0.5  # of the rounds in a tail average
DECAY = 0.9  # of an exponential average


class IterateAverage(Protocol):
    """A mean of iterates; `state` is the checkpoint's part."""

    state: dict[str, Vector]

    def add(self, number: int, weights: Vector) -> None:
        """Adds the model after round `number` (from 0), shape (parameters,)."""
        ...

    def of(self, weights: Vector) -> Vector:
        """The mean so far, shape (parameters,); `weights`, the last iterate, before it has begun."""
        ...


class _RunningMean:
    """The state that averages share: their mean, and the number of models in it."""

    def __init__(self, parameters: int) -> None:
        self.state: dict[str, Vector] = {"mean": np.zeros(parameters), "count": np.zeros(1)}

    def of(self, weights: Vector) -> Vector:
        """As `IterateAverage` has it."""
        return self.state["mean"] if self.state["count"][0] else weights

    def _move(self, weights: Vector, share: float) -> None:
        self.state["mean"] = self.state["mean"] + share * (weights - self.state["mean"])


class TailAverage(_RunningMean):
    """The plain mean of the models after the last rounds (suffix averaging, Rakhlin et al. 2012).

    Args:
        share: The share of all rounds that it covers, rounded up to a whole number of them.
        rounds: All planned rounds.
        parameters: Of the model.
    """

    def __init__(self, share: float, rounds: int, parameters: int) -> None:
        super().__init__(parameters)
        self.first = rounds - math.ceil(share * rounds - 1e-9)  # 0.1 * 30 is above 3

    def add(self, number: int, weights: Vector) -> None:
        """As `IterateAverage` has it; a model before the tail is left out."""
        if number < self.first:
            return
        self.state["count"] = self.state["count"] + 1
        self._move(weights, 1 / float(self.state["count"][0]))


class ExponentialAverage(_RunningMean):
    """A mean in which the weight of a model falls by `decay` in each later round; the weights add up to 1.

    Args:
        decay: In (0, 1).
        parameters: Of the model.
    """

    def __init__(self, decay: float, parameters: int) -> None:
        super().__init__(parameters)
        self.decay = decay

    def add(self, number: int, weights: Vector) -> None:
        """As `IterateAverage` has it."""
        self.state["count"] = self.state["count"] + 1
        # Without the divisor the mean would begin at the initial model, and keep a part of it.
        self._move(weights, (1 - self.decay) / (1 - self.decay ** float(self.state["count"][0])))


def iterate_average(options: Server, rounds: int, parameters: int) -> IterateAverage | None:
    """The average that a scenario names; None: the last iterate is the released model.

    Args:
        options: The section `server`.
        rounds: All planned rounds.
        parameters: Of the model.
    """
    if options.averaging == "tail":
        return TailAverage(options.averaging_share or SHARE, rounds, parameters)
    if options.averaging == "exponential":
        return ExponentialAverage(options.averaging_decay or DECAY, parameters)
    return None


def released_weights(tensors: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """The released model in a stored state of `Federation`, float32, shape (parameters,)."""
    count = tensors.get("average/count")
    name = "weights" if count is None or not count[0] else "average/mean"
    return tensors[name].astype(np.float32)
