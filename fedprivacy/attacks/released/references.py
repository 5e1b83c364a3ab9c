"""Reference models, trained like the target on random halves of a pool of records.

All are trained by `fedprivacy.training.cohort` as if each were a client, many in one computation. Target
models of an experiment are trained in the same way, on members that independent coins chose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.errors import InputError
from fedprivacy.models.by_name import flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.features import on_features
from fedprivacy.training.task import LocalTraining, Task

Flags = NDArray[np.bool_]
MODELS = 64  # reference models by default


@dataclass(frozen=True)
class Recipe:
    """The training settings shared by target and reference models.

    Args:
        build: From a seed for the initial weights to the module, (batch, *features) -> (batch, classes).
        training: The optimiser, and the batches of the whole training.
        together: The number of models in one computation. They share their initial weights, and memory
            contains the records of all of them.
    """

    build: Callable[[int], nn.Module]
    training: LocalTraining
    together: int = 8


@dataclass(frozen=True)
class Models:
    """Trained models, and what each was trained on.

    Args:
        weights: float32, shape (models, parameters).
        members: Whether a model was trained on a record of the pool, shape (models, pool).
    """

    weights: Tensor
    members: Flags

    def __post_init__(self) -> None:
        if self.members.ndim != 2 or self.members.dtype != bool or len(self.members) != len(self.weights):
            raise InputError(
                f"members: shape {self.members.shape}; must be true or false for each of {len(self.weights)} "
                "models and each record of the pool."
            )

    def __len__(self) -> int:
        return len(self.weights)


def draw_halves(models: int, records: int, stream: np.random.Generator) -> Flags:
    """Which records each reference model is trained on, shape (models, records).

    For each model a fair coin for each record, independent of those of other records. Of one record the coins
    are so drawn that half of all models have it (one more or less than the others where their number is odd),
    so that no record lacks models with it or without it.

    Args:
        models: How many, at least 2.
        records: Of the pool.
        stream: Draws them.

    Raises:
        InputError: fewer than two models.
    """
    if models < 2:
        raise InputError(
            f"references = {models}: at least 2 are needed, one with a record and one without it."
        )
    # The ranks of one record over the models are a random permutation, so half of the models get each record,
    # and an attack has as many models with it as without it.
    ranks = stream.random((models, records)).argsort(axis=0)
    return ranks < (models + stream.integers(0, 2, records)) // 2


def draw_coins(models: int, records: int, stream: np.random.Generator) -> Flags:
    """Which records each target model is trained on: independent fair coins, shape (models, records)."""
    return stream.random((models, records)) < 0.5


def train(recipe: Recipe, x: Tensor, y: Tensor, members: Flags, streams: Streams, purpose: str) -> Models:
    """Trains a model on each row of members.

    Args:
        recipe: How.
        x: The pool, float32, shape (pool, *features).
        y: Its labels, int64, shape (pool,).
        members: Shape (models, pool).
        streams: Those of the run; initial weights and batches are drawn from them.
        purpose: "targets" or "references": models of two purposes share no draw.

    Raises:
        InputError: a model has no member, or was not finite in the end.
    """
    if members.shape[1:] != y.shape:
        raise InputError(f"members: shape {members.shape}; the pool has {len(y)} records.")
    if not members.any(axis=1).all():
        raise InputError("members: a model without any record cannot be trained; make the pool larger.")
    models = [
        _together(
            recipe, x, y, members, range(start, min(start + recipe.together, len(members))), streams, purpose
        )
        for start in range(0, len(members), recipe.together)
    ]
    weights = torch.cat(models)
    if not bool(torch.isfinite(weights).all()):
        raise InputError(f"{purpose}: training diverged; lower training.learning_rate.")
    return Models(weights, members)


def train_references(recipe: Recipe, x: Tensor, y: Tensor, streams: Streams, models: int = MODELS) -> Models:
    """Reference models on halves of the pool of their own.

    Args:
        recipe: That of the target.
        x: The pool, float32, shape (pool, *features).
        y: Its labels, int64, shape (pool,).
        streams: Those of the run.
        models: How many.

    Raises:
        InputError: fewer than two models, or as `train`.
    """
    members = draw_halves(models, len(y), streams.stream("released/references/members"))
    return train(recipe, x, y, members, streams, "references")


def _together(
    recipe: Recipe, x: Tensor, y: Tensor, members: Flags, numbers: range, streams: Streams, purpose: str
) -> Tensor:
    """The weights of some models, shape (models, parameters)."""
    # Targets and references share no initial weights and no batches: a real outsider does not know the
    # target's.
    member_streams = Streams(streams.torch_seed(f"released/{purpose}"), streams.run)
    initial = int(member_streams.stream("initial", member=numbers.start).integers(2**63))
    module, features = on_features(recipe.build(initial), x)
    sent = flat_weights(module)
    task = Task(
        module=module,
        weights=sent,
        x=features,
        y=y,
        records=[np.flatnonzero(members[number]) for number in numbers],
        clients=np.array(numbers),
        options=recipe.training,
        streams=member_streams,
        round=0,
    )
    return train_cohort(task).stack() + torch.from_numpy(sent)
