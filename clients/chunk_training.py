"""Trains and privatises the clients of a request in chunks that fit in a processor's cache.

A client's update depends on its own data and the plan alone, whatever else its chunk holds: chunks are cut by
the plan, and if one client fails, the others are trained again in calls of the same shape, to the same bits.
A failure that changed another client's bits would reveal the first client's data outside of any noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clients.fleet import Fleet
from clients.personal_state import PersonalStates
from clients.privacy import privatise, shared_sum
from fedprivacy.messages.faults import Failure, Faults
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.training.calls import calls_of, train_in_call
from fedprivacy.training.cuda import refuse_lost_device
from fedprivacy.training.personalisation import Partial
from fedprivacy.training.task import Shape, Task
from fedprivacy.training.updates import Joined, Stack, Updates

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """The private result of a chunk of clients.

    Args:
        private: Their privatised sum, float64, shape (parameters,), or each update in a row; with noise in
            shares their sum modulo 2^b, int64.
        clients: The ids that answer, sorted.
        zeroed: The number that answer with zero, or have gradients that count as zero.
        failures: The reasons of failures, by client id.
        retried: The number of processes that died on it before.
        personal: What those of its clients that have trained keep for their personal models.
    """

    private: NDArray[Any]
    clients: Ids
    zeroed: int
    failures: dict[int, Failure]
    retried: int = 0
    personal: PersonalStates | None = None

    @property
    def faults(self) -> Faults:
        """The failures, counted by kind."""
        counts = Counter(failure.kind for failure in self.failures.values())
        first = next((failure.reason for failure in self.failures.values()), None)
        return Faults({**counts, "not_finite": self.zeroed, "retried": self.retried}, first)


def client_chunks(fleet: Fleet, clients: Ids, observe: str, *, beside: bool = False) -> list[Ids]:
    """Cuts a request's clients by size class, and each class into calls.

    Neither workers nor other clients affect the shape of a call or a client's place in it, since that would
    change bits: empty places are trained too (`fedprivacy.training.calls`).

    Args:
        fleet: The fleet of the clients.
        clients: Their ids, sorted, shape (clients,).
        observe: "sum" or "each": whether each update is formed.
        beside: Whether models are trained beside the updates.
    """
    classes, cut = fleet.classes(clients), []
    for records in np.unique(classes).tolist():
        alike = clients[classes == records]
        shape = fleet.shape(records, beside=True) if beside else _shape(fleet, records, observe)
        places = fleet.places(alike, shape)
        cut += [alike[call] for call in calls_of(places)]
    # Added up in the order in which the server adds up messages of single clients.
    return sorted(cut, key=lambda call: int(call[0])) if fleet.alone else cut


def _shape(fleet: Fleet, records: int, observe: str) -> Shape:
    one_by_one = (fleet.plan.encoder, fleet.plan.shares, fleet.layers) != (None, None, None)
    return fleet.shape(records, formed=observe == "each" or one_by_one)


def joined(parts: Sequence[Part], observe: str) -> Part:
    """The part of a chunk whose clients were trained one by one, in order."""
    private = [part.private for part in parts]
    return Part(
        np.concatenate(private) if observe == "each" else np.sum(private, axis=0),
        np.concatenate([part.clients for part in parts]),
        sum(part.zeroed for part in parts),
        {client: failure for part in parts for client, failure in part.failures.items()},
        sum(part.retried for part in parts),
        _joined_states([part.personal for part in parts]),
    )


def _joined_states(parts: Sequence[PersonalStates | None]) -> PersonalStates | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    states = PersonalStates.empty(known[0].rows.shape[1])
    for part in known:
        states.update(part.clients, part.rows)
    return states


@dataclass(frozen=True)
class Trained:
    """The updates of some clients, before clipping and noise.

    Args:
        updates: Of each; of a client that failed, an update without any of its data.
        zeroed: The number of each client's records with gradients that were not finite, shape (clients,).
        failures: The reasons of failures, by client id.
        personal: What those that have trained keep for their personal models.
    """

    updates: Updates
    zeroed: NDArray[np.int64]
    failures: dict[int, Failure]
    personal: PersonalStates | None = None

    def at(self, clients: Ids, place: int) -> Trained:
        """The one at a place among these clients."""
        failures = {client: failure for client, failure in self.failures.items() if client == clients[place]}
        return Trained(self.updates.only(np.array([place])), self.zeroed[[place]], failures)


@dataclass(frozen=True)
class ChunkTrainer:
    """Trains and privatises chunks of clients for one request.

    Args:
        fleet: The clients.
        request: The server's request; its plan was checked.
        threads: How many draw noise in this process.
        states: What clients keep for their personal models.
    """

    fleet: Fleet
    request: TrainRequest
    threads: int = 1
    states: PersonalStates | None = None

    def train(self, clients: Ids) -> Part:
        """Trains and privatises the clients of a chunk."""
        try:
            return self.privatised(clients, self.trained(clients))
        except Exception as error:
            self._refuse_lost_device(error)
            raise

    def _refuse_lost_device(self, error: Exception) -> None:
        if self.fleet.device == "cuda":
            refuse_lost_device(error)

    def without_data(self, client: int, failure: Failure) -> Part:
        """The answer of a client that failed: its noise alone if clients distrust the server, else nothing.

        There neither an answer nor its absence may show the server which client failed.
        """
        clients = np.array([client])
        # Under central trust the server is trusted with the failure.
        if not self.fleet.plan.distrusts_server:
            return self.silent(clients, failure)
        return self.privatised(clients, self._failed(client, failure))

    def silent(self, clients: Ids, failure: Failure) -> Part:
        """The empty part of clients that cannot even draw their noise."""
        plan = self.request.plan
        parameters = plan.answer_length(len(self.request.weights))
        private = np.zeros(
            (0, parameters) if self.request.observe == "each" else parameters, plan.answer_type
        )
        return Part(private, clients[:0], 0, dict.fromkeys(clients.tolist(), failure))

    def privatised(self, clients: Ids, trained: Trained) -> Part:
        """Clips the updates of a chunk, and under local trust adds noise to each."""
        fleet, request = self.fleet, self.request
        answering, updates = np.ones(len(clients), dtype=np.bool_), trained.updates
        # Where clients distrust the server, one that failed answers with its noise, like any other: a record
        # that makes training fail could otherwise be recognised by the missing message.
        if trained.failures and not fleet.plan.distrusts_server:
            answering = ~np.isin(clients, list(trained.failures))
            updates = updates.only(np.flatnonzero(answering))
        here, streams, round = clients[answering], fleet.streams, request.round
        private: NDArray[Any]
        if fleet.plan.shares is not None:
            private, broken = shared_sum(updates, here, fleet.plan, streams, round=round)
        else:
            plan = fleet.plan.for_round(request.clipping_norm)
            private, broken = privatise(
                updates, here, plan, streams, round=round, observe=request.observe, threads=self.threads
            )
        zeroed = int((broken | (trained.zeroed[answering] > 0)).sum())
        return Part(private, clients[answering], zeroed, trained.failures, personal=trained.personal)

    def trained(self, clients: Ids) -> Trained:
        """Trains the clients at once; on failure each half of them, until the failing client is isolated.

        Each time in a call of the same shape, so that a failure changes no bit of the others.
        """
        try:
            updates, zeroed, personal = self._updates(clients)
            return Trained(updates, zeroed, {}, personal)
        # Any exception: model code is the user's, and an uncaught one would take the whole chunk's answers
        # with it, so that one client's data decided about the others' messages.
        except Exception as error:
            self._refuse_lost_device(error)
            if len(clients) == 1:
                client = int(clients[0])
                reason = f"client {client}: {type(error).__name__}: {error}"
                return self._failed(client, Failure("raised", reason))
        halves = [self.trained(half) for half in np.array_split(clients, 2)]
        return Trained(
            Joined([half.updates for half in halves], [len(half.zeroed) for half in halves]),
            np.concatenate([half.zeroed for half in halves]),
            {client: reason for half in halves for client, reason in half.failures.items()},
            _joined_states([half.personal for half in halves]),
        )

    def _failed(self, client: int, failure: Failure) -> Trained:
        return Trained(self._blank_update(client), np.zeros(1, np.int64), {client: failure})

    def _updates(self, clients: Ids) -> tuple[Updates, NDArray[np.int64], PersonalStates | None]:
        """The updates of clients, some of which may be canaries of an audit.

        Returns:
            Updates, which with unit "example" are private already; how many gradients of records counted as
            zero, shape (clients,); and what clients keep for their personal models.
        """
        fleet = self.fleet
        updates, zeroed, personal = self._local_updates(clients)
        if fleet.canaries is None or not (planted := clients >= fleet.canaries.first).any():
            return updates, zeroed, personal
        # Canaries train too, so that calls are those of real data; then the planted update replaces theirs.
        given = Stack(fleet.canaries.updates(fleet.canaries.of(clients)))
        trained = updates.only(np.flatnonzero(~planted))
        return Joined([trained, given], [int((~planted).sum()), int(planted.sum())]), zeroed, personal

    def _local_updates(self, clients: Ids) -> tuple[Updates, NDArray[np.int64], PersonalStates | None]:
        fleet, plan = self.fleet, self.fleet.plan
        records = fleet.people.partition.records_of(clients)
        fleet.check_labels(records)
        task = self._task(clients, fleet.inputs(records), fleet.y, records)
        shape = _shape(fleet, int(fleet.classes(clients).max()), self.request.observe)
        secret = plan.unit == "example"
        places = fleet.places(clients, shape)
        task, personal = replace(task, shape=shape), None

        def call(task: Task) -> tuple[Updates, NDArray[np.int64]]:
            return train_in_call(task, fleet.train, places, secret=secret)

        if not isinstance(fleet.personal, Partial):  # other personal models are trained beside
            updates, zeroed = call(task)
        else:
            assert self.states is not None
            before = self.states.of(clients, fleet.personal.initial(self.request.weights))
            updates, zeroed, after = fleet.personal.train(task, before, call)
            personal = PersonalStates(clients, after)
        # A weight by records scales an update that has its noise already: post-processing, since the number
        # of records is public with unit "example". Without noise the weights are the same, so that a run
        # without noise differs by the noise alone.
        weighted = plan.trust == "local" or (plan.trust == "none" and fleet.by_records)
        if secret and weighted:
            updates = Stack(updates.stack() * fleet.weights(clients))
        if fleet.layers is not None and plan.clipping_norm is not None:
            updates = Stack(fleet.layers.clip(updates.stack(), plan.clipping_norm))
        return updates, zeroed, personal

    def _blank_update(self, client: int) -> Updates:
        """The update of a client whose training failed.

        Zero, to which its noise is added; or with noise in each step, the steps with the noise alone.
        """
        fleet, plan, clients = self.fleet, self.fleet.plan, np.array([client])
        # Either way the answer has the same noise as that of any other client.
        if plan.step_noise is None:
            return Stack(torch.zeros((1, len(self.request.weights))))
        x, y = torch.zeros((1, *fleet.people.features)), torch.zeros(1, dtype=torch.int64)
        task = self._task(clients, x, y, [np.zeros(fleet.sizes[client], np.int64)])
        updates, _ = fleet.trainer(task, plan.clipping_norm, plan.step_noise, blank=True)
        return Stack(updates * fleet.weights(clients))

    def _task(self, clients: Ids, x: torch.Tensor, y: torch.Tensor, records: Sequence[Ids]) -> Task:
        fleet = self.fleet
        return Task(
            module=fleet.head,
            weights=self.request.weights,
            x=x,
            y=y,
            records=records,
            clients=clients,
            options=fleet.training,
            streams=fleet.streams,
            round=self.request.round,
            sizes=fleet.sizes[clients],
            references=None if fleet.training.adversarial is None else fleet.people.references,
        )
