"""Checks of a request on a node that holds its plan itself, before anything is spent or computed.

Each check names the kind of its refusal; none looks at data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clients.error_filter import kind
from clients.fleet import Fleet
from clients.statistics import StatisticsClients
from fedprivacy.errors import Refusal
from fedprivacy.messages.protocol import QueryRequest, TrainRequest, check_clients


def vet(fleet: Fleet, request: TrainRequest, hosts: Sequence[int], observe: str) -> None:
    """Refuses a training request that the node's own plan does not cover.

    Any model of the right size is trained, whatever it is made to do: what leaves is clipped and noised.

    Args:
        fleet: The clients.
        request: The server's request.
        hosts: The logical hosts that live on this node.
        observe: What the node's own scenario allows a server to see.

    Raises:
        Refusal: it names another plan, single messages where sums were agreed, clients of other nodes, or a
            round beyond the plan's, or its model is not one of the scenario.
    """
    plan = fleet.plan
    reason = plan.refusal(request.plan)
    if reason:
        raise Refusal(reason, "plan")
    with kind("plan"):
        plan.for_round(request.clipping_norm)
    # Single updates make the server the global attacker of Nasr, Shokri and Houmansadr 2019, which sees the
    # update of each participant.
    if request.observe == "each" and observe == "sum":
        raise Refusal('request for single messages, but the scenario has observe = "sum"', "messages")
    check_clients(request.clients, request.host, hosts, fleet.hosts, plan.population)
    # The plan's epsilon composes this number of rounds; each further one is a release beyond it.
    if not 0 <= request.round < plan.rounds:
        raise Refusal(
            f"request for round {request.round}, the plan has rounds 0 to {plan.rounds - 1}", "round"
        )
    parameters = sum(parameter.numel() for parameter in fleet.module.parameters())
    if len(request.weights) != parameters:
        raise Refusal(f"{len(request.weights)} weights, the model has {parameters}", "model")
    # NaN is below no clipping norm and above none, so that a comparison lets it pass, as Flower's does.
    if not np.isfinite(request.weights).all():
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
