"""The predictions of a model: the class of each record and the probability of every class, or numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL, NAMED, NEXT_TOKEN

if TYPE_CHECKING:
    from torch import Tensor, nn

CHUNK = 8192  # records
_POSITIONS = 2**15  # of texts in a chunk, each with the probability of every token


def _none() -> NDArray[np.float64]:
    return np.empty((0, 0))


@dataclass(frozen=True)
class Predictions:
    """The predictions on some records.

    Args:
        named: The class of the largest logit, int64, shape (records,), or token, (records, positions); or
            each target's number, float64, or label, bool, shape (records, targets).
        probabilities: Of each class or label, float64, shape (records, classes or labels), or of each token,
            (records, positions, tokens); NaN where the model has diverged; empty for numbers.
    """

    named: NDArray[Any]
    probabilities: NDArray[np.float64] = field(default_factory=_none)

    @classmethod
    def of_outputs(cls, outputs: Tensor, task: str) -> Predictions:
        """The predictions that outputs of a model mean in a task.

        Args:
            outputs: Shape (records, outputs), or of texts (records, positions, tokens).
            task: One of `fedprivacy.data.tasks`.
        """
        if task in NAMED:
            return cls(outputs.argmax(dim=-1).numpy(), outputs.double().softmax(dim=-1).numpy())
        if task == MULTI_LABEL:
            return cls((outputs > 0).numpy(), outputs.double().sigmoid().numpy())
        return cls(outputs.double().numpy())


def chunks_of(x: NDArray[np.float32], task: str) -> Iterator[slice]:
    """Yields the places of records in chunks of bounded memory.

    Args:
        x: Records, shape (records, *features).
        task: What is predicted of them.
    """
    rows = max(1, _POSITIONS // x.shape[1]) if task == NEXT_TOKEN else CHUNK
    for start in range(0, len(x), rows):
        yield slice(start, start + rows)


def predictions(
    module: nn.Module, weights: NDArray[np.float32], x: NDArray[np.float32], task: str = CLASSIFICATION
) -> Iterator[Predictions]:
    """Yields the predictions of a model with flat weights, in chunks of bounded memory.

    Args:
        module: A module to (batch, outputs); its trained weights are not read.
        weights: The flat weights, shape (parameters,).
        x: Records, shape (records, *features).
        task: What its outputs mean (`fedprivacy.data.tasks`).
    """
    import torch  # a process that only measures predictions needs none

    from fedprivacy.models.by_name import unflatten

    parameters = unflatten(module, torch.from_numpy(weights))
    for part in chunks_of(x, task):
        with torch.no_grad():
            outputs = torch.func.functional_call(module, parameters, torch.from_numpy(x[part]))
            yield Predictions.of_outputs(outputs, task)


def named_classes(
    module: nn.Module, weights: NDArray[np.float32], x: NDArray[np.float32]
) -> NDArray[np.int64]:
    """The class of each record by a classifier with flat weights, of at least one record."""
    return np.concatenate([chunk.named for chunk in predictions(module, weights, x)])
