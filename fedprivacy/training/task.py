"""The training of a chunk of clients: the same description for every trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.models.losses import CROSS_ENTROPY, Loss
from fedprivacy.population.partition import RecordNumbers
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import Batches, PoissonBatches, ShuffledBatches, padded

Index = NDArray[np.int64]
Drawn = tuple[Index, NDArray[np.bool_], Index]


@dataclass(frozen=True)
class Adversarial:
    """Settings of each client's inference network (`fedprivacy.training.adversarial`).

    Args:
        gain: lambda, which weighs the network's gain against the loss of the model.
        steps: The network's steps before each of the model.
        first: Additional steps before the first of a round, in which the network starts anew.
    """

    gain: float
    steps: int = 1
    first: int = 0


@dataclass(frozen=True)
class LocalTraining:
    """The settings of a client's local training.

    Args:
        batches: Draws the batches of a client.
        learning_rate: The step size of SGD on the mean loss of a batch.
        momentum: The share of the last step that is kept; each client starts each round without one.
        weight_decay: Times the weights, added to the gradient.
        proximal: The mu of FedProx (Li et al. 2020): the loss has mu/2 |w - w0|^2 added to it, w0 being
            the weights that the client was sent.
        projection: The radius of the ball around zero in which each step leaves the weights; None: no ball.
        averaging: Whether the answer is the mean of the weights after each step, and not the last.
        loss: The loss of a record.
        adversarial: Whether each client trains against an inference network of its own; None: it does not.
    """

    batches: Batches
    learning_rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal: float = 0.0
    projection: float | None = None
    averaging: bool = False
    loss: Loss = CROSS_ENTROPY
    adversarial: Adversarial | None = None


@dataclass(frozen=True)
class Shape:
    """The shape of a call that trains clients: from the plan and a client's own size, never from others.

    Kernels choose their order of additions by shape, so a client's rounding would otherwise reveal the number
    and sizes of other clients in its call.

    Args:
        places: The number of clients in a call; copies of the first fill empty places.
        records: The assumed number of each client's records: the bound of its size class (`size_class`).
        rows: The number of its records in the call, padded.
        width: The number of records in a batch, padded.
    """

    places: int
    records: int
    rows: int
    width: int

    @classmethod
    def of(cls, batches: Batches, records: int, places: int = 1) -> Shape:
        """The shape for a size class.

        Args:
            batches: Draws the clients' batches.
            records: The bound of the class.
            places: How many clients.
        """
        return cls(places, records, records, _width(batches, records))


def size_class(records: int) -> int:
    """The bound of a client's size class, as `size_classes` has it."""
    return int(size_classes(np.array([records]))[0])


