"""Local training as any PyTorch user would write it: what the vectorised cohorts are held against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.models.by_name import flat_weights
from fedprivacy.training.task import Task


@pytest.fixture
def plain_loop() -> Callable[[Task], np.ndarray]:
    """The updates of a task, client by client, float32, shape (clients, parameters)."""
    return _plain_loop


def _plain_loop(task: Task) -> np.ndarray:
    return np.stack([_client(task, at) for at in range(len(task.records))])


def _client(task: Task, at: int) -> np.ndarray:
    module, options, own, client = task.module, task.options, task.records[at], int(task.clients[at])
    nn.utils.vector_to_parameters(torch.from_numpy(task.weights.copy()), module.parameters())
    sent = [p.detach().clone() for p in module.parameters()]
    optimizer = torch.optim.SGD(
        module.parameters(),
        options.learning_rate,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
    )
    size = options.batches.batch_size or len(own)
    stream = task.streams.stream("batches", round=task.round, member=client)
    for _ in range(options.batches.epochs):
        order = stream.permutation(own) if len(own) > size else own
        for start in range(0, len(own), size):
            rows = order[start : start + size]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(task.x[rows]), task.y[rows])
            pairs = zip(module.parameters(), sent, strict=True)
            distance = sum((p - start).square().sum() for p, start in pairs)
            (loss + options.proximal / 2 * distance).backward()
            optimizer.step()
    return flat_weights(module) - task.weights
