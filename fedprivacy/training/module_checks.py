"""Checks whether a user's module can be trained here, with the reason if it cannot.

Clipping bounds the trained weights only. A module that stores anything else about records, such as the
running statistics of BatchNorm, would leak clients' data past the clipping; buffers must be constants.
Clients are trained together by `vmap` with padded batches, so a module must not mix records, and must not
draw from torch's global generator, whose order depends on the clients in a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy

from fedprivacy.data.tasks import CLASSIFICATION, NEXT_TOKEN
from fedprivacy.models.by_name import flat_weights, unflatten
from fedprivacy.models.from_code import reason, wrong
from fedprivacy.models.losses import trial_loss, trial_records
from fedprivacy.models.partial_training import frozen_part, trained_parameters
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.model import Code
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.task import LocalTraining, Task

_RANDOM = "is random at training time, and clients that train side by side cannot repeat its draws"
_RECORDS = 4
_OF_TORCH = frozenset(vars(nn.Module()))


def check(
    module: nn.Module,
    same: nn.Module,
    options: Code,
    features: Sequence[int],
    classes: int,
    task: str = CLASSIFICATION,
) -> None:
    """Looks at a module, then tries it on a few made-up records.

    Args:
        module: The factory's module.
        same: Its module at the same seed again.
        options: The scenario's model section, for the message.
        features: The shape of one record.
        classes: The number of outputs that are needed, or of tokens.
        task: What it predicts (`fedprivacy.data.tasks`).

    Raises:
        InputError: with everything that is wrong with its parts, or else with what the trial shows.
    """
    faults = list(_of_parts(module))
    if faults:
        raise wrong(options, "; ".join(faults))
    # The run's seed must determine the initial weights, or a run could not be repeated.
    if not np.array_equal(flat_weights(module), flat_weights(same), equal_nan=True):
        what = "it makes other weights when it is called again at the same seed"
        raise wrong(options, what, "Draw them from torch's own generator, which the run seeds.")
    if frozen_part(module) != frozen_part(same):
        what = "it makes other frozen parameters or buffers when it is called again at the same seed"
        raise wrong(options, what, "Draw them from torch's own generator, or read them from a file.")
    before = _state_of(module)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = trial_records(_RECORDS, features, classes, task)
        needed = (len(x), *features, classes) if task == NEXT_TOKEN else (len(x), classes)
        fault = _of_outputs(module, x, needed)
        fault = _changed(module, before) or fault
        # Again after training: a module may remember records only where gradients are computed.
        fault = fault or _of_training(module, x, classes, task) or _changed(module, before)
    if fault:
        raise wrong(options, fault)


def _of_parts(module: nn.Module) -> Iterator[str]:
    for name, layer in module.named_modules():
        place = f"layer {name or 'itself'} ({type(layer).__name__})"
        if isinstance(layer, _BatchNorm):
            yield (
                f"{place} mixes the records of a batch and keeps statistics of them, which would leave a "
                f"client without being clipped: use {_group_norm(layer.num_features)}, or in a frozen "
                "encoder fold it into the layer before it (torch.nn.utils.fuse_conv_bn_eval)"
            )
        for key, buffer in layer.named_buffers(recurse=False):
            if buffer.device.type != "cpu":
                yield f"{place} has the buffer {key} on {buffer.device.type}, cpu is needed"
        dropout = layer.p if isinstance(layer, _DropoutNd) else getattr(layer, "dropout", 0.0)
        if isinstance(layer, nn.RReLU) or (isinstance(dropout, float) and dropout > 0):
            yield f"{place} {_RANDOM}: leave it out, or set its p to 0"
    parameters = dict(module.named_parameters())
    if not parameters:
        yield "it has no parameters, so there is nothing to train"
    for name, parameter in parameters.items():
        if is_lazy(parameter):
            yield f"parameter {name} has no shape yet: the factory gets features, so no layer needs be lazy"
        elif parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            kind = str(parameter.dtype).removeprefix("torch.")
            yield f"parameter {name} is {kind} on {parameter.device.type}, float32 on cpu is needed"
    if parameters and not trained_parameters(module):
        yield "all its parameters are frozen, so there is nothing to train: let the head's require a gradient"


def _group_norm(channels: int) -> str:
    """A layer that normalises each record by itself, in groups of two channels or more."""
    return f"GroupNorm({max(1, math.gcd(channels, 32) // 2)}, {channels})"


def _of_outputs(module: nn.Module, x: Tensor, needed: tuple[int, ...]) -> str | None:
    try:
        with torch.no_grad():
            logits, again = module(x), module(x)
            alone = [module(record[None]) for record in x]
    except Exception as error:
        return f"on records of shape {tuple(x.shape)} the model raises {reason(error)}"
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if shape != needed:
        return f"from records of shape {tuple(x.shape)} it makes {shape}, {needed} is needed"
    if not torch.equal(logits.nan_to_num(), again.nan_to_num()):
        return f"it {_RANDOM}"
    weights = torch.from_numpy(flat_weights(module))
    weights += 0.1 * torch.randn_like(weights)
    with torch.no_grad():
        outside = functional_call(module, unflatten(module, weights), x)
    within = functional_call(module, unflatten(module, weights.requires_grad_(True)), x)
    # Some layers have a faster way without gradients, which may not use all trained parameters.
    if not torch.allclose(outside, within, rtol=1e-3, atol=1e-4, equal_nan=True):
        return (
            "it answers otherwise where gradients are computed, so its evaluation is not of what is trained"
        )
    # If records mixed, padding and other records would change a record's gradient, and clipping it would
    # bound nothing.
    if not torch.allclose(torch.cat(alone), logits, rtol=1e-3, atol=1e-4, equal_nan=True):
        return "it answers otherwise for a record alone than in a batch: the records of a batch must not mix"
    return None


def _of_training(module: nn.Module, x: Tensor, classes: int, predicted: str) -> str | None:
    """One step of two clients by the door that all training takes, against torch's own gradient."""
    loss = trial_loss(predicted, classes)
    y, sent, rate = loss.example_targets(x, classes), flat_weights(module), 0.1
    trained = list(trained_parameters(module).values())
    records = [np.arange(1), np.arange(1, len(x))]
    options = LocalTraining(ShuffledBatches(1), rate, loss=loss)
    try:
        # Through the entry point of a run, so that a module that `vmap` miscomputes is found before any
        # client trains.
        task = Task(module, sent, x, y, records, np.arange(2), options, Streams(0), round=0)
        updates = train_cohort(task).stack()
        mean_loss = loss.losses(module(x[1:]), y[1:]).mean()
        gradients = torch.autograd.grad(mean_loss, trained, allow_unused=True)
    except Exception as error:
        if "randomness" in str(error):
            return f"it {_RANDOM}"
        return f"clients cannot be trained side by side (torch.func.vmap): {reason(error)}"
    pairs = zip(trained, gradients, strict=True)
    expected = torch.cat([(torch.zeros_like(p) if g is None else -rate * g).flatten() for p, g in pairs])
    if not torch.allclose(updates[1], expected, rtol=1e-3, atol=1e-5, equal_nan=True):
        return "clients trained side by side get other gradients than one alone"
    return None


def _changed(module: nn.Module, before: dict[str, Any]) -> str | None:
    if changed := [key for key, value in _state_of(module).items() if not _equal(before.get(key), value)]:
        return (
            f"it changes its attribute {changed[0]} when it is used: only trained parameters are clipped, so "
            "that could carry clients' data out"
        )
    return None


def _state_of(module: nn.Module) -> dict[str, Any]:
    """The state of a module: attributes, buffers and parameters, of which training changes none here."""
    return {
        f"{name}.{key}".lstrip("."): value.detach().clone() if isinstance(value, Tensor) else repr(value)
        for name, layer in module.named_modules()
        for key, value in [
            *vars(layer).items(),
            *layer.named_buffers(recurse=False),
            *layer.named_parameters(recurse=False),
        ]
        if key not in _OF_TORCH
    }


def _equal(first: object, other: object) -> bool:
    if isinstance(first, Tensor) and isinstance(other, Tensor):
        return first.shape == other.shape and bool(torch.equal(first, other))
    return type(first) is type(other) and first == other
