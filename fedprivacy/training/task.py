"""What a chunk of clients trains on and how: the same for every trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.batches import Batches, padded
from fedprivacy.seeds import Streams

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Adversarial:
    """How an inference network is trained beside each client's model (`fedprivacy.training.adversarial`).

    Args:
        gain: lambda, which weighs the network's gain against the loss of the model.
        steps: The network's steps before each of the model.
        first: And so many more before the first of a round, in which it begins anew.
    """

    gain: float
    steps: int = 1
    first: int = 0


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
        adversarial: Whether each client trains against an inference network of its own; None: it does not.
    """

    batches: Batches
    learning_rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal: float = 0.0
    projection: float | None = None
    averaging: bool = False
    adversarial: Adversarial | None = None


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
        references: The numbers of records that nobody trains on, which adversarial regularisation compares
            with, shape (references,).
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
    references: Index | None = None

    @cached_property
    def counts(self) -> Index:
        """How many records each client has, shape (clients,)."""
        return np.array([len(own) for own in self.records])

    @property
    def agreed(self) -> Index:
        """How many records each client is agreed to have, shape (clients,)."""
        return self.counts if self.sizes is None else self.sizes

    @property
    def rows(self) -> Index:
        """The numbers of each client's records, padded with its own first, shape (clients, most records).

        Another client's broken record can never reach it.
        """
        counts = self.counts
        if (counts == counts[0]).all():
            return np.stack(self.records)
        found = np.repeat(np.array([own[0] for own in self.records])[:, None], counts.max(), axis=1)
        for row, own in zip(found, self.records, strict=True):
            row[: len(own)] = own
        return found

    def positions(self, *, secret: bool) -> tuple[Index, NDArray[np.bool_], Index]:
        """Every batch of every client, padded to a common shape. Each client draws from a stream of its own.

        Args:
            secret: Whether the draw is accounted for: then no other run, nor another branch of an attacked
                one, draws the same batches in the same round, which would amplify both but once.

        Returns:
            Positions among the client's own records (columns of `rows`), int64, and which of them count,
            bool, both of shape (clients, steps, batch); and how many steps each client has, shape (clients,).
        """
        streams_of = self.streams.noises if secret else self.streams.streams
        streams = streams_of("batches", self.clients.tolist(), round=self.round)
        return padded(self.options.batches, self.counts, self.agreed, streams)

    def batches(self, *, secret: bool) -> tuple[Index, NDArray[np.bool_], Index]:
        """As `positions`, with the numbers of the records."""
        positions, used, steps = self.positions(secret=secret)
        flat = positions.reshape(len(positions), -1)
        return np.take_along_axis(self.rows, flat, axis=1).reshape(positions.shape), used, steps
