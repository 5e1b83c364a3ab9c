"""Canary clients of an auditor, whose answers are known except for a coin to be guessed.

Each has its own random direction (Andrew et al. 2024, "One-shot empirical privacy estimation for federated
learning") and a fair coin (Steinke, Nasr and Jagielski 2023). The coin decides the worst change that the
guarantee's adjacency allows: under replace-one the update is +C u or -C u, else C u or zero. The code that
clips, samples and noises all clients does so for canaries.

They are clients with records, ragged ones, and train like the others, so that batches, padding and kernels
are those of neighbouring data; then the planted update replaces the trained one. The same coin decides the
number of a canary's records: the drawn number, or one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.attacks.measured_sensitivity import mean_and_most
from fedprivacy.attacks.targets import Flags, Scores
from fedprivacy.errors import InputError
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams

Ids = NDArray[np.int64]

LONGER = 4.0  # than the clipping norm, so that an update that is not clipped is detected
NUMBERS = 2.5e8  # of all directions together, 1 GB
_ORTHOGONAL = 2e11  # operations, a minute: beyond it directions are not orthogonalised
_BLOCK = 64  # directions drawn at once


@dataclass(frozen=True)
class Canaries:
    """The canaries of one run: clients first, first + 1, ...

    Args:
        first: The id of the first of them, after all clients of the scenario.
        directions: Unit vectors, orthogonal where there is room, float32, shape (canaries, parameters).
        signs: What each answers: +1 or -1 times its direction, or 0, shape (canaries,).
        present: The coins, shape (canaries,).
        opposite: Whether the two answers of a canary are opposite ones, and not one and zero.
        norm: C, the length of an answer as it is clipped.
        length: Its length before.
    """

    first: int
    directions: NDArray[np.float32]
    signs: NDArray[np.float32]
    present: Flags
    opposite: bool
    norm: float
    length: float

    @property
    def count(self) -> int:
        """The number of canaries."""
        return len(self.present)

    @property
    def middle(self) -> float:
        """The midpoint between the answers of both coins, in units of C along the direction."""
        return 0.0 if self.opposite else 0.5

    def of(self, clients: Ids) -> Ids:
        """The places of those clients that are canaries."""
        return clients[clients >= self.first] - self.first

    def updates(self, places: Ids) -> Tensor:
        """The answers of some of them before clipping, float32, shape (places, parameters)."""
        return torch.from_numpy(self.directions[places] * (self.length * self.signs[places])[:, None])

    def along(self, total: NDArray[np.float64]) -> Scores:
        """The components of a sum along all directions, in units of C, shape (canaries,)."""
        return (self.directions @ total.astype(np.float32)).astype(np.float64) / self.norm

    def owned(self, partition: Partition) -> Partition:
        """The partition of `with_canaries` with the records that the coins leave to the canaries."""
        limits = np.append(
            partition.sizes[: self.first], np.where(self.present, partition.sizes[self.first :], 1)
        )
        return at_most(partition, limits)

    def silent(self) -> Canaries:
        """The same clients, all of which answer zero."""
        return replace(self, signs=np.zeros_like(self.signs))


def check_memory(count: int, parameters: int) -> None:
    """Refuses canaries whose directions do not fit into memory.

    Args:
        count: How many canaries.
        parameters: Of the model.

    Raises:
        InputError: they do not fit.
    """
    if count * parameters > NUMBERS:
        raise InputError(
            f"--canaries {count}: each has a direction of {parameters:,} numbers, {NUMBERS:,.0f} together at "
            f"most. Choose {int(NUMBERS // parameters):,} or fewer."
        )


def draw_canaries(
    first: int, count: int, parameters: int, clipping_norm: float | None, adjacency: str, streams: Streams
) -> Canaries:
    """Draws directions and coins.

    Args:
        first: The number of the scenario's clients.
        count: How many canaries.
        parameters: Of the model.
        clipping_norm: C; None: nothing is clipped, and canaries answer with norm 1.
        adjacency: That of the guarantee.
        streams: The run's.

    Raises:
        InputError: their directions do not fit into memory.
    """
    check_memory(count, parameters)
    directions = np.empty((count, parameters), np.float32)
    for block in range(0, count, _BLOCK):
        stream = streams.noise("canary-directions", member=block)
        size = min(_BLOCK, count - block)
        directions[block : block + size] = stream.standard_normal((size, parameters), dtype=np.float32)
    if count <= parameters and 4.0 * count * count * parameters <= _ORTHOGONAL:
        # Orthogonal canaries do not disturb each other's scores.
        directions = np.ascontiguousarray(np.linalg.qr(directions.T)[0].T)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    present = streams.noise("canary-coins").random(count) < 0.5
    opposite = adjacency == "replace-one"
    signs = np.where(present, 1.0, -1.0 if opposite else 0.0).astype(np.float32)
    norm, longer = (1.0, 1.0) if clipping_norm is None else (clipping_norm, LONGER)
    return Canaries(first, directions, signs, present, opposite, norm, norm * longer)


def with_canaries(partition: Partition, count: int, stream: np.random.Generator) -> Partition:
    """The partition with additional clients, each with the record count of a canary.

    Args:
        partition: Of the scenario's data.
        count: How many canaries.
        stream: Draws their records, from all records of clients.
    """
    sizes = ragged_sizes(partition.sizes, count)
    drawn = stream.choice(partition.order, int(sizes.sum()))
    offsets = np.concatenate([partition.offsets, partition.offsets[-1] + np.cumsum(sizes)])
    return replace(partition, order=np.concatenate([partition.order, drawn]), offsets=offsets)


def ragged_sizes(sizes: Ids, count: int) -> Ids:
    """Returns record limits of canaries: two; for every tenth the mean, for every hundredth far more.

    Args:
        sizes: Of the scenario's clients, shape (clients,).
        count: How many canaries.
    """
    counts = np.full(count, 2, np.int64)
    mean, most = mean_and_most(sizes)
    counts[::10] = max(2, mean)
    counts[5::100] = max(2, most)
    return counts


def at_most(partition: Partition, limits: Ids) -> Partition:
    """The partition in which each client keeps only its first records.

    Args:
        partition: Of all clients.
        limits: At least 1, shape (clients,).
    """
    sizes = np.minimum(partition.sizes, limits)
    places = np.arange(len(partition.order)) - np.repeat(partition.offsets[:-1], partition.sizes)
    order = partition.order[places < np.repeat(sizes, partition.sizes)]
    return replace(partition, order=order, offsets=np.concatenate([[0], np.cumsum(sizes)]))
