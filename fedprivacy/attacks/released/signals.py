"""The signals of many models on records: the logit-scaled confidence, from which losses follow.

phi = log(p / (1 - p)), p the probability of the record's label (Carlini et al. 2022, section VI-A). Of logits
z it is z_label minus the log of the sum of exp z over the other classes: so it stays finite and keeps its
digits where p is 1 in float32. The loss is log(1 + exp(-phi)).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedprivacy.errors import InputError
from fedprivacy.models.by_name import unflatten

Signals = NDArray[np.float64]
ROWS = 1024  # records in one pass of a model, whose inner numbers are in memory at once


def confidences(module: nn.Module, weights: Tensor, x: Tensor, y: Tensor) -> Signals:
    """The logit-scaled confidence of each record under each model, shape (models, records).

    Args:
        module: The model; its trained weights are not read.
        weights: Of each model, float32, shape (models, parameters).
        x: The records, float32, shape (records, *features).
        y: Their labels, int64, shape (records,).

    Raises:
        InputError: a model has fewer than two outputs, or one that is NaN or infinite.
    """
    confidence = np.empty((len(weights), len(y)))
    for row, parameters in zip(confidence, weights, strict=True):
        for part, logits in _passes(module, parameters, x):
            row[part] = _scaled(logits, y[part]).cpu().numpy()
    return confidence


def log_probabilities(module: nn.Module, weights: Tensor, x: Tensor) -> Signals:
    """The logarithm of each class's probability under one model, shape (records, classes).

    Args:
        module: The model; its trained weights are not read.
        weights: Shape (parameters,).
        x: The records, float32, shape (records, *features).

    Raises:
        InputError: as `confidences`.
    """
    return np.concatenate(
        [logits.log_softmax(dim=1).cpu().numpy() for _, logits in _passes(module, weights, x)]
    )


def losses(confidences: Signals) -> Signals:
    """The cross-entropy of logit-scaled confidences, of the same shape."""
    return np.logaddexp(0.0, -confidences)


def scaled(logs: Signals, labels: NDArray[np.int64]) -> Signals:
    """The logit-scaled confidence in given labels, shape (records,).

    Args:
        logs: Log-probabilities, or logits, shape (records, classes).
        labels: Shape (records,).
    """
    return np.asarray(_scaled(torch.from_numpy(logs), torch.from_numpy(labels)).numpy())


def _scaled(logits: Tensor, labels: Tensor) -> Tensor:
    column = labels[:, None]
    others = logits.scatter(1, column, -torch.inf).logsumexp(dim=1)
    return logits.gather(1, column)[:, 0] - others


@torch.no_grad()
def _passes(module: nn.Module, weights: Tensor, x: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """The logits of each block of records, float64, shape (records of it, classes)."""
    parameters = unflatten(module, weights.to(x.device))
    for start in range(0, len(x), ROWS):
        part = slice(start, min(start + ROWS, len(x)))
        logits = functional_call(module, parameters, x[part]).double()
        if logits.ndim != 2 or logits.shape[1] < 2:
            raise InputError(
                f"model: outputs of shape {tuple(logits.shape[1:])}; membership signals need two or more."
            )
        if not bool(torch.isfinite(logits).all()):
            raise InputError(
                "model: outputs that are NaN or infinite: its training diverged; lower the learning rate."
            )
        yield part, logits
