"""What is computed at once: a piece of a message's clients, small enough for a processor's cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from clients.fleet import Fleet
from clients.privacy import privatise
from fedprivacy.messages.faults import Failure, Faults
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.training.calls import calls_of, train_in_call
from fedprivacy.training.task import Shape, Task
from fedprivacy.training.updates import Joined, Stack, Updates

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """What became of the clients of a piece.

    Args:
        private: Their privatised sum, float64, shape (parameters,), or each update in a row.
        clients: The ids that answer, sorted.
        zeroed: How many answer with zero, or have gradients that count as zero.
        failures: Why those failed that did, by id.
        retried: How often a process died over it before.
    """

    private: NDArray[np.float64]
    clients: Ids
    zeroed: int
    failures: dict[int, Failure]
    retried: int = 0

    @property
    def faults(self) -> Faults:
        """What went wrong, counted."""
        counts = Counter(failure.kind for failure in self.failures.values())
        first = next((failure.reason for failure in self.failures.values()), None)
        return Faults({**counts, "not_finite": self.zeroed, "retried": self.retried}, first)


def pieces(fleet: Fleet, clients: Ids, observe: str) -> list[Ids]:
    """Cuts a message's clients into those of each size class, and these into calls.

    Neither workers nor other clients decide what a call looks like, nor who stands where in it, which would
    change bits: empty places are trained as if somebody stood there (`fedprivacy.training.calls`).

    Args:
        fleet: Whose clients they are.
        clients: Their ids, sorted, shape (clients,).
        observe: "sum" or "each": whether each update is formed.
    """
    classes, cut = fleet.classes(clients), []
    for records in np.unique(classes).tolist():
        alike = clients[classes == records]
        places = fleet.places(alike, _shape(fleet, records, observe))
        cut += [alike[call] for call in calls_of(places)]
    return cut


def _shape(fleet: Fleet, records: int, observe: str) -> Shape:
    return fleet.shape(records, formed=observe == "each" or fleet.plan.encoder is not None)


def train_piece(fleet: Fleet, request: TrainRequest, clients: Ids) -> Part:
    """Trains and privatises the clients of a piece."""
    return _part(fleet, request, clients, _train(fleet, request, clients))


def without_data(fleet: Fleet, request: TrainRequest, client: int, failure: Failure) -> Part:
    """What a client answers that failed: under local trust noise alone, like any other's, else nothing."""
    if fleet.plan.trust != "local":
        return silent(request, np.array([client]), failure)
    return _part(fleet, request, np.array([client]), _failed(fleet, request, client, failure))


def silent(request: TrainRequest, clients: Ids, failure: Failure) -> Part:
    """What becomes of clients that cannot answer without data: of none, as long as noise can be drawn."""
    parameters = request.plan.answer_length(len(request.weights))
    private = np.zeros((0, parameters) if request.observe == "each" else parameters)
    return Part(private, clients[:0], 0, dict.fromkeys(clients.tolist(), failure))


def joined(parts: Sequence[Part], observe: str) -> Part:
    """The part of a piece whose clients were taken one by one, in order."""
    private = [part.private for part in parts]
    return Part(
        np.concatenate(private) if observe == "each" else np.sum(private, axis=0),
        np.concatenate([part.clients for part in parts]),
        sum(part.zeroed for part in parts),
        {client: failure for part in parts for client, failure in part.failures.items()},
        sum(part.retried for part in parts),
    )


def _part(fleet: Fleet, request: TrainRequest, clients: Ids, trained: _Trained) -> Part:
    answering, updates = np.ones(len(clients), dtype=np.bool_), trained.updates
    # Under local trust a client that failed answers like any other.
    if trained.failures and fleet.plan.trust != "local":
        answering = ~np.isin(clients, list(trained.failures))
        updates = updates.only(np.flatnonzero(answering))
    private, broken = privatise(
        updates,
        clients[answering],
        fleet.plan.following(request.clipping_norm),
        fleet.streams,
        round=request.round,
        observe=request.observe,
    )
    zeroed = int((broken | (trained.zeroed[answering] > 0)).sum())
    return Part(private, clients[answering], zeroed, trained.failures)


