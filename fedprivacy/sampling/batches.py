"""Samplers of a client's batches, each with the DpEvent of its draw for one record.

The accountant knows three samplers. A Poisson batch includes each record by its own coin, which amplifies
privacy. A shuffled pass cuts all records into batches, so each record is in exactly one: it costs the same
as one step on all records, without amplification. A batch drawn with replacement may contain a record more
than once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class PoissonBatches:
    """Each record joins each batch by its own coin (Abadi et al. 2016; Mironov et al. 2019).

    Args:
        steps: Batches in a round.
        rate: The probability that a record joins one, or None where `batch_size` gives it.
        batch_size: The mean size of a batch, or None where `rate` gives it.
    """

    steps: int
    rate: float | None = None
    batch_size: int | None = None
    name: ClassVar[str] = "poisson"
    random: ClassVar[bool] = True

    def steps_in(self, records: int) -> int:
        """The number of batches in a round."""
        return self.steps

    def rate_of(self, records: int) -> float:
        """The probability that one of `records` records joins a batch."""
        if self.batch_size is not None:
            return min(1.0, self.batch_size / records)
        assert self.rate is not None
        return self.rate

    def at(self, agreed: int) -> PoissonBatches:
        """The sampler at the rate of the agreed record count, which adding or removing a record keeps."""
        return PoissonBatches(self.steps, rate=self.rate_of(agreed))

    def draw(self, records: int, stream: np.random.Generator) -> list[Positions]:
        """The records of each batch, as positions from 0, sorted; a batch may be empty."""
        rate = self.rate_of(records)
        return [np.flatnonzero(stream.random(records) < rate) for _ in range(self.steps)]

    def mean_size(self, records: int) -> float:
        """The mean size of a batch: the fixed denominator of the mean gradient."""
        return self.rate_of(records) * records

    def event(self, release: dp.DpEvent, records: int) -> dp.DpEvent:
        """The event of a client's round for one of its `records` records, a step being `release`."""
        # Each record flips a coin of its own in every step, and the denominator of the gradient is the mean
        # size of a batch, so that the size of this batch stays secret.
        sampled = dp.PoissonSampledDpEvent(self.rate_of(records), release)
        return dp.SelfComposedDpEvent(sampled, self.steps)

    @property
    def by_size(self) -> bool:
        """Whether a record of a smaller client is drawn more often, and so costs more."""
        return self.batch_size is not None

    @property
    def words(self) -> str:
        """In plain words."""
        size = f"rate {self.rate:g}" if self.rate is not None else f"mean size {self.batch_size}"
        return f"{_count(self.steps, 'Poisson batch', 'es')} of {size} in a round"


