"""The loss and the primary metric of a model on held-out records, as each round measures them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedprivacy.data.tasks import CLASSIFICATION, NAMED
from fedprivacy.models.by_name import unflatten
from fedprivacy.models.losses import CROSS_ENTROPY, Loss
from fedprivacy.models.metrics.classes import Accuracy, BalancedAccuracy
from fedprivacy.models.metrics.registry import PRIMARY, Measurement
from fedprivacy.models.prediction import Predictions, chunks_of


@dataclass(frozen=True)
class Evaluation:
    """The primary metric and the loss of a model on held-out records.

    Args:
        task: What it predicts.
        loss: The mean loss of a record.
        score: The primary metric of the task (`fedprivacy.models.metrics.registry`): the accuracy of a
            classifier; None where it is not defined.
        balanced_accuracy: Of a classifier; else None.
        correct: How many records of each class a classifier names rightly.
        records: How many records each class has.
        names: The names of the classes, one for each; empty where they have none.
    """

    task: str
    loss: float
    score: float | None
    balanced_accuracy: float | None = None
    correct: tuple[int, ...] = ()
    records: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """The share of all records that a classifier names rightly."""
        assert self.score is not None
        return self.score

    def per_class(self) -> list[dict[str, Any]] | None:
        """The accuracy within each class, as the document holds it; null where a class has no record.

        None for another task.
        """
        if self.task != CLASSIFICATION:
            return None
        labels = self.names or (None,) * len(self.records)
        return [
            {"class": number, "label": label, "accuracy": right / count if count else None, "records": count}
            for number, (label, right, count) in enumerate(
                zip(labels, self.correct, self.records, strict=True)
            )
        ]


@torch.no_grad()
def evaluate(
    module: nn.Module,
    weights: NDArray[np.float32],
    x: NDArray[np.float32],
    y: NDArray[Any],
    names: tuple[str, ...] = (),
    loss: Loss = CROSS_ENTROPY,
) -> Evaluation:
    """The primary metric and mean loss of flat weights on records; of a classifier also within each class.

    Args:
        module: A module to (batch, outputs); of its own weights the frozen ones alone are used.
        weights: The flat weights, shape (parameters,).
        x: Records, shape (records, *features), taken in chunks of bounded memory.
        y: Their classes, int64, shape (records,), or their targets, shape (records, targets).
        names: The names of the classes; empty where they have none.
        loss: The loss of a record.
    """
    parameters, total, task = unflatten(module, torch.from_numpy(weights)), 0.0, loss.task
    classifies = task == CLASSIFICATION
    measurement = Measurement((Accuracy, BalancedAccuracy) if classifies else (PRIMARY[task],))
    for part in chunks_of(x, task):
        outputs = torch.func.functional_call(module, parameters, torch.from_numpy(x[part]))
        # The probabilities of classes and tokens are read by no metric here.
        named = Predictions(outputs.argmax(dim=-1).numpy()) if task in NAMED else None
        measurement.update(named or Predictions.of_outputs(outputs, task), y[part])
        total += float(loss.total(outputs.double(), torch.from_numpy(y[part])))
    values = measurement.values()
    if not classifies:
        return Evaluation(task, total / len(y), values[PRIMARY[task].name])
    accuracy = measurement.metrics[0]
    assert isinstance(accuracy, Accuracy)
    records, _, right = accuracy.counts(outputs.shape[1]).tolist()
    return Evaluation(
        task,
        total / len(y),
        values["accuracy"],
        values["balanced_accuracy"],
        tuple(right),
        tuple(records),
        names,
    )