def size_classes(records: Index) -> Index:
    """The bound of each client's size class: four classes between a power of two and the next.

    >>> size_classes(np.array([1, 7, 9, 20, 21, 33, 1000])).tolist()
    [1, 7, 10, 20, 24, 40, 1024]
    """
    bits = np.frexp(records - 1)[1]  # the length of a whole number in bits
    step = np.left_shift(1, np.maximum(bits - 3, 0), dtype=np.int64)
    return -(-records // step) * step


def _width(batches: Batches, records: int) -> int:
    """The places of a batch; a Poisson batch overflows them with a probability of about 1e-9."""
    if isinstance(batches, PoissonBatches):
        mean = batches.mean_size(records)
        return min(records, size_class(int(np.ceil(mean + 6.0 * np.sqrt(mean) + 6.0))))
    if isinstance(batches, ShuffledBatches):
        return min(records, batches.batch_size or records)
    return batches.batch_size


@dataclass(frozen=True)
class Task:
    """One round of a chunk of clients.

    Args:
        module: The model; its trained weights are not read.
        weights: The start of every client, float32, shape (parameters,).
        x: All records, float32, shape (records, *features).
        y: All labels, int64, shape (records,), or targets, float32, shape (records, outputs).
        records: For each client of the chunk its record numbers; none may be empty.
        clients: The ids of the chunk's clients, shape (clients,); they key the draws.
        options: The clients' optimiser.
        streams: The run's random streams.
        round: The round, which keys the draws too.
        sizes: The agreed record counts, shape (clients,). Rates and denominators use them, so that they do
            not reveal an added or removed record. None: the actual counts.
        references: The indices of records that no client trains on, for adversarial regularisation, shape
            (references,).
        shape: The padded shape; None: that of the largest client, whose size the others' rounding may reveal.
        drawn: Their batches, as `positions` returns them, if already drawn.
        starts: Where each client starts, if not at `weights`, float32, shape (clients, parameters).
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
    shape: Shape | None = None
    drawn: Drawn | None = None
    starts: NDArray[np.float32] | None = None

    @cached_property
    def counts(self) -> Index:
        """The number of records of each client, shape (clients,)."""
        return self._numbers.counts

    @cached_property
    def _numbers(self) -> RecordNumbers:
        return RecordNumbers.of(self.records)

    @property
    def agreed(self) -> Index:
        """The agreed number of records of each client, shape (clients,)."""
        return self.counts if self.sizes is None else self.sizes

    @property
    def most(self) -> int:
        """The assumed number of records of each client, which selects its method of training."""
        return int(self.agreed.max()) if self.shape is None else self.shape.records

    @property
    def alone(self) -> bool:
        """Whether a call trains one client, so that nothing needs to be vectorised over clients."""
        return self.shape is not None and self.shape.places == 1

    @property
    def whole_batches(self) -> bool:
        """Whether each batch of a client holds all its records, in their order."""
        batches = self.options.batches
        if not isinstance(batches, ShuffledBatches):
            return False
        most = int(self.counts.max()) if self.shape is None else self.shape.records
        return batches.batch_size is None or batches.batch_size >= most

    @cached_property
    def sent(self) -> Tensor:
        """`weights` where `x` is, copied: torch aligns what it allocates, and numpy does not."""
        return torch.tensor(self.weights, device=self.x.device)

    @property
    def rows(self) -> Index:
        """The numbers of each client's records, padded with its own first, shape (clients, rows).

        Another client's broken record can never reach it.
        """
        return self._numbers.padded(int(self.counts.max()) if self.shape is None else self.shape.rows)

    def positions(self, *, secret: bool) -> tuple[Index, NDArray[np.bool_], Index]:
        """Every batch of every client, padded to a common shape. Each client draws from a stream of its own.

        Args:
            secret: Whether the draw is accounted for: then no other run, nor another branch of an attacked
                one, draws the same batches in the same round, which would amplify both but once.

        Returns:
            Positions among the client's own records (columns of `rows`), int64, and which of them count,
            bool, both of shape (clients, steps, batch); and how many steps each client has, shape (clients,).
        """
        if self.drawn is not None:
            return self.drawn
        streams_of = self.streams.noises if secret else self.streams.streams
        streams = streams_of("batches", self.clients.tolist(), round=self.round)
        shape = self.shape
        most, width = (None, 1) if shape is None else (shape.records, shape.width)
        return padded(self.options.batches, self.counts, self.agreed, streams, most=most, width=width)

    def at(self, places: Index, shape: Shape, drawn: Drawn) -> Task:
        """The same for the clients at some places, a place maybe twice.

        Args:
            places: Theirs among those of this task.
            shape: Of the call that they are for.
            drawn: The batches of all clients of this task, of which none of these is wider than the shape.
        """
        positions, used, steps = drawn
        positions, used = positions[places, :, : shape.width], used[places, :, : shape.width]
        if positions.shape[2] < shape.width:
            missing = ((0, 0), (0, 0), (0, shape.width - positions.shape[2]))
            positions, used = np.pad(positions, missing), np.pad(used, missing)
        return replace(
            self,
            records=self._numbers.at(places),
            clients=self.clients[places],
            sizes=None if self.sizes is None else self.sizes[places],
            shape=shape,
            starts=None if self.starts is None else self.starts[places],
            drawn=(positions, used, steps[places]),
        )

    def batches(self, *, secret: bool) -> tuple[Index, NDArray[np.bool_], Index]:
        """As `positions`, with the numbers of the records."""
        positions, used, steps = self.positions(secret=secret)
        flat = positions.reshape(len(positions), -1)
        return np.take_along_axis(self.rows, flat, axis=1).reshape(positions.shape), used, steps
