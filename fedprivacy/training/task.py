"""What a chunk of clients trains on and how: the same for every trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.batches import Batches
from fedprivacy.seeds import Streams

Index = NDArray[np.int64]
_NOTHING = np.random.Generator(np.random.Philox(0))  # where nothing is drawn


@dataclass(frozen=True)
class LocalTraining:
    """How a client trains.

    Args:
        batches: Draws the batches of a client.
        learning_rate: The step size of SGD on the mean loss of a batch.
        momentum: The share of the last step that is kept; each client starts each round without one.
        weight_decay: Times the weights, added to the gradient.
        proximal: The mu of FedProx (Li et al. 2020): the loss has mu/2 |w - w0|^2 added to it, w0 being
            the weights that the client was sent.
        projection: The radius of the ball around zero in which each step leaves the weights; None: no ball.
        averaging: Whether the answer is the mean of the weights after each step, and not the last.
    """

    batches: Batches
    learning_rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal: float = 0.0
    projection: float | None = None
    averaging: bool = False


@dataclass(frozen=True)
class Task:
    """One round of a chunk of clients.

    Args:
        module: The model; its own weights are not read.
        weights: What every client starts from, float32, shape (parameters,).
        x: All records, float32, shape (records, *features).
        y: All labels, int64, shape (records,).
        records: For each client of the chunk its record numbers; none may be empty.
        clients: The ids of the chunk's clients, shape (clients,); they key what is drawn.
        options: The clients' optimiser.
        streams: The run's random streams.
        round: The round, which keys what is drawn too.
        sizes: How many records each client is agreed to have, shape (clients,): rates and denominators are
            reckoned with it, so that they do not tell of a record that came or went. None: as many as it has.
    """

    module: nn.Module
    weights: NDArray[np.float32]
    x: Tensor
    y: Tensor
    records: Sequence[Index]
    clients: Index
    options: LocalTraining
    streams: Streams
    round: int
    sizes: Index | None = None

    @property
    def agreed(self) -> Index:
        """How many records each client is agreed to have, shape (clients,)."""
        return np.array([len(own) for own in self.records]) if self.sizes is None else self.sizes

    def batches(self, *, secret: bool) -> tuple[Index, NDArray[np.bool_], Index]:
        """The record numbers of every batch of every client, padded to a common shape.

        Padding repeats a record of the same client, with weight zero: another client's broken record
        can never reach it. Each client draws from a stream of its own.

        Args:
            secret: Whether the draw is accounted for: then no other run, nor another branch of an attacked
                one, draws the same batches in the same round, which would amplify both but once.

        Returns:
            Record numbers, int64, and which of them count, bool, both of shape (clients, steps, batch); and
            how many steps each client has, shape (clients,).
        """
        sampler, stream_of = self.options.batches, self.streams.noise if secret else self.streams.stream
        drawn = []
        for own, client, size in zip(self.records, self.clients.tolist(), self.agreed.tolist(), strict=True):
            # Making a stream costs more than a small client's step.
            stream = stream_of("batches", round=self.round, member=client) if sampler.random else _NOTHING
            drawn.append(sampler.at(size).draw(len(own), stream))
        steps = np.array([len(parts) for parts in drawn])
        width = max(1, max(len(part) for parts in drawn for part in parts))
        index = np.empty((len(drawn), steps.max(), width), dtype=np.int64)
        used = np.zeros(index.shape, dtype=np.bool_)
        for row, (own, parts) in enumerate(zip(self.records, drawn, strict=True)):
            index[row] = own[0]
            for step, part in enumerate(parts):
                index[row, step, : len(part)] = own[part]
                used[row, step, : len(part)] = True
        return index, used, steps
