"""Which client owns which records: an index per client over one shared array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fedprivacy.randomness.streams import Streams

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

    @property
    def sizes(self) -> Index:
        """The number of records of each client, shape (clients,)."""
        return np.diff(self.offsets)

    def records(self, client: int) -> Index:
        """The record numbers of one client, shape (its records,)."""
        return self.order[self.offsets[client] : self.offsets[client + 1]]

    def only(self, clients: Sequence[int] | Index) -> Partition:
        """Some clients, each with all its records, in a given order; the public records stay."""
        groups = [self.records(int(client)) for client in clients]
        return Partition(np.concatenate(groups), _offsets([len(group) for group in groups]), self.public)

    def records_of(self, clients: Index) -> RecordNumbers:
        """The record numbers of several clients, by their ids, shape (clients,)."""
        return RecordNumbers(self.order, self.offsets[clients], self.offsets[clients + 1])


@dataclass(frozen=True)
class RecordNumbers(Sequence[Index]):
    """The record numbers of several clients: parts of one array, so that many small clients cost no loop.

    Args:
        order: Contains them all, shape (numbers,).
        begins: The begin of each client's part, shape (clients,).
        ends: The end of each client's part, shape (clients,).
    """

    order: Index
    begins: Index
    ends: Index

    @classmethod
    def of(cls, records: Sequence[Index]) -> RecordNumbers:
        """Those of separate arrays, one for each client."""
        if isinstance(records, RecordNumbers):
            return records
        ends = np.cumsum([len(numbers) for numbers in records])
        return cls(np.concatenate(records), np.append(0, ends[:-1]), ends)

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, client: int) -> Index: ...
    @overload
    def __getitem__(self, client: slice) -> RecordNumbers: ...
    def __getitem__(self, client: int | slice) -> Index | RecordNumbers:
        if isinstance(client, slice):
            return RecordNumbers(self.order, self.begins[client], self.ends[client])
        return self.order[self.begins[client] : self.ends[client]]

    def at(self, places: Index) -> RecordNumbers:
        """Those of the clients at some places, a place maybe twice."""
        return RecordNumbers(self.order, self.begins[places], self.ends[places])

    @property
    def counts(self) -> Index:
        """The number of records of each client, shape (clients,)."""
        return self.ends - self.begins

    def padded(self, rows: int) -> Index:
        """All of them, each client's padded with its own first, shape (clients, rows).

        Raises:
            ValueError: if a client has no record: another's would fill its places.
        """
        if (self.counts < 1).any():
            raise ValueError("a client without records cannot be padded")
        column = np.arange(rows)
        return self.order[self.begins[:, None] + np.where(column < self.counts[:, None], column, 0)]


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


def by_user(users: NDArray[Any], *, public_fraction: float, seed: int) -> Partition:
    """One client for each user, in the order of their ids.

    Whole users are public, round(users * public_fraction) of them: nobody who owns a client is in
    the public part with other records.

    Args:
        users: The user of each record, whole numbers or text, shape (records,).
        public_fraction: The share of the users that are not clients.
        seed: Draws the public users.
    """
    names, user_of = np.unique(users, return_inverse=True)
    owners, public_users = public_split(len(names), public_fraction, seed)
    together = np.argsort(user_of, kind="stable")
    owned = together[np.isin(user_of[together], owners)]
    sizes = np.bincount(user_of, minlength=len(names))[owners]
    return Partition(owned, _offsets(sizes), np.flatnonzero(np.isin(user_of, public_users)))


def fixed_records(
    records: int, records_per_client: int, clients: int | None = None, *, public_fraction: float, seed: int
) -> Partition:
    """Records dealt at random, the same number to each client.

    The remainder is left out: no client owns it, and it is not public.

    Args:
        records: All of them.
        records_per_client: Those of each client.
        clients: The number of clients; None: as many as the records suffice for.
        public_fraction: The share of the records that no client owns.
        seed: Draws both.
    """
    owned, public = public_split(records, public_fraction, seed)
    order = Streams(seed).stream("partition/fixed-records").permutation(owned)
    if clients is None:
        clients = len(owned) // records_per_client
    offsets = np.arange(clients + 1) * records_per_client
    return Partition(order[: clients * records_per_client], offsets, public)


def dirichlet(
    labels: NDArray[np.int64], clients: int, alpha: float, *, public_fraction: float, seed: int
) -> Partition:
    """Label skew: each client's shares of the labels are drawn from a Dirichlet distribution.

    The construction of Hsu, Qi and Brown 2019 ("Measuring the Effects of Non-Identical Data
    Distribution for Federated Visual Classification"): client after client draws its shares
    q ~ Dirichlet(alpha * p), with p the labels' shares of all records, and then that many records of
    each label, without replacement. All clients have the same number of records up to one, hence
    none is empty. Once a label has run out, its share goes to the others, so the last clients get
    the remaining records.

    Args:
        labels: The label of each record, shape (records,).
        clients: The number of clients, at most that of the records they share.
        alpha: Near 0 each client has one label; as it grows, all have the shares p.
        public_fraction: The share of the records that no client owns.
        seed: Draws the public part, the shares and the records.
    """
    owned, public = public_split(len(labels), public_fraction, seed)
    stream = Streams(seed).stream("partition/dirichlet")
    shuffled = stream.permutation(owned)
    _, label_of, counts = np.unique(labels[shuffled], return_inverse=True, return_counts=True)
    pools = np.argsort(label_of, kind="stable")  # positions in `shuffled`, label after label
    ends = np.cumsum(counts)
    left = counts.copy()
    offsets = (np.arange(clients + 1) * len(owned)) // clients
    order = np.empty(len(owned), np.int64)
    for client in range(clients):
        shares = stream.dirichlet(alpha * counts / len(owned))
        at, end = int(offsets[client]), int(offsets[client + 1])
        for label, count in enumerate(_counts(shares, left, end - at, stream)):
            if count:
                first = ends[label] - left[label]
                order[at : at + count] = shuffled[pools[first : first + count]]
                left[label] -= count
                at += count
    return Partition(order, offsets, public)


def by_label(labels: NDArray[np.int64], clients: int, *, public_fraction: float, seed: int) -> Partition:
    """Records in the order of their labels, cut into equal parts: the first clients have the first label.

    The label-sorted split of McMahan et al. 2017 ("Communication-Efficient Learning of Deep Networks from
    Decentralized Data") with a part for each client. Sizes are equal up to one.

    Args:
        labels: The label of each record, shape (records,).
        clients: The number of clients, at most that of the records they share.
        public_fraction: The share of the records that no client owns.
        seed: Draws the public part, and the order within a label.
    """
    owned, public = public_split(len(labels), public_fraction, seed)
    shuffled = Streams(seed).stream("partition/by-label").permutation(owned)
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return Partition(order, (np.arange(clients + 1) * len(owned)) // clients, public)


def _counts(
    shares: NDArray[np.float64], left: Index, size: int, stream: np.random.Generator
) -> NDArray[np.int64]:
    """Draws `size` records by label with the probabilities `shares`, limited to those remaining."""
    counts = np.zeros_like(left)
    while (missing := size - int(counts.sum())) > 0:
        room = left - counts
        open_shares = np.where(room > 0, shares, 0.0)
        if not open_shares.sum() > 1e-12:  # none of this client's labels has records left
            open_shares = room.astype(np.float64)
        counts += np.minimum(stream.multinomial(missing, open_shares / open_shares.sum()), room)
    return counts


def _offsets(sizes: Index | Sequence[int]) -> Index:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
