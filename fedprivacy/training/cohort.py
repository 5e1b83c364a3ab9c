"""Local training of many clients at once: by layers where the model is a chain, else by `torch.func`.

Each client runs SGD on its own records from the sent weights, optionally with momentum, weight decay (both as
in `torch.optim.SGD`) and the proximal term of FedProx. A chunk of clients is one computation. Chains of
layers train by `fedprivacy.training.layerwise`; any other module trains by `vmap` over clients of the
gradient of the loss. A client alone in its chunk uses plain autograd, because the overhead of `vmap`
dominates then: 19 batches of 32 records on an MLP 600-128-100 took 108 ms with it and 38 ms without. Both
methods equal a plain PyTorch loop client by client, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedprivacy.models.by_name import unflatten
from fedprivacy.models.partial_training import trained_size
from fedprivacy.sampling.batches import Batches
from fedprivacy.training.adversarial import train_adversarially
from fedprivacy.training.descent import Weights, descended
from fedprivacy.training.layerwise import (
    is_layerwise,
    kinds_of,
    numbers_of_convolutions,
    train_layerwise,
)
from fedprivacy.training.task import Task
from fedprivacy.training.updates import Stack, Updates

Loss = Callable[[Weights, Tensor, Tensor, Tensor], Tensor]


def train_cohort(task: Task) -> Updates:
    """Trains a chunk of clients that are each protected as a whole, or not protected.

    Args:
        task: Their training.

    Returns:
        Weights after local training minus those that were sent, for each client.
    """
    if task.options.adversarial is not None:
        return train_adversarially(task)
    if task.starts is not None or not is_layerwise(task.module):
        return _train_any(task)
    return train_layerwise(task)


def way_of(module: nn.Module, batches: Batches, records: int, *, apart: bool = False) -> str:
    """The training method of clients that are protected as a whole, in words.

    Args:
        module: The model.
        batches: Draws their batches.
        records: The number of records of a client.
        apart: Whether clients start at weights of their own.
    """
    if apart:
        return "each client from a personal part of its own, vectorised over clients (torch.func.vmap)"
    if not is_layerwise(module):
        return "as any module, vectorised over clients (torch.func.vmap)"
    kinds = kinds_of(module, batches, records)
    layers_named = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    return f"layer by layer (with {records} record{'' if records == 1 else 's'}: {layers_named})"


def numbers_held(
    module: nn.Module, features: Sequence[int], batches: Batches, records: int, device: str = "cpu"
) -> int:
    """About how many numbers the training of one client holds.

    Args:
        module: The model.
        features: The shape of a record.
        batches: Draws its batches, all of a round at once.
        records: Records of a client.
        device: Where it trains; a GPU holds the patches of convolutions, and what comes back to them.
    """
    batch, steps = max(1.0, batches.mean_size(records)), batches.steps_in(records)
    per_client = 3 * math.prod(features) * records + math.ceil(3 * steps * batch)
    if not is_layerwise(module):
        return per_client + 3 * trained_size(module)
    activations, weights, patches = numbers_of_convolutions(module, features)
    kinds = kinds_of(module, batches, records)
    for name, layer in module.named_children():
        if isinstance(layer, nn.Linear) and kinds[name] == "formed":
            weights += layer.weight.numel()
        elif isinstance(layer, nn.Linear):
            first = name == next(iter(kinds))
            rows = records if first else steps * math.ceil(batch)
            per_client += 3 * rows**2  # the products of rows with rows, in float64 and as they are used
            per_client += rows * (2 * layer.in_features + layer.out_features)  # in float64 too
            per_client += 0 if first else rows * layer.in_features
    if device != "cpu":
        return per_client + 3 * weights + math.ceil(batch * (3 * patches + activations))
    # Convolutions read and write activations in order, so that a cache needs no more than a part of them.
    return per_client + 3 * weights + math.ceil(batch * activations / 3)


def has_grouped_convolutions(module: nn.Module) -> bool:
    """Whether clients are groups of convolutions (`fedprivacy.training.convolutions`)."""
    return is_layerwise(module) and any(isinstance(part, nn.Conv2d) for part in module)


def _train_any(task: Task) -> Stack:
    module, options, x, y = task.module, task.options, task.x, task.y
    device = x.device
    index, used, _ = task.batches(secret=False)
    sent = unflatten(module, task.sent)
    start, apart = sent, task.starts is not None  # whether clients start at weights of their own
    if apart:
        start = unflatten(module, torch.tensor(task.starts, device=device))
    current: Weights = start

    def mean_loss(parameters: Weights, inputs: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
        logits = functional_call(module, parameters, inputs)
        losses = options.loss.losses(logits, labels)
        return (losses * weight).sum()

    shared, per_client = _alone(mean_loss) if task.alone else _together(mean_loss)
    velocity: Weights = {}
    rows, rows_used = torch.from_numpy(index).to(device), torch.from_numpy(used).to(device)
    mask = rows_used.to(torch.float32)
    weights_of_records = mask / mask.sum(dim=2, keepdim=True).clamp_min(1.0)
    idle = ~rows_used.any(dim=2)
    for step in range(index.shape[1]):
        batch = rows[:, step]
        steps = (per_client if step or apart else shared)(
            current, x[batch], y[batch], weights_of_records[:, step]
        )
        steps = descended(steps, current, sent, velocity, options, idle[:, step])
        if step:
            for name, direction in steps.items():
                current[name].sub_(direction, alpha=options.learning_rate)
        else:  # from here on each client has weights of its own
            current = {name: start[name].sub(steps[name], alpha=options.learning_rate) for name in start}
    return Stack(torch.cat([(current[name] - start[name]).flatten(1) for name in start], dim=1).cpu())


def _together(loss: Loss) -> tuple[Callable[..., Weights], Callable[..., Weights]]:
    """The gradients of all clients at once: from shared weights, and from each client's own."""
    return vmap(grad(loss), in_dims=(None, 0, 0, 0)), vmap(grad(loss), in_dims=(0, 0, 0, 0))


def _alone(loss: Loss) -> tuple[Callable[..., Weights], Callable[..., Weights]]:
    """The same of a single client, without `vmap`; shapes as `_together` has them."""

    def shared(weights: Weights, inputs: Tensor, labels: Tensor, weight: Tensor) -> Weights:
        point = {name: value.detach().requires_grad_(True) for name, value in weights.items()}
        gradients = torch.autograd.grad(
            loss(point, inputs[0], labels[0], weight[0]), list(point.values()), materialize_grads=True
        )
        return {name: gradient[None] for name, gradient in zip(point, gradients, strict=True)}

    def gradient_alone(weights: Weights, inputs: Tensor, labels: Tensor, weight: Tensor) -> Weights:
        return shared({name: value[0] for name, value in weights.items()}, inputs, labels, weight)

    return shared, gradient_alone
