"""The ClientApp: what happens on a client's side of the wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod
from numpy.typing import NDArray

from clients.crew import Crew
from clients.fleet import Budgets, Fleet
from clients.messages import parts_of, reply_to
from clients.respondents import Answered, Respondents
from clients.training import answer
from fedprivacy.errors import Refusal
from fedprivacy.faults import Faults
from fedprivacy.protocol import AskRequest, TrainRequest
from fedprivacy.scenario.bundled import code_allowed, scenario_of_app
from fedprivacy.scenario.statistics import Statistics

Residents = Fleet | Respondents
Kind = TypeVar("Kind", Fleet, Respondents)


def make_app(residents: Residents, mods: Sequence[Mod] = (), crew: Crew | None = None) -> ClientApp:
    """The ClientApp of clients that are already there (simulation on one machine).

    Args:
        residents: The clients of the scenario: those that train, or those that are asked.
        mods: Flower mods around every handler; a malicious participant is one.
        crew: Who trains them; None: this process.
    """
    return _app(lambda context: residents, mods, crew)


def _app(
    residents_of: Callable[[Context], Residents], mods: Sequence[Mod] = (), crew: Crew | None = None
) -> ClientApp:
    client_app = ClientApp(mods=list(mods))

    @client_app.query()
    def query(message: Message, context: Context) -> Message:
        """Says which logical hosts live here."""
        hosts = residents_of(context).hosts_of(context.node_config)
        return Message(RecordDict({"hosts": ConfigRecord({"hosts": hosts})}), reply_to=message)

    @client_app.train()
    def train(message: Message, context: Context) -> Message:
        """Trains a chunk of clients and replies with what privacy lets out."""
        fleet = _of_kind(residents_of(context), Fleet)
        request = TrainRequest.of(*parts_of(message))
        budgets = _load(context.state, fleet)
        reply, untold = answer(fleet, budgets, request, fleet.hosts_of(context.node_config), crew)
        _store(context.state, budgets)
        if untold != Faults():
            _keep(context, request.round, untold)
        return reply_to(message, *reply.parts())

    @client_app.query("statistic")
    def statistic(message: Message, context: Context) -> Message:
        """Asks a chunk of clients one query and replies with what privacy lets out."""
        respondents = _of_kind(residents_of(context), Respondents)
        answered = _answered(context, respondents)
        hosts = respondents.hosts_of(context.node_config)
        reply = respondents.answer(AskRequest.of(*parts_of(message)), answered, hosts)
        context.state["answered"] = ArrayRecord({"answered": Array(answered)})
        return reply_to(message, *reply.parts())

    return client_app


def _of_kind(residents: Residents, kind: type[Kind]) -> Kind:
    """The clients, if they are there for what is asked of them."""
    if not isinstance(residents, kind):
        raise Refusal("the clients of this scenario agreed to something else: to train, or to be asked")
    return residents


def _answered(context: Context, respondents: Respondents) -> Answered:
    """Which clients have answered which query, as Flower's node state keeps it over all messages."""
    if "answered" not in context.state:
        return respondents.fresh()
    return context.state.array_records["answered"]["answered"].numpy()


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


def _load(state: RecordDict, fleet: Fleet) -> Budgets | None:
    """The budgets of this node's clients, which live in Flower's node state over all messages."""
    if fleet.plan.trust != "local":
        return None
    # What the noise was made for, even where the scenario allows more answers than it has rounds.
    cap = fleet.plan.answers
    if "budgets" not in state:
        return Budgets.fresh(fleet.plan.population, cap)
    record = state.array_records["budgets"]
    return Budgets(record["counts"].numpy(), record["last"].numpy(), cap)


def _store(state: RecordDict, budgets: Budgets | None) -> None:
    if budgets is not None:
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
    """What went wrong in a round, from the states of all nodes: only who simulates can look there."""
    return sum((_faults(state, round) for state in states), Faults())


@lru_cache(maxsize=2)
def _residents(source: str, allow_code: bool) -> Residents:
    scenario = scenario_of_app(source)
    if isinstance(scenario, Statistics):
        return Respondents.of(scenario)
    return Fleet.of(scenario, allow_code=allow_code)


def _residents_of_run(context: Context) -> Residents:
    # A node that was started with a scenario of its own serves no other plan, whoever submits the run. Its
    # budgets are those of one Flower run: who submits another begins anew.
    own = context.node_config.get("scenario")
    return _residents(str(own or context.run_config["scenario"]), code_allowed(context.run_config))


app = _app(_residents_of_run)