@dataclass(frozen=True)
class ShuffledBatches:
    """Passes over all records, each shuffled anew and cut into batches.

    Args:
        epochs: Passes in a round.
        batch_size: Records in a batch, of which the last of a pass may have fewer; None for all at once.
    """

    epochs: int
    batch_size: int | None = None
    name: ClassVar[str] = "shuffled"

    @property
    def random(self) -> bool:
        """Whether the batches are random."""
        return self.batch_size is not None

    def steps_in(self, records: int) -> int:
        """The number of batches in a round of a client with `records` records."""
        return self.epochs * (1 if self.batch_size is None else -(-records // self.batch_size))

    def at(self, agreed: int) -> ShuffledBatches:
        """The sampler itself: it does not depend on the record count."""
        return self

    def draw(self, records: int, stream: np.random.Generator) -> list[Positions]:
        """The records of each batch, as positions from 0; nothing is drawn where a batch holds them all."""
        size = records if self.batch_size is None else self.batch_size
        parts: list[Positions] = []
        for _ in range(self.epochs):
            order = np.arange(records) if size >= records else stream.permutation(records)
            parts += [order[start : start + size] for start in range(0, records, size)]
        return parts

    def mean_size(self, records: int) -> float:
        """The size of all batches but the last of a pass: the fixed denominator of the mean gradient."""
        return float(records if self.batch_size is None else min(self.batch_size, records))

    def event(self, release: dp.DpEvent, records: int) -> dp.DpEvent:
        """The event of a client's round for one of its `records` records, a step being `release`.

        A record is in one batch of a pass in any order: parallel composition. Adding or removing a record
        would move others between batches. A pass in batches is therefore stated as a fixed-size sample of all
        records: it equals the release itself while their number is fixed, and has no account under
        add-remove.
        """
        # Without amplification: the theorem for Poisson batches (Abadi et al. 2016) needs independent coins.
        if self.batch_size is not None:
            release = dp.SampledWithoutReplacementDpEvent(records, records, release)
        return dp.SelfComposedDpEvent(release, self.epochs)

    @property
    def by_size(self) -> bool:
        """Whether a record of a smaller client is drawn more often: no, each once a pass."""
        return False

    @property
    def words(self) -> str:
        """In plain words."""
        if self.batch_size is None:
            return f"{_count(self.epochs, 'step', 's')} on all records of a client in a round"
        return f"{_count(self.epochs, 'shuffled pass', 'es')} in batches of {self.batch_size} in a round"


@dataclass(frozen=True)
class ReplacementBatches:
    """Each place of a batch is drawn uniformly from all records, so that one may fill several.

    With one place it is the sampling of Bassily, Smith and Thakurta 2014.

    Args:
        steps: Batches in a round.
        batch_size: Places in a batch.
    """

    steps: int
    batch_size: int
    name: ClassVar[str] = "with-replacement"
    random: ClassVar[bool] = True

    def steps_in(self, records: int) -> int:
        """The number of batches in a round."""
        return self.steps

    def at(self, agreed: int) -> ReplacementBatches:
        """The sampler itself: it does not depend on the record count."""
        return self

    def draw(self, records: int, stream: np.random.Generator) -> list[Positions]:
        """The records of each batch, as positions from 0; one may occur several times."""
        return [stream.integers(records, size=self.batch_size) for _ in range(self.steps)]

    def mean_size(self, records: int) -> float:
        """The size of a batch: the fixed denominator of the mean gradient."""
        return float(self.batch_size)

    def event(self, release: dp.DpEvent, records: int) -> dp.DpEvent:
        """The event of a client's round for one of its `records` records, a step being `release`.

        One place is a sample of one without replacement, which accountants know.
        """
        sampled = (
            dp.SampledWithoutReplacementDpEvent(records, 1, release)
            if self.batch_size == 1
            else dp.SampledWithReplacementDpEvent(records, self.batch_size, release)
        )
        return dp.SelfComposedDpEvent(sampled, self.steps)

    @property
    def by_size(self) -> bool:
        """Whether a record of a smaller client is drawn more often, and so costs more."""
        return True

    @property
    def words(self) -> str:
        """In plain words."""
        batches = _count(self.steps, "batch", "es")
        return f"{batches} of {self.batch_size} drawn with replacement in a round"


Batches = PoissonBatches | ShuffledBatches | ReplacementBatches


def padded(
    batches: Batches,
    records: Positions,
    agreed: Positions,
    streams: Iterator[np.random.Generator],
    *,
    most: int | None = None,
    width: int = 1,
) -> tuple[Positions, NDArray[np.bool_], Positions]:
    """The batches of many clients, padded to a common shape with position 0.

    Args:
        batches: Draws them.
        records: The record counts of the clients, shape (clients,).
        agreed: The agreed number of records, from which rates are computed, shape (clients,).
        streams: The stream of each client in turn.
        most: The record count whose steps all are padded to; None: that of the largest client here.
        width: The least size that batches are padded to.

    Returns:
        Positions from 0 within a client's records and the mask of those in use, both of shape (clients,
        steps, batch); and the number of steps of each client, shape (clients,).
    """
    if isinstance(batches, ShuffledBatches):
        positions, used, steps = _shuffled(batches, records, streams, most or int(records.max()))
        if positions.shape[2] < width:
            wider = ((0, 0), (0, 0), (0, width - positions.shape[2]))
            positions, used = np.pad(positions, wider), np.pad(used, wider)
        return positions, used, steps
    pairs = zip(records.tolist(), agreed.tolist(), streams, strict=True)
    drawn = [batches.at(size).draw(count, stream) for count, size, stream in pairs]
    steps = np.array([len(parts) for parts in drawn])
    width = max(width, max(len(part) for parts in drawn for part in parts))
    positions = np.zeros((len(drawn), steps.max(), width), dtype=np.int64)
    used = np.zeros(positions.shape, dtype=np.bool_)
    for row, parts in enumerate(drawn):
        for step, part in enumerate(parts):
            positions[row, step, : len(part)] = part
            used[row, step, : len(part)] = True
    return positions, used, steps


def _shuffled(
    batches: ShuffledBatches, records: Positions, streams: Iterator[np.random.Generator], longest: int
) -> tuple[Positions, NDArray[np.bool_], Positions]:
    """The draws of `draw` for each client as arrays, without a list for each batch; `longest` steps."""
    size = min(batches.batch_size or longest, longest)
    orders = np.tile(np.arange(longest), (len(records), batches.epochs, 1))
    alike = bool((records == longest).all())
    if size < longest and alike and batches.epochs == 1:
        for order, stream in zip(orders[:, 0], streams, strict=True):
            stream.shuffle(order)  # as `permutation`, in place
    elif size < longest:
        for row, count, stream in zip(orders, records.tolist(), streams, strict=True):
            if count > size:
                for order in row:
                    stream.shuffle(order[:count])
    if alike:
        width = -(-longest // size) * size
        used = np.tile(np.arange(width) < longest, (len(records), batches.epochs, 1))
        if longest < width:
            orders = np.pad(orders, ((0, 0), (0, 0), (0, width - longest)))
        shape = (len(records), batches.epochs * width // size, size)
        return orders.reshape(shape), used.reshape(shape), np.full(len(records), shape[1])
    in_epoch = -(-records // size)[:, None]
    steps = (in_epoch * batches.epochs)[:, 0]
    step = np.arange(batches.epochs * -(-longest // size))
    places = (step % in_epoch * size)[:, :, None] + np.arange(size)
    used = (places < records[:, None, None]) & (step < steps[:, None])[:, :, None]
    epoch = np.minimum(step // in_epoch, batches.epochs - 1)[:, :, None]
    client = np.arange(len(records))[:, None, None]
    positions = np.where(used, orders[client, epoch, np.minimum(places, longest - 1)], 0)
    return positions, used, steps


BATCHES: dict[str, type[PoissonBatches] | type[ShuffledBatches] | type[ReplacementBatches]] = {
    kind.name: kind for kind in (PoissonBatches, ShuffledBatches, ReplacementBatches)
}


def _count(number: int, noun: str, plural: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{plural}"
