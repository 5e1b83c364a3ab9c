"""The ClientApp: what happens on a client's side of the wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod
from numpy.typing import NDArray

from clients.erm import Silos
from clients.error_filter import kind, kinds_only, log, log_answer
from clients.fleet import Budgets, Fleet
from clients.joint_training import JointTraining
from clients.node import Clients, NodeClients, clients_of_node
from clients.owner import is_pinned
from clients.participation_ledger import StoredBudgets, answered, keep_answered
from clients.personal_state import RECORD, PersonalStates
from clients.request_validation import vet, vet_query
from clients.secure_sum import answer_step
from clients.statistics import Answered, StatisticsClients
from clients.training_handler import answer
from clients.worker_pool import WorkerPool
from fedprivacy.erm.protocol import SiloRequest
from fedprivacy.errors import Refusal
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import Arrays, QueryReply, QueryRequest, TrainRequest, Values, parts_of
from fedprivacy.messages.secure_sum import SumRequest

Kind = TypeVar("Kind", Fleet, StatisticsClients, Silos)


def make_app(
    clients: Clients, mods: Sequence[Mod] = (), pool: WorkerPool | JointTraining | None = None
) -> ClientApp:
    """The ClientApp of clients in this process (simulation on one machine).

    Args:
        clients: The clients of the scenario: those that train, those that answer queries, or silos.
        mods: Flower mods around every handler; a malicious participant is one.
        pool: The worker processes or the joint training that train them; None: this process.
    """
    return _app(
        lambda context: NodeClients(clients, clients.hosts_of(context.node_config)),
        mods,
        lambda fleet: nullcontext(pool),
    )


def _pool_of_node(fleet: Fleet) -> WorkerPool:
    """One thread, and for clients with a time limit a process that can be stopped: no server sees a hang."""
    return WorkerPool()


def _app(
    node_of: Callable[[Context], NodeClients],
    mods: Sequence[Mod] = (),
    pool_of: Callable[[Fleet], AbstractContextManager[WorkerPool | JointTraining | None]] = _pool_of_node,
) -> ClientApp:
    client_app = ClientApp(mods=list(mods))

    @client_app.query()
    def query(message: Message, context: Context) -> Message:
        """Reports the node's logical hosts."""
        with kinds_only(is_pinned(context.node_config)):
            here = node_of(context)
            here.greet()
            return Message(RecordDict({"hosts": ConfigRecord({"hosts": here.hosts})}), reply_to=message)

    @client_app.train()
    def train(message: Message, context: Context) -> Message:
        """Trains a chunk of clients and replies with the privatised result."""
        with kinds_only(is_pinned(context.node_config)):
            here = node_of(context)
            fleet = _of_kind(here.clients, Fleet)
            with kind("request"):
                request = TrainRequest.of(*parts_of(message))
            if here.pinned:
                vet(fleet, request, here.hosts, here.observe)
            budgets = _budgets(context.state, here, fleet)
            states = _states(context.state, fleet)
            with pool_of(fleet) as pool:
                reply, untold = answer(fleet, budgets, request, here.hosts, pool, states)
            _store(context.state, budgets)
            if states is not None:
                context.state[RECORD] = states.record()
            if here.pinned:
                words = "" if budgets is None else budgets.words(request.clients)
                log_answer(request, reply, reply.faults + untold, words)
            if untold != Faults():
                _keep(context, request.round, untold)
            return reply_to(message, *reply.parts())

    @client_app.train("secure_sum")
    def secure_sum(message: Message, context: Context) -> Message:
        """Takes a step of a secure sum by masks for the node's client."""
        with kinds_only(is_pinned(context.node_config)):
            here = node_of(context)
            fleet = _of_kind(here.clients, Fleet)
            with kind("request"):
                request = SumRequest.of(*parts_of(message))
            with pool_of(fleet) as pool:
                reply, untold = answer_step(here, fleet, request, pool)
            if untold != Faults():
                _keep(context, request.round, untold)
            return reply_to(message, *reply.parts())

    @client_app.query("statistic")
    def statistic(message: Message, context: Context) -> Message:
        """Answers one query for a chunk of clients with the privatised totals."""
        with kinds_only(is_pinned(context.node_config)):
            here = node_of(context)
            clients = _of_kind(here.clients, StatisticsClients)
            with kind("request"):
                request = QueryRequest.of(*parts_of(message))
            if here.pinned:
                vet_query(clients, request, here.hosts)
            reply = _answer_query(context.state, here, clients, request)
            if here.pinned:
                log(f"query {request.query}: answered {reply.answered}, refused {reply.refused}")
            return reply_to(message, *reply.parts())

    @client_app.query("estimate")
    def estimate(message: Message, context: Context) -> Message:
        """Answers one step of the silos' estimates with their privatised messages."""
        with kinds_only(is_pinned(context.node_config)):
            here = node_of(context)
            silos = _of_kind(here.clients, Silos)
            with kind("request"):
                request = SiloRequest.of(*parts_of(message))
            state = context.state
            known = "asked" in state
            last = state.array_records["asked"]["asked"].numpy() if known else silos.fresh()
            reply = silos.answer(request, last, here.hosts)
            state["asked"] = ArrayRecord({"asked": Array(last)})
            return reply_to(message, *reply.parts())

    return client_app


