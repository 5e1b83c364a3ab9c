"""The clients of a statistics scenario: their own plan and data, and which queries each has answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clients.fleet import hosts_here
from fedprivacy.errors import InputError, Refusal
from fedprivacy.messages.protocol import QueryReply, QueryRequest, check_clients
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.node_answers import totals
from fedprivacy.statistics.plan import StatisticsPlan, people_of, plan_of
from fedprivacy.statistics.population import Ids, People
from fedprivacy.statistics.streams import statistics_streams

Answered = NDArray[np.uint8]


@dataclass(frozen=True)
class StatisticsClients:
    """The clients' side of a statistics scenario.

    Nothing here is taken from a message, so a server cannot talk a client into less privacy.
    """

    plan: StatisticsPlan
    people: People
    streams: Streams
    hosts: int

    @classmethod
    def of(cls, scenario: Statistics, plan: StatisticsPlan | None = None) -> StatisticsClients:
        """The clients of a scenario.

        Args:
            scenario: The agreed scenario.
            plan: The scenario's plan, where it has been made before.

        Raises:
            InputError: if a file does not match the scenario.
        """
        plan = plan or plan_of(scenario)
        who = people_of(scenario, plan)
        return cls(plan, who, statistics_streams(scenario, who), scenario.federation.hosts)

    def hosts_of(self, node_config: Mapping[str, object]) -> list[int]:
        """The logical hosts that a node serves."""
        return hosts_here(self.hosts, node_config)

    def fresh(self) -> Answered:
        """Nobody has answered yet: shape (queries, population), 1 where a client has answered a query."""
        return np.zeros((len(self.plan.asks), self.plan.population), dtype=np.uint8)

    def answer(
        self,
        request: QueryRequest,
        answered: Answered,
        hosts: list[int],
        keep: Callable[[], None] = lambda: None,
    ) -> QueryReply:
        """Serves a request as the clients' own plan allows: each client answers each query once.

        Args:
            request: The server's request.
            answered: As `fresh`; the clients that answer now are marked.
            hosts: The logical hosts that live on this node.
            keep: Called once they are marked, before anything is sent.

        Raises:
            Refusal: if the server requests another plan than the clients agreed to.
            InputError: if the request names clients or a query that do not exist here.
        """
        reason = self.plan.refusal(request.plan)
        if reason:
            raise Refusal(reason)
        check_clients(request.clients, request.host, hosts, self.hosts, self.plan.population)
        if not 0 <= request.query < len(self.plan.asks):
            raise InputError(
                f"request for query {request.query}, the plan has 0 to {len(self.plan.asks) - 1}"
            )
        ask, done = self.plan.asks[request.query], answered[request.query]
        willing: Ids = request.clients[done[request.clients] == 0]
        done[willing] = 1
        # Before the reply is computed: after a crash a client may have spent an answer that nobody saw, and
        # never gives one that is not counted.
        if len(willing):
            keep()
        # A client answers a query once, so the first answering id keys a draw that no other message has.
        first = int(willing[0]) if len(willing) else 0
        stream = self.streams.noise(f"answers/{ask.question.name}", member=first)
        released = totals(self.plan, ask, self.people, willing, stream)
        return QueryReply(released, answered=len(willing), refused=len(request.clients) - len(willing))