@dataclass(frozen=True)
class _Trained:
    """What training made of some clients.

    Args:
        updates: Of each; of those that failed, what has none of their data in it.
        zeroed: How many records of each had gradients that were not finite, shape (clients,).
        failures: Why those failed that did, by id.
    """

    updates: Updates
    zeroed: NDArray[np.int64]
    failures: dict[int, Failure]


def _train(fleet: Fleet, request: TrainRequest, clients: Ids) -> _Trained:
    """Trains the clients at once; if that fails, each half of them, so that one client's fault is its own.

    Each time in a call of the same shape: what fails changes no bit of the others.
    """
    try:
        return _Trained(*_updates(fleet, request, clients), {})
    except Exception as error:
        if len(clients) == 1:
            client = int(clients[0])
            reason = f"client {client}: {type(error).__name__}: {error}"
            return _failed(fleet, request, client, Failure("raised", reason))
    halves = [_train(fleet, request, half) for half in np.array_split(clients, 2)]
    return _Trained(
        Joined([half.updates for half in halves], [len(half.zeroed) for half in halves]),
        np.concatenate([half.zeroed for half in halves]),
        {client: reason for half in halves for client, reason in half.failures.items()},
    )


def _failed(fleet: Fleet, request: TrainRequest, client: int, failure: Failure) -> _Trained:
    return _Trained(_without_data(fleet, request, client), np.zeros(1, np.int64), {client: failure})


def _updates(fleet: Fleet, request: TrainRequest, clients: Ids) -> tuple[Updates, NDArray[np.int64]]:
    """What the clients' training makes of the model, where some may be an auditor's.

    Returns:
        Updates, which with unit "example" are private already; and how many gradients of records counted as
        zero, shape (clients,).
    """
    updates, zeroed = _made_by_training(fleet, request, clients)
    if fleet.canaries is None or not (planted := clients >= fleet.canaries.first).any():
        return updates, zeroed
    # Canaries train like the others, so that calls are those of real data; then they answer what was planted.
    given = Stack(fleet.canaries.updates(fleet.canaries.of(clients)))
    trained = updates.only(np.flatnonzero(~planted))
    return Joined([trained, given], [int((~planted).sum()), int(planted.sum())]), zeroed


def _made_by_training(fleet: Fleet, request: TrainRequest, clients: Ids) -> tuple[Updates, NDArray[np.int64]]:
    plan, records = fleet.plan, [fleet.people.partition.records(int(client)) for client in clients]
    task = _task(fleet, request, clients, fleet.x, fleet.y, records)
    shape = _shape(fleet, int(fleet.classes(clients).max()), request.observe)
    secret = plan.unit == "example"
    places = fleet.places(clients, shape)
    updates, zeroed = train_in_call(replace(task, shape=shape), fleet.train, places, secret=secret)
    if secret and plan.trust == "local":
        updates = Stack(updates.stack() * fleet.weights(clients))
    return updates, zeroed


def _without_data(fleet: Fleet, request: TrainRequest, client: int) -> Updates:
    """What a client answers whose training failed.

    Zero, to which its noise is added; or with noise in each step, the steps with the noise alone.
    """
    plan, one = fleet.plan, np.array([client])
    if plan.step_noise is None:
        return Stack(torch.zeros((1, len(request.weights))))
    x, y = torch.zeros((1, *fleet.people.features)), torch.zeros(1, dtype=torch.int64)
    task = _task(fleet, request, one, x, y, [np.zeros(fleet.sizes[client], np.int64)])
    updates, _ = fleet.trainer(task, plan.clipping_norm, plan.step_noise, blank=True)
    return Stack(updates * fleet.weights(one))


def _task(
    fleet: Fleet,
    request: TrainRequest,
    clients: Ids,
    x: torch.Tensor,
    y: torch.Tensor,
    records: Sequence[Ids],
) -> Task:
    return Task(
        module=fleet.module,
        weights=request.weights,
        x=x,
        y=y,
        records=records,
        clients=clients,
        options=fleet.training,
        streams=fleet.streams,
        round=request.round,
        sizes=fleet.sizes[clients],
        references=None if fleet.training.adversarial is None else fleet.people.references,
    )
