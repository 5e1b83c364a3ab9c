"""Calls that train clients: of a shape that tells of nobody, and the same wherever in them a client stands.

A kernel may add up otherwise for other shapes, at the edge of a matrix, in the rest of a vector, or at
another alignment in memory. Where training is at the edge of stability it amplifies a last digit to a whole
update, so that what else is in a run must change no bit of a client's update. Two things see to that:

    class of a client   by its own agreed size               `size_class`
    shape of a call     by the class and the plan            `Shape`: the last call is filled up with copies
    place in a call     tried before anybody is trained      `shape_of_calls`: copies of one made-up client

A shape in whose places a made-up client does not end with the same bits is not taken: then rows come in
multiples of 2, 4 or 16, which aligns them, and if that does not help clients are trained one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.models import flat_weights
from fedprivacy.seeds import Streams
from fedprivacy.training.layerwise import LayerwiseUpdates, is_layerwise
from fedprivacy.training.task import Index, LocalTraining, Shape, Task
from fedprivacy.training.updates import Joined, Updates

Train = Callable[[Task], tuple[Updates, Index]]

_LOTS = (
    1,
    2,
    4,
    16,
)  # rows of so many float32 numbers and their alignment: of nothing, and up to a cache line
_TRIES = 2  # made-up clients
_CALM = 0.05  # the largest learning rate of a made-up client, which is not to diverge: NaN hides all bits

# Kernels go by shapes, and a chain by what it prints; a module of somebody's code may do anything.
_TRIED: dict[tuple[object, ...], Shape] = {}


def train_in_calls(task: Task, train: Train, *, secret: bool) -> tuple[Updates, Index]:
    """Trains clients of one size class, in calls of the shape that the task names.

    Args:
        task: The clients; as many as the shape has places, or fewer.
        train: Trains the clients of a call, and counts for each what it counts.
        secret: As `Task.positions` has it.

    Returns:
        What `train` gives, for each client.
    """
    shape = task.shape
    if shape is None:
        return train(task)
    drawn = task.positions(secret=secret)
    wide = drawn[1].sum(axis=2).max(axis=1) > shape.width  # by a client's own draw, once in a billion times
    parts: list[Updates] = []
    counts: list[Index] = []
    groups = [np.flatnonzero(~wide), *np.flatnonzero(wide)[:, None]]
    for group in groups:
        if not len(group):
            continue
        whole = wide[group[0]]
        own = Shape(1, shape.records, shape.rows, shape.rows) if whole else shape
        filled = np.concatenate([group, np.repeat(group[:1], own.places - len(group))])
        updates, counted = train(task.at(filled, own, drawn))
        parts.append(updates.only(np.arange(len(group))))
        counts.append(counted[: len(group)])
    order = np.argsort(np.concatenate([group for group in groups if len(group)]))
    if len(parts) == 1:
        return parts[0], counts[0]
    return Joined(parts, [len(part) for part in counts], order), np.concatenate(counts)[order]


def shape_of_calls(
    module: nn.Module,
    features: tuple[int, ...],
    classes: int,
    options: LocalTraining,
    records: int,
    places: int,
    train: Train,
    *,
    kind: str,
    device: str,
) -> Shape:
    """The shape of the calls that train a size class, each place of which gives the same bits.

    Args:
        module: The model.
        features: The shape of one record.
        classes: Of labels.
        options: The clients' optimiser.
        records: The bound of the class.
        places: How many clients a call may train.
        train: Trains the clients of a call.
        kind: Tells one way to train from another.
        device: Where they are trained.
    """
    key = (kind, str(module), features, classes, options, records, places, device, torch.get_num_threads())
    known = is_layerwise(module)
    if known and key in _TRIED:
        return _TRIED[key]
    shape = Shape.of(options.batches, records)
    if places > 1:
        for lot in _LOTS:
            tried = Shape.of(options.batches, records, places, lot)
            if _alike_everywhere(module, features, classes, options, tried, train, device):
                shape = tried
                break
    if known:
        _TRIED[key] = shape
    return shape


def _alike_everywhere(
    module: nn.Module,
    features: tuple[int, ...],
    classes: int,
    options: LocalTraining,
    shape: Shape,
    train: Train,
    device: str,
) -> bool:
    """Whether copies of a made-up client end with the same bits in all places of a call."""
    calm = replace(options, learning_rate=min(options.learning_rate, _CALM))
    for number in range(_TRIES):
        stream = Streams(number).stream("calls")
        x = stream.standard_normal((shape.records + 1, *features)).astype(np.float32)
        task = Task(
            module=module,
            weights=flat_weights(module),
            x=torch.from_numpy(x).to(device),
            y=torch.from_numpy(stream.integers(0, classes, len(x))).to(device),
            records=[np.arange(shape.records)] * shape.places,
            clients=np.zeros(shape.places, np.int64),
            options=calm,
            streams=Streams(number),
            round=0,
            references=np.array([shape.records]),
            shape=shape,
        )
        try:
            updates, _ = train(task)
        except Exception:
            return False
        if not all(bool((bits == bits[:1]).all()) for bits in map(_bits, results(updates))):
            return False
    return True


def results(updates: Updates) -> list[Tensor]:
    """All that a client's part in a sum is made of, and the update itself; each with a row a client."""
    if isinstance(updates, LayerwiseUpdates):
        return [updates.stack(), updates.norms(), *updates.parts()]
    return [updates.stack()]


def _bits(values: Tensor) -> NDArray[np.uint8]:
    own = np.ascontiguousarray(values.detach().cpu().numpy().reshape(len(values), -1))
    return own.view(np.uint8)
