"""Trains a scenario's clients on neighbouring data sets, and compares what they answer.

The clients are the scenario's, without canaries, noise and sampling; one of them has its records replaced, by
fewer and by more (`fedprivacy.attacks.neighbours`). All else, random streams too, stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clients.fleet import Fleet
from clients.training import answer
from fedprivacy.attacks.neighbours import (
    Neighbours,
    World,
    compared,
    counts_of,
    first_clients,
    with_records,
)
from fedprivacy.data.partition import Partition
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.protocol import TrainRequest
from fedprivacy.sampling import AllSampling
from server.sampling import chunks

CLIENTS = 256  # that train together at most


def neighbours(fleet: Fleet, count: int, model: NDArray[np.float64], chunk_size: int) -> Neighbours | None:
    """What changes for others if one client's records do; None where nothing is clipped, or one is alone.

    Args:
        fleet: Of the scenario.
        count: How many of its clients, the first ones, there are without canaries.
        model: What all train from, shape (parameters,).
        chunk_size: Clients in one message.
    """
    norm, clients = fleet.plan.clipping_norm, min(count, CLIENTS)
    if norm is None or clients < 2:
        return None
    plan = replace(
        fleet.plan,
        trust="none",
        sampler=AllSampling(),
        mechanism=ClipOnly(norm),
        delta=None,
        max_participations=None,
        noise_draw=None,
    )
    plain, cohort, replaced = replace(fleet, plan=plan, canaries=None), np.arange(clients), clients // 2
    partition = first_clients(fleet.people.partition, count)
    counts = counts_of(partition.sizes)
    drawn = fleet.streams.stream("neighbouring-records").choice(partition.order, max(counts))
    worlds = []
    if plan.adjacency != "replace-one":
        worlds.append(
            _world(with_partition(plain, partition), model, cohort, replaced, chunk_size, there=False)
        )
    for records in counts:
        given = with_partition(plain, with_records(partition, replaced, drawn[:records]))
        worlds.append(_world(given, model, cohort, replaced, chunk_size, there=True))
    return compared(worlds, norm, plan.adjacency, summed=fleet.plan.trust == "central")


def with_partition(fleet: Fleet, partition: Partition) -> Fleet:
    """The fleet whose clients have other records, on which they agreed; its random streams stay."""
    return replace(fleet, people=replace(fleet.people, partition=partition), sizes=partition.sizes)


def _world(
    fleet: Fleet,
    model: NDArray[np.float64],
    cohort: NDArray[np.int64],
    replaced: int,
    chunk_size: int,
    *,
    there: bool,
) -> World:
    """What a cohort answers in one round, with the replaced client or without it."""
    rows = np.zeros((len(cohort), len(model)))
    asked = cohort if there else np.delete(cohort, replaced)
    for chunk in chunks(asked, hosts=fleet.hosts, size=chunk_size):
        request = TrainRequest(
            0, chunk.host, chunk.number, chunk.clients, model.astype(np.float32), fleet.plan, "each"
        )
        reply, _ = answer(fleet, None, request, hosts=range(fleet.hosts))
        rows[reply.clients] = reply.updates
    records = int(fleet.people.partition.sizes[replaced]) if there else 0
    return World(records, rows[replaced], np.delete(rows, replaced, axis=0))
