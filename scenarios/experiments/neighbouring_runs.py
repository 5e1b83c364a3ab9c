"""Trains on neighbouring data sets, and compares clients' updates and releases.

The clients are the scenario's, without canaries, noise and sampling; one of them has its records replaced, by
fewer and by more (`fedprivacy.attacks.measured_sensitivity`), another answers with an update far longer
than the clipping norm. All else, random streams too, stays as it is. Sums are those of the scenario's own
messages and of its server.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clients.app import make_app
from clients.fleet import Fleet
from clients.training_handler import answer
from fedprivacy.attacks.canaries import draw_canaries
from fedprivacy.attacks.measured_sensitivity import (
    Neighbours,
    World,
    compared,
    counts_of,
    with_records,
)
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.partition import Partition
from fedprivacy.sampling.cohorts import AllSampling
from fedprivacy.scenario import Scenario
from scenarios.engines.embedded import EmbeddedGrid
from server.app import federation_of
from server.sampling import chunks

Ids = NDArray[np.int64]
Vector = NDArray[np.float64]

CLIENTS = 256  # that train together at most


def neighbours(fleet: Fleet, count: int, model: Vector, scenario: Scenario) -> Neighbours | None:
    """The effect of one client's records and update; None without clipping, or for a lone client.

    Args:
        fleet: Of the scenario.
        count: How many of its clients, the first ones, there are without canaries.
        model: What all train from, shape (parameters,).
        scenario: Says how messages are cut, and whether nodes reply with sums.
    """
    norm, clients = fleet.plan.clipping_norm, min(count, CLIENTS)
    if norm is None or clients < 2:
        return None
    summed = fleet.plan.trust == "central" or fleet.plan.noise_draw == "sum"
    partition = fleet.people.partition.only(range(count))
    # Nobody drops out: the client that is replaced would hide what it changes.
    plain = replace(
        with_partition(fleet, partition), plan=_without_noise(fleet.plan, norm), canaries=None, dropout=0.0
    )
    cohort, replaced = np.arange(clients), clients // 2
    counts = counts_of(partition.sizes)
    drawn = fleet.streams.stream("neighbouring-records").choice(partition.order, max(counts))
    one_less = plain.plan.adjacency != "replace-one"
    rounds = _Round(scenario, model, summed)
    worlds = [rounds.world(plain, cohort, replaced, there=False)] if one_less else []
    for records in counts:
        given = with_partition(plain, with_records(partition, replaced, drawn[:records]))
        worlds.append(rounds.world(given, cohort, replaced, there=True))
    planted = [rounds.released(_planted(plain, clients - 1, sign), cohort) for sign in (1.0, -1.0)]
    if one_less:
        planted[1] = rounds.released(plain, cohort, without=clients - 1)
    return compared(worlds, norm, plain.plan.adjacency, summed=summed, planted=(planted[0], planted[1]))


def with_partition(fleet: Fleet, partition: Partition) -> Fleet:
    """The fleet whose clients have other records, on which they agreed; its random streams stay."""
    return replace(fleet, people=replace(fleet.people, partition=partition), sizes=partition.sizes)


def _without_noise(plan: Plan, norm: float) -> Plan:
    """The plan without noise of the clients; under central trust they draw none."""
    if plan.trust == "central":
        return plan
    return replace(
        plan,
        trust="none",
        sampler=AllSampling(),
        mechanism=ClipOnly(norm),
        delta=None,
        max_participations=None,
        noise_draw=None,
    )


def _planted(fleet: Fleet, client: int, sign: float) -> Fleet:
    """The fleet of which a client's update, before it is clipped, is far longer than C."""
    plan = fleet.plan
    drawn = draw_canaries(client, 1, fleet.parameters, plan.clipping_norm, plan.adjacency, fleet.streams)
    return replace(fleet, canaries=replace(drawn, signs=np.array([sign], np.float32)))


@dataclass(frozen=True)
class _Round:
    """A round without noise on neighbouring data sets.

    Args:
        scenario: Says how messages are cut, and whether nodes reply with sums.
        model: What all train from, shape (parameters,).
        summed: Whether sums are released, and not each update.
    """

    scenario: Scenario
    model: Vector
    summed: bool

    def world(self, fleet: Fleet, cohort: Ids, replaced: int, *, there: bool) -> World:
        """The answers of a cohort with the replaced client or without it."""
        without = None if there else replaced
        rows = self._rows(fleet, cohort, without)
        released = self._sum(fleet, cohort, without) if self.summed else rows.ravel()
        records = int(fleet.people.partition.sizes[replaced]) if there else 0
        return World(records, rows[replaced], np.delete(rows, replaced, axis=0), released)

    def released(self, fleet: Fleet, cohort: Ids, without: int | None = None) -> Vector:
        """The release of a cohort without one client: the sum, or all updates in order."""
        return (
            self._sum(fleet, cohort, without) if self.summed else self._rows(fleet, cohort, without).ravel()
        )

    def _rows(self, fleet: Fleet, cohort: Ids, without: int | None) -> NDArray[np.float64]:
        """The clipped updates, shape (cohort, parameters); zero for the client that is left out."""
        rows = np.zeros((len(cohort), len(self.model)))
        size, weights = self.scenario.federation.chunk_size, self.model.astype(np.float32)
        for chunk in chunks(cohort[cohort != without], hosts=fleet.hosts, size=size):
            request = TrainRequest(0, chunk.host, chunk.number, chunk.clients, weights, fleet.plan, "each")
            reply, _ = answer(fleet, None, request, hosts=range(fleet.hosts))
            rows[reply.clients] = reply.updates
        return rows

    def _sum(self, fleet: Fleet, cohort: Ids, without: int | None) -> Vector:
        """The sum that a run of the scenario would add noise to, by its own messages and its server."""
        grid = EmbeddedGrid(make_app(fleet), [{"partition-id": 0, "num-partitions": 1}])
        ledger = Ledger(fleet.plan)
        federation, _ = federation_of(grid, self.scenario, ledger, fleet.people, fleet.model)
        federation.weights = self.model
        federation.longest = None  # no claim rests on what the server refuses
        return federation.total(0, cohort[cohort != without]).updates
