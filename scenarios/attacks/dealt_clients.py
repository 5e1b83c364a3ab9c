"""Clients that an attack deals records to: worlds of the victim, and an attacker's own clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clients.fleet import Fleet
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams

Ids = NDArray[np.int64]


def dealt_fleet(
    fleet: Fleet,
    people: Population,
    dealt: Sequence[Ids],
    sizes: Ids,
    streams: Streams,
    *,
    plan: Plan | None = None,
    first: int = 0,
) -> Fleet:
    """A fleet of clients with these records, which trains as the given one does and loses no client.

    Args:
        fleet: The run's clients.
        people: The data that the records are of.
        dealt: The records of each client.
        sizes: The agreed number of records of each client, shape (clients,).
        streams: By which the clients draw.
        plan: Theirs; None: the fleet's.
        first: The number of the first client; those before it are empty.
    """
    offsets = np.concatenate([np.zeros(first, np.int64), np.cumsum([0, *map(len, dealt)])])
    partition = Partition(np.concatenate(dealt), offsets, people.partition.public)
    return replace(
        fleet,
        plan=plan or fleet.plan,
        people=replace(people, partition=partition),
        sizes=np.concatenate([np.repeat(sizes[:1], first), sizes]),
        streams=streams,
        by_records=False,
        hosts=1,
        dropout=0.0,
        apart=None,
        alone=False,
    )
