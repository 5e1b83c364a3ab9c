"""Checks of a request on a node that holds its plan itself, before anything is spent or computed.

Each check names the kind of its refusal; none looks at data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clients.error_filter import kind
from clients.fleet import Fleet, Ids
from clients.statistics import StatisticsClients
from fedprivacy.errors import Refusal
from fedprivacy.messages.protocol import QueryRequest, TrainRequest, check_clients
from fedprivacy.messages.secure_sum import SumRequest
from fedprivacy.plan.privacy_plan import Plan


def vet(fleet: Fleet, request: TrainRequest, hosts: Sequence[int], observe: str) -> None:
    """Refuses a training request that the node's own plan does not cover.

    Any model of the right size is trained, whatever it is made to do: what leaves is clipped and noised.

    Args:
        fleet: The clients.
        request: The server's request.
        hosts: The logical hosts that live on this node.
        observe: What the node's own scenario allows a server to see.

    Raises:
        Refusal: it names another plan, messages without masks or single ones where sums were agreed, clients
            of other nodes, or a round beyond the plan's, or its model is not one of the scenario.
    """
    plan = fleet.plan
    # The message of a client would be one that no mask hides.
    if plan.shares is not None:
        raise Refusal("request for a message without masks, but the plan has noise in shares", "messages")
    _vet_terms(fleet, request.plan, request.clients, request.host, request.round, hosts)
    with kind("plan"):
        plan.for_round(request.clipping_norm)
    # Single updates make the server the global attacker of Nasr, Shokri and Houmansadr 2019, which sees the
    # update of each participant.
    if request.observe == "each" and observe == "sum":
        raise Refusal('request for single messages, but the scenario has observe = "sum"', "messages")
    _vet_model(fleet, request.weights)


def vet_step(fleet: Fleet, request: SumRequest, hosts: Sequence[int]) -> None:
    """Refuses a request for a step of a secure sum that the node's own plan does not cover.

    Raises:
        Refusal: as `vet`; or the node's plan has no noise in shares, or its rotation another seed.
    """
    if fleet.plan.shares is None:
        raise Refusal("request for a secure sum, but the plan has no noise in shares", "plan")
    if request.seed != fleet.streams.seed:
        raise Refusal(
            f"request for a sum under the rotation of seed {request.seed}, the node's scenario has seed "
            f"{fleet.streams.seed}",
            "plan",
        )
    clients = np.array([request.client], np.int64)
    _vet_terms(fleet, request.plan, clients, request.host, request.round, hosts)
    if request.weights is not None:
        _vet_model(fleet, request.weights)


def _vet_terms(
    fleet: Fleet, requested: Plan, clients: Ids, host: int, round: int, hosts: Sequence[int]
) -> None:
    plan = fleet.plan
    reason = plan.refusal(requested)
    if reason:
        raise Refusal(reason, "plan")
    check_clients(clients, host, hosts, fleet.hosts, plan.population)
    # The plan's epsilon composes this number of rounds; each further one is a release beyond it.
    if not 0 <= round < plan.rounds:
        raise Refusal(f"request for round {round}, the plan has rounds 0 to {plan.rounds - 1}", "round")


def _vet_model(fleet: Fleet, weights: NDArray[np.float32]) -> None:
    if len(weights) != fleet.parameters:
        raise Refusal(f"{len(weights)} weights, the model has {fleet.parameters}", "model")
    # NaN is below no clipping norm and above none, so that a comparison lets it pass, as Flower's does.
    if not np.isfinite(weights).all():
        raise Refusal("weights that are not finite", "model")


def vet_query(clients: StatisticsClients, request: QueryRequest, hosts: Sequence[int]) -> None:
    """Refuses a query that the node's own plan does not cover.

    Raises:
        Refusal: it names another plan, clients of other nodes, or an unknown query.
    """
    plan = clients.plan
    reason = plan.refusal(request.plan)
    if reason:
        raise Refusal(reason, "plan")
    check_clients(request.clients, request.host, hosts, clients.hosts, plan.population)
    if not 0 <= request.query < len(plan.asks):
        raise Refusal(f"request for query {request.query}, the plan has {len(plan.asks)}", "round")
