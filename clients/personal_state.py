"""What clients keep for their personal models from round to round: on their node, and in no message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flwr.app import Array, ArrayRecord, RecordDict
from numpy.typing import NDArray

from fedprivacy.errors import InputError

Ids = NDArray[np.int64]
Rows = NDArray[np.float32]

RECORD = "personal"  # in a node's state
# Of all clients: 80 MB, of which a message holds several copies (a process took 575 MB at its peak).
MOST_NUMBERS = 2 * 10**7


@dataclass
class PersonalStates:
    """What some clients keep; those that have not taken part are not here.

    Args:
        clients: Their ids, sorted, shape (clients,).
        rows: What each keeps, float32, shape (clients, size).
    """

    clients: Ids
    rows: Rows

    @classmethod
    def empty(cls, size: int) -> PersonalStates:
        """Nobody has taken part."""
        return cls(np.zeros(0, np.int64), np.zeros((0, size), np.float32))

    def of(self, clients: Ids, initial: Rows) -> Rows:
        """What clients keep, shape (clients, size).

        Args:
            clients: Their ids, shape (clients,).
            initial: What one keeps that has not taken part, shape (size,).
        """
        rows = np.tile(initial, (len(clients), 1))
        known = np.isin(clients, self.clients)
        rows[known] = self.rows[np.searchsorted(self.clients, clients[known])]
        return rows

    def only(self, clients: Ids) -> PersonalStates:
        """Those of some clients."""
        here = np.isin(self.clients, clients)
        return PersonalStates(self.clients[here], self.rows[here])

    def update(self, clients: Ids, rows: Rows) -> None:
        """Replaces what clients keep.

        Args:
            clients: Their ids, each once, shape (clients,).
            rows: What each keeps now, shape (clients, size).
        """
        if len(self.clients):
            place = np.searchsorted(self.clients, clients).clip(max=len(self.clients) - 1)
            if np.array_equal(self.clients[place], clients):  # nothing but these rows is copied
                self.rows[place] = rows
                return
        others = ~np.isin(self.clients, clients)
        together = np.concatenate([self.clients[others], clients])
        order = np.argsort(together)
        self.rows = np.concatenate([self.rows[others], rows])[order]
        self.clients = together[order]

    def changes(self, before: PersonalStates) -> PersonalStates:
        """Those that differ from an earlier state of the same node, of which none is missing here."""
        place = np.searchsorted(self.clients, before.clients)
        changed = np.ones(len(self.clients), np.bool_)
        changed[place] = (self.rows[place] != before.rows).any(axis=1)
        return PersonalStates(self.clients[changed], self.rows[changed])

    @classmethod
    def load(cls, state: RecordDict, size: int) -> PersonalStates:
        """Those in a node's state.

        Args:
            state: The node's state.
            size: The numbers of each client.

        Raises:
            InputError: they are of other models, or no models of clients.
        """
        if RECORD not in state:
            return cls.empty(size)
        record = state.array_records[RECORD]
        if {"clients", "rows"} <= set(record) and (states := cls.of_record(record))._fit(size):
            return states
        raise InputError("the node's state has personal models of another run. Start a new run.")

    def _fit(self, size: int) -> bool:
        """Whether these are rows of so many numbers, one for each client, by rising ids."""
        ids, rows = self.clients, self.rows
        fit = ids.ndim == 1 and ids.dtype == np.int64 and rows.dtype == np.float32
        return fit and rows.shape == (len(ids), size) and bool((np.diff(ids, prepend=-1) > 0).all())

    @classmethod
    def of_record(cls, record: ArrayRecord) -> PersonalStates:
        """Those that `record` wrote."""
        return cls(record["clients"].numpy(), record["rows"].numpy())

    def record(self) -> ArrayRecord:
        """Them as a record of a node's state."""
        return ArrayRecord({"clients": Array(self.clients), "rows": Array(self.rows)})


def check_memory(population: int, size: int) -> None:
    """Refuses personal models that take too much memory together.

    Args:
        population: The number of clients.
        size: The numbers that each keeps.

    Raises:
        InputError: they do.
    """
    if population * size > MOST_NUMBERS:
        raise InputError(
            f"training.personal: {population:,} clients keep {size:,} numbers each, and together at most "
            f"{MOST_NUMBERS:,} are kept. Let more of the model be shared, take fewer clients, or use "
            'personal = "fine-tune", which keeps nothing.'
        )
