"""One training request on a node: check the plan, spend the budgets, train, clip and noise, reply.

Under local trust the server is the adversary, so that a reply may depend on data only through what
is clipped and noised: a client that fails answers with zero and its noise, like any other, and what
went wrong stays on the node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clients.fleet import Budgets, Fleet
from clients.privacy import privatise
from fedprivacy.errors import Refusal
from fedprivacy.protocol import Faults, TrainReply, TrainRequest, check_clients
from fedprivacy.training.cohort import train_cohort

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
    updates, failures = _train(fleet, request, willing)
    answering = np.array([local or client not in failures for client in willing.tolist()], dtype=bool)
    private, zeroed = privatise(
        updates[torch.from_numpy(answering)],
        willing[answering],
        fleet.plan,
        fleet.streams,
        round=request.round,
        observe=request.observe,
    )
    faults = Faults(zeroed, len(failures), next(iter(failures.values()), None))
    refused = len(clients) - len(willing)
    return TrainReply(private, willing[answering], refused, Faults() if local else faults), faults


def _train(fleet: Fleet, request: TrainRequest, clients: Ids) -> tuple[torch.Tensor, dict[int, str]]:
    """Trains the clients at once; if that fails, one by one, so that one client's fault is its own.

    Returns:
        Raw updates, shape (clients, parameters), zero for those that failed; and why these did, by id.
    """
    nothing = torch.zeros((len(clients), len(request.weights)))
    if not len(clients):
        return nothing, {}
    try:
        return _updates(fleet, request, clients), {}
    except Exception as error:
        if len(clients) == 1:
            client = int(clients[0])
            return nothing, {client: f"client {client}: {type(error).__name__}: {error}"}
    done = [_train(fleet, request, clients[i : i + 1]) for i in range(len(clients))]
    return torch.cat([rows for rows, _ in done]), {k: v for _, failures in done for k, v in failures.items()}


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
        alone=len(request.clients) == 1,
    )