def _of_kind(clients: Clients, kind: type[Kind]) -> Kind:
    """The clients, if they are of the requested kind."""
    if not isinstance(clients, kind):
        raise Refusal("the clients of this scenario agreed to other requests: training, queries or estimates")
    return clients


def _answer_query(
    state: RecordDict, here: NodeClients, who: StatisticsClients, request: QueryRequest
) -> QueryReply:
    """The reply to a query; the answered queries of each client persist over all messages."""
    account = here.account
    if account is None:
        marks = _answered(state, who)
        reply = who.answer(request, marks, here.hosts)
        state["answered"] = ArrayRecord({"answered": Array(marks)})
        return reply
    with account.locked():
        marks = answered(account, who.fresh().shape)
        return who.answer(request, marks, here.hosts, keep=lambda: keep_answered(account, marks))


def _answered(state: RecordDict, clients: StatisticsClients) -> Answered:
    """The answered queries of each client, from Flower's node state."""
    if "answered" not in state:
        return clients.fresh()
    return state.array_records["answered"]["answered"].numpy()


def charge(state: RecordDict, fleet: Fleet, answers: NDArray[np.int32]) -> None:
    """Charges clients for answers that they gave elsewhere: on other branches of an attacked run.

    Args:
        state: The state of a node.
        fleet: Its clients; where their plan has no budgets nothing is charged.
        answers: How many, shape (population,).
    """
    budgets = _load(state, fleet)
    if budgets is not None and answers.any():
        counts = np.minimum(budgets.counts + answers, budgets.cap, dtype=np.int32)
        _store(state, Budgets(counts, budgets.last, budgets.cap))


def answers_given(states: Mapping[int, RecordDict], fleet: Fleet) -> NDArray[np.int32] | None:
    """How often each client has answered, shape (population,); None where nobody counts.

    Args:
        states: The states of all nodes.
        fleet: Their clients.
    """
    budgets = [_load(state, fleet) for state in states.values()]
    counts = [each.counts for each in budgets if each is not None]
    return np.max(counts, axis=0) if counts else None


def _budgets(state: RecordDict, here: NodeClients, fleet: Fleet) -> Budgets | None:
    """The clients' remaining participations: by the node's account, or else in this Flower run."""
    if here.account is not None:
        return StoredBudgets(here.account, fleet.plan.population, fleet.plan.answers)
    return _load(state, fleet)


def _load(state: RecordDict, fleet: Fleet) -> Budgets | None:
    """The budgets of this node's clients, which live in Flower's node state over all messages."""
    if not fleet.plan.distrusts_server:
        return None
    # The noise is calibrated for this number, even if the scenario allows more answers than rounds.
    cap = fleet.plan.answers
    if "budgets" not in state:
        return Budgets.fresh(fleet.plan.population, cap)
    record = state.array_records["budgets"]
    return Budgets(record["counts"].numpy(), record["last"].numpy(), cap)


def personal_states(states: Iterable[RecordDict], fleet: Fleet) -> PersonalStates:
    """What the clients of all nodes keep for their personal models: only a simulation can look there."""
    size = 0 if fleet.personal is None else fleet.personal.size
    together = PersonalStates.empty(size)
    for state in states:
        here = PersonalStates.load(state, size)
        together.update(here.clients, here.rows)
    return together


def _states(state: RecordDict, fleet: Fleet) -> PersonalStates | None:
    """What the node's clients keep for their personal models; None where they keep nothing."""
    if fleet.personal is None or not fleet.personal.size:
        return None
    return PersonalStates.load(state, fleet.personal.size)


def _store(state: RecordDict, budgets: Budgets | None) -> None:
    if budgets is not None and not isinstance(budgets, StoredBudgets):
        state["budgets"] = ArrayRecord(
            {"counts": Array(budgets.counts), "last": Array(np.asarray(budgets.last))}
        )


def _keep(context: Context, round: int, faults: Faults) -> None:
    """Adds to what went wrong on this node in a round; it never leaves the node by a message."""
    total = _faults(context.state, round) + faults
    context.state["faults"] = ConfigRecord({"round": round, **total.values()})


def _faults(state: RecordDict, round: int) -> Faults:
    record = state.config_records["faults"] if "faults" in state else None
    return Faults.of(record) if record and record["round"] == round else Faults()


def faults_of(states: Iterable[RecordDict], round: int) -> Faults:
    """The faults of a round, from the states of all nodes: only a simulation can look there."""
    return sum((_faults(state, round) for state in states), Faults())


def reply_to(message: Message, arrays: Arrays, values: Values) -> Message:
    """The reply that carries these parts."""
    content = RecordDict(
        {
            "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
            "values": ConfigRecord(values),
        }
    )
    return Message(content, reply_to=message)


app = _app(clients_of_node)
