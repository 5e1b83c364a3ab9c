"""The server's side of a statistics scenario: sends queries, adds up, releases, and writes the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError, RunError
from fedprivacy.io.escape import first_line
from fedprivacy.mechanisms.laplace import Laplace
from fedprivacy.messages.faults import REASON
from fedprivacy.messages.protocol import QueryReply, QueryRequest, parts_of
from fedprivacy.randomness.system import streams_for
from fedprivacy.statistics.plan import PlannedQuery, StatisticsPlan
from fedprivacy.statistics.population import People
from fedprivacy.statistics.record import StatisticsRecord
from fedprivacy.statistics.releases import release
from fedprivacy.statistics.results import result, truth
from fedprivacy.statistics.streams import statistics_streams
from server.aggregation import NO_ANSWER, SPENT, by_turn
from server.hosts import Dealing, deal_hosts
from server.messages import request_to
from server.sampling import Chunk, chunks, one_per_node

MESSAGE = "query.statistic"


@dataclass
class Gathered:
    """The total of the replies to one query; all but the totals is operator-only.

    Args:
        totals: The sum of all chunks' totals, float64, shape (cells,).
        answered: The number of clients in it.
        refused: The number that refused because they have answered before.
        failed: The number that did not answer.
        first_failure: The reason of the first failure.
    """

    totals: NDArray[np.float64]
    answered: int = 0
    refused: int = 0
    failed: int = 0
    first_failure: str | None = None

    def fail(self, count: int, reason: str) -> None:
        """Counts clients that did not answer."""
        self.failed += count
        self.first_failure = self.first_failure or reason[:REASON]


def serve(
    grid: Grid,
    record: StatisticsRecord,
    people: People,
    on_begin: Callable[[], object] = lambda: None,
) -> None:
    """Runs the queries of a scenario; for every way to end, the record states the progress.

    Args:
        grid: Flower's way to the nodes.
        record: Where the run is written; it holds the scenario and the plan.
        people: The data, of which a simulation knows the true values.
        on_begin: Called once the record exists, before any message to a node.

    Raises:
        RunError: if a host has no node, or nobody answers a query.
    """
    record.begin()
    try:
        on_begin()
        _release_queries(grid, record, people)
    except KeyboardInterrupt:
        record.finish("interrupted", "interrupted by the user")
        raise
    except Exception as error:
        record.finish("failed", f"{type(error).__name__}: {error}")
        raise
    record.finish("finished")


def _release_queries(grid: Grid, record: StatisticsRecord, people: People) -> None:
    plan, federation = record.plan, record.scenario.federation
    dealing = deal_hosts(grid, federation.hosts)
    record.dealing = dealing.to_json()
    streams = streams_for(record.stated.noise, statistics_streams(record.scenario, people))
    everybody = np.arange(plan.population)
    requested = list(chunks(everybody, hosts=federation.hosts, size=federation.chunk_size))
    for number, ask in enumerate(plan.asks):
        began = time.perf_counter()
        replies = _replies(grid, dealing, requested, number, plan.to_json(), federation.timeout)
        gathered = gather(requested, replies, plan, ask, dealing)
        if not gathered.answered:
            why = gathered.first_failure
            refused = f"{gathered.refused} of {plan.population} clients refused. "
            first = SPENT if why is None else f"First: {first_line(why)}"
            refused *= why is None or bool(gathered.refused)
            raise RunError(f"query {ask.question.name}: nobody answered. {refused}{first}")
        if plan.trust == "shuffled" and gathered.answered < plan.population:
            raise RunError(
                f"query {ask.question.name}: {gathered.answered:,} of {plan.population:,} clients answered, "
                "and the shuffler forwards the messages of all or none, since fewer hide less than "
                "the plan claims. Start a new run in which all clients answer."
            )
        stream = streams.noise(f"release/{ask.question.name}")
        # The number of answers may depend on the data, so exact totals have a fixed denominator, as in
        # training.
        clients = gathered.answered if plan.clients_randomise else plan.population
        answer = result(ask, release(ask, plan.trust, gathered.totals, clients, stream), clients)
        exact = ask.question.exact(people, everybody)
        record.commit(
            {
                "round": number,
                **answer,
                **truth(ask.question, answer, exact, plan.population),
                "answered": gathered.answered,
                "refusals": gathered.refused,
                "failures": gathered.failed,
                "first_failure": gathered.first_failure,
                "seconds": round(time.perf_counter() - began, 6),
            }
        )


def gather(
    requested: Sequence[Chunk],
    replies: Iterator[Message],
    plan: StatisticsPlan,
    ask: PlannedQuery,
    dealing: Dealing,
) -> Gathered:
    """Sums a query's replies in the order of the chunks, independently of their order of arrival.

    Args:
        requested: The chunks, in order; message number i requested the i-th.
        replies: Flower replies.
        plan: The requested plan.
        ask: One of its queries.
        dealing: Which hosts have no node, and why.
    """
    gathered = Gathered(np.zeros(plan.totals_of(ask)))
    in_order = by_turn(replies)
    reply = next(in_order, None)
    for number, chunk in enumerate(requested):
        if reply is None or reply[0] != number:
            _, reason = dealing.fault(chunk.host) or NO_ANSWER
            gathered.fail(len(chunk.clients), reason)
            continue
        _add(gathered, reply[1], plan, ask, len(chunk.clients))
        reply = next(in_order, None)
    return gathered


def _add(gathered: Gathered, message: Message, plan: StatisticsPlan, ask: PlannedQuery, clients: int) -> None:
    if message.has_error():
        gathered.fail(clients, message.error.reason or f"Flower error {message.error.code}")
        return
    try:
        reply = QueryReply.of(*parts_of(message), cells=plan.totals_of(ask), clients=clients)
        if not plan.clients_randomise or not isinstance(ask.mechanism, Laplace):  # its noise is unbounded
            _check(reply, counts=plan.clients_randomise)
    except FedPrivacyError as error:
        gathered.fail(clients, str(error))
        return
    gathered.totals += reply.totals
    gathered.answered += reply.answered
    gathered.refused += reply.refused


def _check(reply: QueryReply, *, counts: bool) -> None:
    """Refuses totals that no honest node can have.

    Args:
        reply: Of exact answers, or of such as are counted.
        counts: Whether they are counted.

    Raises:
        FedPrivacyError: a total is below 0 or above the number of answers, or not whole where it counts.
    """
    low, high = float(reply.totals.min()), float(reply.totals.max())
    whole = not counts or bool((reply.totals == np.rint(reply.totals)).all())
    if low < 0 or high > reply.answered * (1 + 1e-9) or not whole:
        raise FedPrivacyError(
            f"not an answer: totals from {low:g} to {high:g} of {reply.answered} clients who answered"
        )


def _replies(
    grid: Grid, dealing: Dealing, requested: Sequence[Chunk], query: int, plan: Any, timeout: float
) -> Iterator[Message]:
    """Yields the replies to one query. A node gets its next message after its reply to the last.

    Nodes count their clients' answers, and Flower's simulation engine loses a node's state if two of
    its messages are in progress at once.
    """
    for wave in one_per_node(requested, dealing.nodes):
        messages = (
            request_to(
                dealing.nodes[chunk.host],
                MESSAGE,
                f"{query}/{position}",
                *QueryRequest(query, chunk.host, chunk.clients, plan).parts(),
            )
            for position, chunk in wave
        )
        yield from grid.send_and_receive(messages, timeout=timeout)
