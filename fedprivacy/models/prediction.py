"""The predictions of a model: the class of each record, and the probability of every class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Predictions:
    """The predictions on some records.

    Args:
        named: The class of the largest logit, int64, shape (records,).
        probabilities: Of each class, float64, shape (records, classes); NaN where the model has diverged.
    """

    named: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    def rows(self, chosen: NDArray[np.bool_]) -> Predictions:
        """Returns the predictions on the chosen records."""
        return Predictions(self.named[chosen], self.probabilities[chosen])


def predict(module: nn.Module, weights: NDArray[np.float32], x: NDArray[np.float32]) -> Predictions:
    """The predictions of a model with flat weights.

    Args:
        module: A module to (batch, classes) logits; its trained weights are not read.
        weights: The flat weights, shape (parameters,).
        x: At least one record, shape (records, *features), taken in blocks of bounded memory.
    """
    import torch  # a process that only measures predictions needs none

    from fedprivacy.models.by_name import unflatten

    parameters = unflatten(module, torch.from_numpy(weights))
    named, probabilities = [], []
    for start in range(0, len(x), 8192):
        with torch.no_grad():
            records = torch.from_numpy(x[start : start + 8192])
            logits = torch.func.functional_call(module, parameters, records)
        named.append(logits.argmax(dim=1).numpy())
        probabilities.append(logits.double().softmax(dim=1).numpy())
    return Predictions(np.concatenate(named), np.concatenate(probabilities))
