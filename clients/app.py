"""The ClientApp: what happens on a client's side of the wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod

from clients.fleet import Budgets, Fleet
from clients.training import answer
from fedprivacy.protocol import Faults, TrainRequest
from fedprivacy.scenario.bundled import code_allowed, scenario_of_app

FleetOf = Callable[[Context], Fleet]


def make_app(fleet: Fleet, mods: Sequence[Mod] = ()) -> ClientApp:
    """The ClientApp of a fleet that is already there (simulation in one process).

    Args:
        fleet: The clients of the scenario.
        mods: Flower mods around every handler; a malicious participant is one.
    """
    return _app(lambda context: fleet, mods)


def _app(fleet_of: FleetOf, mods: Sequence[Mod] = ()) -> ClientApp:
    client_app = ClientApp(mods=list(mods))

    @client_app.query()
    def query(message: Message, context: Context) -> Message:
        """Says which logical hosts live here."""
        hosts = fleet_of(context).hosts_of(context.node_config)
        return Message(RecordDict({"hosts": ConfigRecord({"hosts": hosts})}), reply_to=message)

    @client_app.train()
    def train(message: Message, context: Context) -> Message:
        """Trains a chunk of clients and replies with what privacy lets out."""
        fleet = fleet_of(context)
        arrays = {name: array.numpy() for name, array in message.content.array_records["arrays"].items()}
        request = TrainRequest.of(arrays, dict(message.content.config_records["values"]))
        budgets = _load(context, fleet)
        reply, faults = answer(fleet, budgets, request, fleet.hosts_of(context.node_config))
        _store(context, budgets)
        if reply.faults != faults:
            _keep(context, request.round, faults)
        out_arrays, values = reply.parts()
        content = RecordDict(
            {
                "arrays": ArrayRecord({name: Array(array) for name, array in out_arrays.items()}),
                "values": ConfigRecord(values),
            }
        )
        return Message(content, reply_to=message)

    return client_app


def _load(context: Context, fleet: Fleet) -> Budgets | None:
    """The budgets of this node's clients, which live in Flower's node state over all messages."""
    if fleet.plan.trust != "local":
        return None
    # What the noise was made for, even where the scenario allows more answers than it has rounds.
    cap = fleet.plan.answers
    if "budgets" not in context.state:
        return Budgets.fresh(fleet.plan.population, cap)
    record = context.state.array_records["budgets"]
    return Budgets(record["counts"].numpy(), record["last"].numpy(), cap)


def _store(context: Context, budgets: Budgets | None) -> None:
    if budgets is not None:
        context.state["budgets"] = ArrayRecord(
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
def _fleet(source: str, allow_code: bool) -> Fleet:
    return Fleet.of(scenario_of_app(source), allow_code=allow_code)


def _fleet_of_run(context: Context) -> Fleet:
    # A node that was started with a scenario of its own serves no other plan, whoever submits the run. Its
    # budgets are those of one Flower run: who submits another begins anew.
    own = context.node_config.get("scenario")
    return _fleet(str(own or context.run_config["scenario"]), code_allowed(context.run_config))


app = _app(_fleet_of_run)
