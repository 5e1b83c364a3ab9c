"""Local training of many clients at once: the general path, by `torch.func`.

Each client runs plain SGD on its own records from the weights that it was sent. A chunk of clients
is one computation: `vmap` over clients of the gradient of the loss. Equal to a plain PyTorch loop
client by client, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedprivacy.models import unflatten
from fedprivacy.seeds import Streams

Index = NDArray[np.int64]


@dataclass(frozen=True)
class LocalTraining:
    """How a client trains.

    Args:
        epochs: Passes over the client's records.
        batch_size: Records in a batch; None for all of them. The last batch of a pass may be smaller.
        learning_rate: The step size of SGD on the mean loss of a batch.
    """

    epochs: int
    batch_size: int | None
    learning_rate: float


def train_cohort(
    module: nn.Module,
    weights: NDArray[np.float32],
    x: Tensor,
    y: Tensor,
    records: Sequence[Index],
    clients: Index,
    options: LocalTraining,
    streams: Streams,
    round: int,
) -> Tensor:
    """The updates of a chunk of clients.

    Args:
        module: The model; its own weights are not read.
        weights: What every client starts from, shape (parameters,).
        x: All records, float32, shape (records, *features).
        y: All labels, int64, shape (records,).
        records: For each client of the chunk its record numbers; none may be empty.
        clients: The ids of the chunk's clients, shape (clients,); they key the batch order.
        options: The clients' optimiser.
        streams: The run's random streams.
        round: The round, which keys the batch order too.

    Returns:
        Weights after local training minus `weights`, float32, shape (clients, parameters).
    """
    index, used = batches(records, clients, options, streams, round)
    start = unflatten(module, torch.from_numpy(weights))
    current: dict[str, Tensor] = start

    def mean_loss(parameters: dict[str, Tensor], inputs: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
        logits = functional_call(module, parameters, inputs)
        losses = nn.functional.cross_entropy(logits, labels, reduction="none")
        return (losses * weight).sum()

    shared = vmap(grad(mean_loss), in_dims=(None, 0, 0, 0))
    own = vmap(grad(mean_loss), in_dims=(0, 0, 0, 0))
    for step in range(index.shape[1]):
        rows = torch.from_numpy(index[:, step])
        mask = torch.from_numpy(used[:, step]).to(torch.float32)
        # A client that has no batch left weighs zero everywhere, so its weights stay as they are.
        weight = mask / mask.sum(dim=1, keepdim=True).clamp_min(1.0)
        gradients = (own if step else shared)(current, x[rows], y[rows], weight)
        current = {name: current[name] - options.learning_rate * gradients[name] for name in start}
    return torch.cat([(current[name] - start[name]).flatten(1) for name in start], dim=1)


def batches(
    records: Sequence[Index], clients: Index, options: LocalTraining, streams: Streams, round: int
) -> tuple[Index, NDArray[np.bool_]]:
    """The record numbers of every batch of every client, padded to a common shape.

    Padding repeats a record of the same client, with weight zero: another client's broken record
    can never reach it. Each epoch is a fresh shuffle by the client's own stream; where one batch
    holds everything the order does not matter and nothing is drawn.

    Returns:
        Record numbers, int64, and which of them count, bool, both of shape (clients, steps, batch).
    """
    largest = max(len(own) for own in records)
    width = largest if options.batch_size is None else min(options.batch_size, largest)
    per_epoch = [math.ceil(len(own) / width) for own in records]
    steps = options.epochs * max(per_epoch)
    index = np.empty((len(records), steps, width), dtype=np.int64)
    used = np.zeros(index.shape, dtype=np.bool_)
    for row, (own, client, passes) in enumerate(zip(records, clients, per_epoch, strict=True)):
        index[row] = own[0]
        stream = streams.stream("batches", round=round, member=int(client)) if passes > 1 else None
        for epoch in range(options.epochs):
            order = own if stream is None else stream.permutation(own)
            flat = slice(epoch * passes * width, epoch * passes * width + len(own))
            index[row].reshape(-1)[flat] = order
            used[row].reshape(-1)[flat] = True
    return index, used
