"""Shadow models with an attack network for each class (Shokri, Stronati, Song and Shmatikov 2017).

The reference models are the shadows: their outputs on records inside and outside their training data train
one network for each class, which recognises members by the whole output. The networks of all classes train at
once, as if each were a client.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedprivacy.attacks.released.signals import Signals
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import flat_weights, unflatten
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.task import LocalTraining, Task

Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]
_TRAINING = LocalTraining(ShuffledBatches(epochs=10, batch_size=64), learning_rate=0.05, momentum=0.9)
_HIDDEN = 64


@dataclass(frozen=True)
class Shadow:
    """Attack networks, fitted once for any number of target models.

    Args:
        module: To the logits of non-member and member, shape (records, 2).
        weights: Of each class that was seen, shape (networks, parameters).
        classes: Which class each row of weights is for.
        mean: Of the log-probabilities of all shadows, shape (classes,).
        deviation: Of the same.
    """

    module: nn.Module
    weights: Tensor
    classes: Labels
    mean: Signals
    deviation: Signals

    def scores(self, logs: Signals, y: Labels) -> Signals:
        """The log-odds of membership, shape (records,); 0 in a class without a shadow.

        Args:
            logs: Log-probabilities of the target, shape (records, classes).
            y: Labels, shape (records,).
        """
        x = _inputs(logs, self.mean, self.deviation)
        estimates = np.zeros(len(y))
        for label, weights in zip(self.classes, self.weights, strict=True):
            of_class = y == label
            with torch.no_grad():
                logits = functional_call(
                    self.module, unflatten(self.module, weights), x[torch.from_numpy(of_class)]
                )
            estimates[of_class] = (logits[:, 1] - logits[:, 0]).double().numpy()
        return estimates


def fit_shadow(logs: Signals, y: Labels, members: Flags, streams: Streams) -> Shadow:
    """Fits the networks.

    Args:
        logs: Log-probabilities of each shadow, shape (shadows, records, classes).
        y: Labels of the records, shape (records,).
        members: Which of them each shadow was trained on, shape (shadows, records).
        streams: Initial weights and batches are drawn from them.

    Raises:
        InputError: shapes differ.
    """
    if logs.shape[:2] != members.shape or y.shape != members.shape[1:]:
        raise InputError(
            f"shadows: outputs of shape {logs.shape}, memberships of {members.shape}, labels of {y.shape}; "
            "must be (shadows, records, classes), (shadows, records) and (records,)."
        )
    shadows, _, width = logs.shape
    table = logs.reshape(-1, width)
    mean, deviation = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-6)
    shadow_streams = Streams(streams.torch_seed("released/shadow"), streams.run)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(shadow_streams.torch_seed("initial"))
        module = nn.Sequential(nn.Linear(width, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 2))
    labels, classes = np.tile(y, shadows), np.unique(y)
    sent = flat_weights(module)
    task = Task(
        module=module,
        weights=sent,
        x=_inputs(table, mean, deviation),
        y=torch.from_numpy(members.reshape(-1).astype(np.int64)),
        records=[np.flatnonzero(labels == label) for label in classes],
        clients=classes,
        options=_TRAINING,
        streams=shadow_streams,
        round=0,
    )
    return Shadow(module, train_cohort(task).stack() + torch.from_numpy(sent), classes, mean, deviation)


def _inputs(logs: Signals, mean: Signals, deviation: Signals) -> Tensor:
    return torch.from_numpy(((logs - mean) / deviation).astype(np.float32))
