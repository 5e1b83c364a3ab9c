"""One training request on a node: check the plan, spend the budgets, train, clip and noise, reply.

Under local trust the server is the adversary, so that a reply may depend on data only through what
is clipped and noised: a client that fails answers with zero and its noise, like any other, and what
went wrong stays on the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from clients.fleet import Budgets, Fleet
from clients.privacy import privatise
from fedprivacy.errors import Refusal
from fedprivacy.protocol import Faults, TrainReply, TrainRequest, check_clients
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.dp_sgd import clipped_gradients
from fedprivacy.training.task import Task

Ids = NDArray[np.int64]


def answer(
    fleet: Fleet, budgets: Budgets | None, request: TrainRequest, hosts: Sequence[int] = (0,)
) -> tuple[TrainReply, Faults]:
    """Serves a request as the clients' own plan allows.

    Args:
        fleet: The clients of this node.
        budgets: What they have left, or None where the plan limits nobody.
        request: What the server asks for.
        hosts: The logical hosts that live on this node.

    Returns:
        The reply, and what went wrong: the same as in the reply, or under local trust for the node alone.

    Raises:
        Refusal: if the server asks for another plan than the clients agreed to, or for single
            messages where the plan draws noise for sums only.
        InputError: if the request names clients that do not exist or live elsewhere.
    """
    reason = fleet.plan.refusal(request.plan)
    if reason:
        raise Refusal(reason)
    if request.observe == "each" and fleet.plan.trust == "local" and fleet.plan.noise_draw == "sum":
        raise Refusal("single messages are asked for, but the plan draws noise for sums only")
    clients = request.clients
    check_clients(clients, request.host, hosts, fleet.hosts, fleet.plan.population)
    willing = clients if budgets is None else budgets.spend(clients, request.round)
    local = fleet.plan.trust == "local"
    trained = _train(fleet, request, willing)
    answering = np.array([local or client not in trained.failures for client in willing.tolist()], dtype=bool)
    private, broken = privatise(
        trained.updates[torch.from_numpy(answering)],
        willing[answering],
        fleet.plan,
        fleet.streams,
        round=request.round,
        observe=request.observe,
    )
    zeroed = int((broken | (trained.zeroed[answering] > 0)).sum())
    faults = Faults(zeroed, len(trained.failures), next(iter(trained.failures.values()), None))
    refused = len(clients) - len(willing)
    return TrainReply(private, willing[answering], refused, Faults() if local else faults), faults


@dataclass(frozen=True)
class _Trained:
    """What became of some clients.

    Args:
        updates: Shape (clients, parameters); of those that failed, what has none of their data in it.
        zeroed: How many records of each had gradients that were not finite, shape (clients,).
        failures: Why those failed that did, by id.
    """

    updates: torch.Tensor
    zeroed: NDArray[np.int64]
    failures: dict[int, str]


def _train(fleet: Fleet, request: TrainRequest, clients: Ids) -> _Trained:
    """Trains the clients at once; if that fails, one by one, so that one client's fault is its own."""
    if not len(clients):
        return _Trained(torch.zeros((0, len(request.weights))), np.zeros(0, np.int64), {})
    try:
        return _Trained(*_updates(fleet, request, clients), {})
    except Exception as error:
        if len(clients) == 1:
            client = int(clients[0])
            reason = {client: f"client {client}: {type(error).__name__}: {error}"}
            return _Trained(_without_data(fleet, request, client), np.zeros(1, np.int64), reason)
    done = [_train(fleet, request, clients[i : i + 1]) for i in range(len(clients))]
    return _Trained(
        torch.cat([one.updates for one in done]),
        np.concatenate([one.zeroed for one in done]),
        {client: reason for one in done for client, reason in one.failures.items()},
    )


def _updates(fleet: Fleet, request: TrainRequest, clients: Ids) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """What the clients' training makes of the model.

    Returns:
        Updates, shape (clients, parameters), which with unit "example" are private already; and how many
        gradients of records counted as zero, shape (clients,).
    """
    plan, records = fleet.plan, [fleet.people.partition.records(int(client)) for client in clients]
    task = _task(fleet, request, clients, fleet.x, fleet.y, records)
    if plan.unit == "client":
        return train_cohort(task, alone=len(request.clients) == 1), np.zeros(len(clients), np.int64)
    if plan.trust == "central":
        return clipped_gradients(task, plan.clipping_norm)
    updates, zeroed = fleet.trainer(task, plan.clipping_norm, plan.step_noise)
    return updates * fleet.weights(clients), zeroed


def _without_data(fleet: Fleet, request: TrainRequest, client: int) -> torch.Tensor:
    """What a client answers whose training failed, shape (1, parameters).

    Zero, to which its noise is added; or with noise in each step, the steps with the noise alone.
    """
    plan, one = fleet.plan, np.array([client])
    if plan.step_noise is None:
        return torch.zeros((1, len(request.weights)))
    x, y = torch.zeros((1, *fleet.people.features)), torch.zeros(1, dtype=torch.int64)
    task = _task(fleet, request, one, x, y, [np.zeros(fleet.sizes[client], np.int64)])
    updates, _ = fleet.trainer(task, plan.clipping_norm, plan.step_noise, blank=True)
    return updates * fleet.weights(one)


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
    )
