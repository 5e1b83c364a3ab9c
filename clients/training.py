"""One training request on a node: check the plan, spend the budgets, train, clip and noise, reply."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clients.fleet import Budgets, Fleet
from clients.privacy import privatise
from fedprivacy.errors import InputError, Refusal
from fedprivacy.protocol import TrainReply, TrainRequest
from fedprivacy.training.cohort import train_cohort

Ids = NDArray[np.int64]


def answer(
    fleet: Fleet, budgets: Budgets | None, request: TrainRequest, hosts: Sequence[int] = (0,)
) -> TrainReply:
    """Serves a request as the clients' own plan allows.

    Args:
        fleet: The clients of this node.
        budgets: What they have left, or None where the plan limits nobody.
        request: What the server asks for.
        hosts: The logical hosts that live on this node.

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
    clients = _known(fleet, request, hosts)
    willing = clients if budgets is None else budgets.spend(clients, request.round)
    trained, updates, failures = _train(fleet, request, willing)
    private, zeroed = privatise(
        updates, trained, fleet.plan, fleet.streams, round=request.round, observe=request.observe
    )
    return TrainReply(private, trained, zeroed, len(clients) - len(willing), failures)


def _known(fleet: Fleet, request: TrainRequest, hosts: Sequence[int]) -> Ids:
    clients = request.clients
    if request.host not in hosts or (clients % fleet.hosts != request.host).any():
        # A client that answered on two nodes would be counted by neither, and reuse its noise.
        raise InputError(f"clients of host {request.host} are asked for; here live hosts {list(hosts)}")
    if len(clients) and (clients[0] < 0 or clients[-1] >= fleet.plan.population):
        raise InputError(f"there are clients 0 to {fleet.plan.population - 1}, asked for others")
    if (np.diff(clients) <= 0).any():
        # A client named twice would count twice in the sum, beyond the sensitivity.
        raise InputError("the clients of a request must be sorted and named once")
    return clients


def _train(fleet: Fleet, request: TrainRequest, clients: Ids) -> tuple[Ids, torch.Tensor, list[str]]:
    """Trains the clients at once; if that fails, one by one, so that one client's fault is its own."""
    nobody = torch.zeros((0, len(request.weights)))
    if not len(clients):
        return clients, nobody, []
    try:
        return clients, _updates(fleet, request, clients), []
    except Exception as error:
        if len(clients) == 1:
            return clients[:0], nobody, [f"client {clients[0]}: {type(error).__name__}: {error}"]
    done = [_train(fleet, request, clients[i : i + 1]) for i in range(len(clients))]
    answered = np.concatenate([ids for ids, _, _ in done])
    return answered, torch.cat([rows for _, rows, _ in done]), [text for *_, texts in done for text in texts]


def _updates(fleet: Fleet, request: TrainRequest, clients: Ids) -> torch.Tensor:
    records = [fleet.people.partition.records(int(client)) for client in clients]
    return train_cohort(
        fleet.module,
        request.weights,
        fleet.x,
        fleet.y,
        records,
        clients,
        fleet.training,
        fleet.streams,
        request.round,
    )
