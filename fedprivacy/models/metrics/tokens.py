"""Metrics of the next token at each position of a text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import NEXT_TOKEN
from fedprivacy.models.metrics.metric import BlockMean, Metric, finite
from fedprivacy.models.prediction import Predictions


class TokenAccuracy(Metric):
    """The share of positions at which the most likely token is the one that follows."""

    name, title = "token_accuracy", "accuracy of next tokens"
    meaning = "the share of positions at which the most likely next token, here a character, is right"
    tasks = frozenset({NEXT_TOKEN})

    def __init__(self) -> None:
        self._right = self._positions = 0

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        self._right += int((outputs.named == targets).sum())
        self._positions += targets.size

    def value(self) -> float:
        """As `Metric` has it."""
        return self._right / self._positions


class Perplexity(Metric):
    """The exponential of the mean negative log-probability of the token that follows."""

    name, title = "perplexity", "perplexity"
    meaning = "2 to the bits that a next token takes; 1 is best, guessing gives the number of tokens"
    tasks = frozenset({NEXT_TOKEN})
    higher_is_better = False
    is_share = False
    least = 1.0
    most = math.inf
    needs_finite = True

    def __init__(self) -> None:
        self._losses = BlockMean()

    def update(self, outputs: Predictions, targets: NDArray[Any]) -> None:
        """As `Metric` has it."""
        likely = np.take_along_axis(outputs.probabilities, targets[..., None], axis=-1)
        with np.errstate(divide="ignore"):  # a token that the model excludes
            self._losses.update(-np.log(likely).ravel())

    def value(self) -> float | None:
        """As `Metric` has it; None where a token had the probability 0."""
        mean = self._losses.value()
        return finite(math.exp(mean)) if mean < math.log(1e300) else None
