"""Measures by training, without noise, how far one client's records move the release.

A guarantee for whole clients assumes that the updates of all others are the same on neighbouring data, and
that the release moves by at most the accounted sensitivity. Canaries cannot test the first, because their
updates are planted, nor the summation on nodes, because each canary answers singly. So one client gets other
records, fewer and more, and another an update far longer than the clipping norm, and all clients train on
each of these neighbouring data sets from the same model. The comparison is exact: nothing in it is random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.population.partition import Partition

Rows = NDArray[np.float64]
Vector = NDArray[np.float64]

SLACK = 1e-3  # of C: smaller differences are within the rounding that a claim accounts for
ROUNDING = (
    1e-9  # of a distance, by which it may be measured wrongly; that of sums is within what is accounted for
)
FACTOR = 10  # the record count of the largest client, as a multiple of the mean
MOST = 2000  # records of the largest


@dataclass(frozen=True)
class Neighbours:
    """The measurements of a comparison; distances are Euclidean, in units of the clipping norm.

    Args:
        clients: The number of clients that trained together.
        records: The record counts of the replaced client in turn; 0: it was absent.
        allowed: The largest distance that the guarantee accounts for: 2 for replace-one, else 1.
        distance: The largest distance between the releases on two neighbouring data sets.
        others: The largest part of such a distance that is not the replaced client's own clipped update.
        changed: The number of other clients' updates that differ in any bit.
    """

    clients: int
    records: tuple[int, ...]
    allowed: float
    distance: float
    others: float
    changed: int

    @property
    def reacts(self) -> bool:
        """Whether more than the client's own update and rounding depends on the client."""
        return self.others > SLACK

    @property
    def refutes(self) -> bool:
        """Whether it moves by more than is accounted for, if the client's own update moves by all of that."""
        return self.reacts or self.too_far

    @property
    def too_far(self) -> bool:
        """Whether the release moved further than the accounted sensitivity."""
        return self.distance > self.allowed * (1 + ROUNDING)

    @property
    def words(self) -> str:
        """The finding as the end of a sentence."""
        counts = [f"{count:,}" if count else "none" for count in self.records]
        sizes = f"given {', '.join(counts[:-1])} or {counts[-1]} records, one of {self.clients:,} clients"
        whose = f"the updates of {self.changed:,} others" if self.changed else "no bit of the others' updates"
        beside = f"; beside its own update what is released moves by {self.others:.2g} C"
        beside = beside if self.changed or self.reacts else ""
        most = math.ceil(self.distance * 1000) / 1000
        return (
            f"{sizes} changes {whose}{beside}; planted updates included, "
            f"what is released moves by {most:g} C at most, where {self.allowed:g} C are accounted for"
        )

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        return {**vars(self), "records": list(self.records)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Neighbours:
        """Reads an object that `to_json` wrote."""
        return cls(**{**data, "records": tuple(data["records"])})

    def worst(self, other: Neighbours) -> Neighbours:
        """The larger of two findings on the same data sets, from two models."""
        return Neighbours(
            self.clients,
            self.records,
            self.allowed,
            max(self.distance, other.distance),
            max(self.others, other.others),
            max(self.changed, other.changed),
        )


@dataclass(frozen=True)
class World:
    """The answers of the clients on one of the data sets.

    Args:
        records: How many the replaced client has; 0: it is not there.
        contribution: Its clipped update, float64, shape (parameters,); zero if it is not there.
        others: Those of all others, shape (others, parameters).
        released: The sum of all updates, or each of them where each is released, shape (numbers,).
    """

    records: int
    contribution: Vector
    others: Rows
    released: Vector


def compared(
    worlds: Sequence[World], norm: float, adjacency: str, *, summed: bool, planted: tuple[Vector, Vector]
) -> Neighbours:
    """The differences between neighbouring data sets.

    Args:
        worlds: At least two; unless `adjacency` is "replace-one", the first is without the client.
        norm: C.
        adjacency: That of the guarantee.
        summed: Whether sums are released, and not each update.
        planted: What is released on two more neighbours, of which a client's update was planted.
    """
    replaced = adjacency == "replace-one"
    pairs = list(combinations(worlds, 2)) if replaced else [(worlds[0], world) for world in worlds[1:]]
    others: list[float] = []
    changed = np.zeros(len(worlds[0].others), dtype=np.bool_)
    distances = [float(np.linalg.norm(planted[0] - planted[1])) / norm]
    for before, another in pairs:
        rows, released = before.others - another.others, before.released - another.released
        changed |= (before.others.view(np.int64) != another.others.view(np.int64)).any(axis=1)
        distances.append(float(np.linalg.norm(released)) / norm)
        beside = (
            [rows.sum(axis=0), released - (before.contribution - another.contribution)] if summed else [rows]
        )
        others += [float(np.linalg.norm(part)) / norm for part in beside]
    return Neighbours(
        len(worlds[0].others) + 1,
        tuple(world.records for world in worlds),
        2.0 if replaced else 1.0,
        max(distances),
        max(others),
        int(changed.sum()),
    )


def mean_and_most(sizes: NDArray[np.int64]) -> tuple[int, int]:
    """The mean number of records of some clients, and `FACTOR` times as many, at most `MOST` if these are
    more.

    Args:
        sizes: Of the clients, shape (clients,).
    """
    mean = max(1, round(float(sizes.mean())))
    return mean, max(mean, min(FACTOR * mean, MOST))


def counts_of(sizes: NDArray[np.int64]) -> tuple[int, ...]:
    """The record counts that a client gets in turn: one, those of the mean client, and far more.

    Args:
        sizes: Of all clients, shape (clients,).
    """
    mean, most = mean_and_most(sizes)
    return tuple(sorted({1, mean, max(2, most)}))


def with_records(partition: Partition, client: int, records: NDArray[np.int64]) -> Partition:
    """The partition in which one client has other records, and everybody else the same.

    Args:
        partition: Of the data as they are.
        client: Which.
        records: The numbers of its records, at least one, shape (its records,).
    """
    start, end = partition.offsets[client], partition.offsets[client + 1]
    order = np.concatenate([partition.order[:start], records, partition.order[end:]])
    offsets = partition.offsets.copy()
    offsets[client + 1 :] += len(records) - (end - start)
    return Partition(order, offsets, partition.public)
