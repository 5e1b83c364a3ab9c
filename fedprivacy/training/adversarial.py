"""Adversarial regularisation: training against an inference attack that learns beside it.

Nasr, Shokri and Houmansadr, "Machine Learning with Membership Privacy using Adversarial Regularization",
CCS 2018: the classifier f minimises its loss and lambda times the gain of the best inference network h,

    min_f max_h  L_D(f) + lambda (1/2 E_D log h(x, y, f(x)) + 1/2 E_D' log(1 - h(x', y', f(x'))))

D being the records that f is trained on and D' reference records that nobody trains on, here the public part
of the data. In turn h makes `steps` steps up its gain and f one down the loss plus lambda times the mean of
log h over its batch (Algorithm 1 there).

In a federation each client is its own defender: it trains a network of its own over its own records against
the references. The network begins anew in each round, with `first` steps before the model that was sent is
moved; it stays on the client through its epochs and is forgotten when the round ends. What a client answers
is an update as any other: it may be clipped and noised. By itself this is a heuristic: it has no epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedprivacy.models.by_name import unflatten
from fedprivacy.training.descent import Weights, descended
from fedprivacy.training.membership_regulariser import InferenceNetworks
from fedprivacy.training.task import Task
from fedprivacy.training.updates import Stack

BATCH = 64  # members, and as many references, in a step of the inference network
BLOCK = 16  # steps whose records are drawn at once


def train_adversarially(task: Task) -> Stack:
    """The updates of a chunk of clients, each of which regularises by an inference network of its own.

    Args:
        task: Their training; `options.adversarial` and `references` are given.
    """
    module, options, x, y = task.module, task.options, task.x, task.y
    how, references = options.adversarial, task.references
    if how is None or references is None or not len(references):
        raise ValueError("adversarial regularisation needs a gain and reference records")
    device = x.device
    index, used, _ = task.batches(secret=False)
    rows, counted = torch.from_numpy(index).to(device), torch.from_numpy(used).to(device)
    shares = counted.to(torch.float32)
    shares /= shares.sum(dim=2, keepdim=True).clamp_min(1.0)
    idle = ~counted.any(dim=2)
    sent = unflatten(module, task.sent)
    current: Weights = {
        name: value.expand(len(index), *value.shape).clone().requires_grad_(True)
        for name, value in sent.items()
    }
    start, velocity = {name: value.detach().clone() for name, value in current.items()}, Weights()

    def outputs(numbers: Tensor) -> Tensor:
        if task.alone:
            return functional_call(module, {k: v[0] for k, v in current.items()}, x[numbers[0]])[None]
        return vmap(lambda weights, inputs: functional_call(module, weights, inputs))(current, x[numbers])

    lessons = _lessons(task, how.first + how.steps * index.shape[1])
    with torch.no_grad():
        classes = outputs(rows[:, 0]).shape[2]
    first = task.streams.streams("adversarial/network", task.clients.tolist(), round=task.round)
    networks = InferenceNetworks(classes, first, device)
    for step in range(index.shape[1]):
        for _ in range(how.steps + (how.first if step == 0 else 0)):
            lesson = torch.from_numpy(next(lessons)).to(device)
            with torch.no_grad():
                outputs_of_lesson = outputs(lesson)
            networks.learn(outputs_of_lesson, y[lesson])
        batch = rows[:, step]
        logits, labels = outputs(batch), y[batch]
        losses = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        gain = nn.functional.logsigmoid(networks(logits, labels))
        total = ((losses.view_as(gain) + how.gain * gain) * shares[:, step]).sum()
        by_parameter = torch.autograd.grad(total, list(current.values()), materialize_grads=True)
        with torch.no_grad():
            gradients = dict(zip(current, by_parameter, strict=True))
            steps = descended(gradients, current, start, velocity, options, idle[:, step])
            for name, direction in steps.items():
                current[name].sub_(direction, alpha=options.learning_rate)
    moved = [(current[name].detach() - start[name]).flatten(1) for name in start]
    return Stack(torch.cat(moved, dim=1).cpu())


def _lessons(task: Task, count: int) -> Iterator[NDArray[np.int64]]:
    """Yields for each step of the networks its members and then its references, shape (clients, 2 BATCH).

    Each client draws from its own stream, so the rest of the chunk does not matter. At most `BLOCK` steps are
    in memory.
    """
    assert task.references is not None
    purpose, clients = "adversarial/lessons", task.clients.tolist()
    streams = [task.streams.stream(purpose, round=task.round, member=client) for client in clients]
    for begin in range(0, count, BLOCK):
        block = []
        for rows, stream in zip(task.records, streams, strict=True):
            drawn = stream.random((min(BLOCK, count - begin), 2, BATCH))
            members = rows[(drawn[:, 0] * len(rows)).astype(np.int64)]
            others = task.references[(drawn[:, 1] * len(task.references)).astype(np.int64)]
            block.append(np.concatenate([members, others], axis=1))
        yield from np.stack(block, axis=1)
