"""Which client owns which records: an index per client over one shared array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedprivacy.seeds import Streams

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Partition:
    """The records of each client, and the public records that no client owns.

    Args:
        order: Record numbers, client after client, shape (owned records,).
        offsets: Client c owns order[offsets[c]:offsets[c + 1]], shape (clients + 1,).
        public: The records that no client owns, sorted, shape (public records,).
    """

    order: Index
    offsets: Index
    public: Index

    @property
    def clients(self) -> int:
        """The number of clients."""
        return len(self.offsets) - 1

    def records(self, client: int) -> Index:
        """The record numbers of one client, shape (its records,)."""
        return self.order[self.offsets[client] : self.offsets[client + 1]]


def public_split(records: int, fraction: float, seed: int) -> tuple[Index, Index]:
    """Splits record numbers into (owned, public); the public part has round(records * fraction)."""
    size = round(records * fraction)
    if size == 0:
        return np.arange(records), np.arange(0)
    shuffled = Streams(seed).stream("partition/public").permutation(records)
    return np.sort(shuffled[size:]), np.sort(shuffled[:size])


def one_per_example(records: int, *, public_fraction: float, seed: int) -> Partition:
    """One client for each record that is not public."""
    owned, public = public_split(records, public_fraction, seed)
    return Partition(owned, np.arange(len(owned) + 1), public)


def iid(records: int, clients: int, *, public_fraction: float, seed: int) -> Partition:
    """Records dealt at random to the clients, sizes equal up to one."""
    owned, public = public_split(records, public_fraction, seed)
    order = Streams(seed).stream("partition/iid").permutation(owned)
    offsets = (np.arange(clients + 1) * len(owned)) // clients
    return Partition(order, offsets, public)
