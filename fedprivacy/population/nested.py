"""Nested groups of clients of one population, and records on which they are measured.

The first ten of an order of clients are among its first hundred, each with the same records in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams

SHARE = 0.2  # of clients, or of each client's records, that are kept for development
LEAST_PUBLIC = 200  # public records; fewer measure too coarsely
MANY_CLIENTS = 25  # of fewer clients each keeps records for development, since a whole one is too many


@dataclass(frozen=True)
class DevelopmentSplit:
    """The clients that train, and the records on which runs are measured while a plan chooses.

    Test records take no part.

    Args:
        people: The clients that train, with their records.
        source: The source of the development records: "public", "clients" or "records".
        rows: Their numbers, shape (development records,).
        sizes: The records of each client held out, in the order of `rows`; None where none is.
    """

    people: Population
    source: str
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, people: Population, seed: int) -> DevelopmentSplit:
        """Public records where there are enough; else a fifth of the clients, or of each one's records.

        Raises:
            InputError: a client has too few records to keep one, or there are too few clients.
        """
        partition = people.partition
        if len(partition.public) >= LEAST_PUBLIC:
            return cls(people, "public", partition.public)
        if partition.clients < 2:
            raise InputError("data: a plan needs 2 clients or more, and there is 1.")
        stream = Streams(seed).stream("plan/development")
        if partition.clients >= MANY_CLIENTS:
            order = stream.permutation(partition.clients)
            held = np.sort(order[: round(SHARE * partition.clients)])
            training = np.setdiff1d(order, held)
            rows = np.concatenate([partition.records(int(client)) for client in held])
            return cls(nested(people, training, len(training)), "clients", rows, partition.sizes[held])
        groups, measured = [], []
        for client in range(partition.clients):
            records = stream.permutation(partition.records(client))
            if len(records) < 2:
                raise InputError(
                    f"data: client {client} has fewer than 2 records, so none can be kept to measure on. Set "
                    "data.public_fraction, or bring more records."
                )
            cut = max(1, round(SHARE * len(records)))
            measured.append(records[:cut])
            groups.append(np.sort(records[cut:]))
        return cls(_with(people, groups), "records", np.concatenate(measured))

    @property
    def x(self) -> NDArray[np.float32]:
        """The development records, shape (records, *features)."""
        return np.asarray(self.people.dataset.x[self.rows])

    @property
    def y(self) -> NDArray[np.int64]:
        """Their labels, shape (records,)."""
        return np.asarray(self.people.dataset.y[self.rows])

    def first(self, count: int, seed: int) -> Population:
        """The first clients of the order that a seed draws."""
        order = Streams(seed).stream("plan/clients").permutation(self.people.partition.clients)
        return nested(self.people, order, count)


def nested(people: Population, order: NDArray[np.int64], count: int) -> Population:
    """The first clients of an order, each with all its records."""
    return replace(people, partition=people.partition.only(order[:count]))


def _with(people: Population, groups: list[NDArray[np.int64]]) -> Population:
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    partition = Partition(np.concatenate(groups), offsets, people.partition.public)
    return replace(people, partition=partition)
