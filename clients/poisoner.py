"""Malicious clients that poison the model: a Flower mod around them; the honest code does not know it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray

from clients.adversary import forged
from clients.chunk_training import ChunkTrainer
from clients.fleet import Fleet
from fedprivacy.attacks.poisoned_records import Goal
from fedprivacy.messages.protocol import TrainRequest, parts_of
from fedprivacy.population.partition import Partition

Ids = NDArray[np.int64]


@dataclass
class Poisoner:
    """Malicious clients that train on poisoned records, and boost what they upload.

    With a boost of n / learning rate, n the denominator of the mean, one upload replaces the global model by
    the attacker's (model replacement, Bagdasaryan et al. 2020).

    Args:
        fleet: The malicious clients with poisoned records, and without clipping or noise.
        attackers: Their ids; each has messages of its own.
        boost: By what an update is multiplied.
        passes: How many times a client goes through its local training in a round.
        most: As `Participant` has it.
    """

    fleet: Fleet
    attackers: frozenset[int]
    boost: float = 1.0
    passes: int = 1
    most: float | None = None

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Answers for a malicious client with its boosted update, whatever the honest code would answer."""
        arrays, values = parts_of(message) if message.metadata.message_type == "train" else ({}, {})
        if len(arrays.get("clients", ())) != 1 or int(arrays["clients"][0]) not in self.attackers:
            return call_next(message, context)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        update = self._update(TrainRequest.of(arrays, values), arrays["clients"])
        return forged(reply, arrays["clients"], self.boost * update, self.most)

    def _update(self, request: TrainRequest, clients: Ids) -> NDArray[np.float64]:
        """The update of a client by its poisoned records."""
        weights = request.weights
        for number in range(self.passes):
            # Each pass has an order of batches of its own.
            streams = replace(self.fleet.streams, seed=(self.fleet.streams.seed + number) % 2**63)
            fleet = replace(self.fleet, streams=streams)
            following = replace(request, weights=weights, plan=fleet.plan, observe="each")
            step = ChunkTrainer(fleet, following).trained(clients).updates.stack().numpy()[0]
            weights = (weights + step).astype(np.float32)
        difference: NDArray[np.float64] = weights.astype(np.float64) - request.weights
        return difference


def poisoned_fleet(fleet: Fleet, goal: Goal, attackers: Iterable[int]) -> Fleet:
    """Malicious clients with poisoned records, who neither clip nor add noise; all others have no records.

    Args:
        fleet: The honest clients.
        goal: What the attackers are after, by which their records change.
        attackers: Their ids.
    """
    people, ids = fleet.people, sorted(attackers)
    records = [people.partition.records(client) for client in ids]
    poisoned = [
        goal.poison(
            people.dataset.x[numbers],
            people.dataset.y[numbers],
            fleet.streams.stream("poison", member=client),
        )
        for client, numbers in zip(ids, records, strict=True)
    ]
    sizes = np.zeros(people.partition.clients, np.int64)
    sizes[ids] = [len(numbers) for numbers in records]
    x, y = (np.concatenate(parts) for parts in zip(*poisoned, strict=True))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    partition = Partition(np.arange(len(y)), offsets, np.arange(0))
    plan = replace(
        fleet.plan,
        trust="none",
        unit="client",
        mechanism=None,
        delta=None,
        max_participations=None,
        noise_draw=None,
        batches=None,
        least_records=None,
    )
    dataset = replace(people.dataset, x=x, y=y)
    return replace(fleet, people=replace(people, dataset=dataset, partition=partition), plan=plan)
