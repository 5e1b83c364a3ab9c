"""DP-SGD inside the clients (Abadi et al. 2016): many clients at once, each record's gradient clipped.

    w <- w - learning rate * (sum over the batch of clip(gradient, C) + N(0, (z C)^2 I)) / mean batch size

The denominator is the mean size of a batch. The size of the actual batch would reveal its number of records.
Everything after the noise (momentum, weight decay, projection to a ball, the mean of the iterates) is
post-processing. Without noise, or without clipping, the steps are the same and nothing is guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.training.clipped_gradients import clipped_sums
from fedprivacy.training.task import Index, Task


@np.errstate(over="ignore", invalid="ignore")  # weights that a server chose, or that diverge, may be anything
def train_examples(
    task: Task, clipping_norm: float | None, noise: Gaussian | None, *, blank: bool = False
) -> tuple[Tensor, Index]:
    """The updates of a chunk of clients that train by DP-SGD.

    Args:
        task: Their training.
        clipping_norm: C, the L2 bound of a record's gradient; None: no bound.
        noise: The noise on each sum of gradients; its clipping norm is C. None: no noise.
        blank: Trains as if no record had a gradient: the answer of a client whose training failed.

    Returns:
        The clients' answers less the sent weights, float64, shape (clients, parameters); and the number of
        each client's gradients that were not finite and counted as zero, shape (clients,).
    """
    weights, options, clients = task.weights, task.options, task.clients
    index, used, steps = task.batches(secret=True)
    mean_sizes = np.array([[options.batches.mean_size(int(size))] for size in task.agreed])
    own_noise = [task.streams.noise("dp-sgd", round=task.round, member=int(client)) for client in clients]
    # numpy's calls take a fraction of torch's, which for a small model would be most of a step.
    features, labels = task.x.numpy(), task.y.numpy()
    # The difference from the start is kept in float64: rounding to float32 weights would lose part of the
    # noise.
    way = np.zeros((len(clients), len(weights)))
    velocity = np.zeros_like(way) if options.momentum else None
    total = np.zeros_like(way) if options.averaging else None
    zeroed, everyone, least = np.zeros(len(clients), dtype=np.int64), range(len(clients)), steps.min()
    for step in range(index.shape[1]):
        # A client without further batches stays where it is. Its empty batch is computed with the others', so
        # that the number of finished clients changes no shape.
        rows: Sequence[int] = everyone if step < least else np.flatnonzero(step < steps).tolist()
        at = slice(None) if rows is everyone else rows
        here = weights if step == 0 else (weights + way).astype(np.float32)
        batch = index[:, step]
        if blank:  # the model is not evaluated: it may be the cause of the failure
            gradients = np.zeros((len(rows), len(weights)))
        else:
            sums = clipped_sums(
                task.module,
                torch.from_numpy(here),
                torch.from_numpy(features.take(batch, axis=0)),
                torch.from_numpy(labels.take(batch, axis=0)),
                torch.from_numpy(used[:, step]),
                clipping_norm,
                options.loss,
            )
            zeroed += sums.zeroed.numpy()
            gradients = sums.sums.numpy()[at]
        # On the sum and before all that follows: the mean, the proximal term, weight decay, momentum and the
        # projection depend on the records through the noisy gradient alone, and are post-processing.
        if noise is not None:
            for gradient, client in zip(gradients, rows, strict=True):
                gradient += noise.draw(len(weights), own_noise[client])
        # By the mean size of a batch, never by this batch's: that one is a secret of the sampling.
        gradients /= mean_sizes[at]
        if options.proximal:
            gradients += options.proximal * way[at]
        if options.weight_decay:
            gradients += options.weight_decay * (weights + way[at])
        if velocity is not None:
            gradients += options.momentum * velocity[at]
            velocity[at] = gradients
        gradients *= options.learning_rate
        way[at] -= gradients
        if options.projection is not None:
            way[at] = _projected(way[at], weights, options.projection)
        if total is not None:
            total[at] += way[at]
    return torch.from_numpy(way if total is None else total / steps[:, None]), zeroed


def clipped_gradients(task: Task, clipping_norm: float | None) -> tuple[Tensor, Index]:
    """The clients' answers where a trusted server makes the step: the sum over a batch, downhill.

    Each record moves the sum over all clients by at most C, with the same weight for every client.

    Args:
        task: Their training; its options make one step.
        clipping_norm: C, the L2 bound of a record's gradient; None: no bound.

    Returns:
        The negative sums of clipped gradients, float64, shape (clients, parameters); and the number of each
        client's gradients that were not finite and counted as zero, shape (clients,).
    """
    index, used, _ = task.batches(secret=True)
    # A second step would start from weights that its own records moved, without noise in between.
    if index.shape[1] != 1:
        raise ValueError("a server can add its noise to one step, and a round has several")
    batch, weights = torch.from_numpy(index[:, 0]), task.sent
    counted = torch.from_numpy(used[:, 0])
    x, y, loss = task.x[batch], task.y[batch], task.options.loss
    sums = clipped_sums(task.module, weights, x, y, counted, clipping_norm, loss)
    return -sums.sums, sums.zeroed.numpy()


def _projected(way: NDArray[np.float64], start: NDArray[np.float32], radius: float) -> NDArray[np.float64]:
    """The way from the start to the nearest weights within a ball around zero."""
    weights = start + way
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.where(norms > radius, weights * (radius / np.maximum(norms, radius)) - start, way)
