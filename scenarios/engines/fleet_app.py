"""The ClientApp of a scenario in another process, which reads the clients' data itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flwr.clientapp import ClientApp

from clients.app import make_app
from clients.fleet import Fleet
from clients.worker_pool import WorkerPool
from fedprivacy.errors import InputError
from fedprivacy.io.processes import CAN_FORK
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario import Scenario


def fleet_app(text: str, plan: Any, noise_key: str, allow_code: bool) -> ClientApp:
    """The ClientApp of all clients of a scenario.

    Args:
        text: The complete scenario, TOML.
        plan: The run's plan, as JSON data, so that it is not calibrated again.
        noise_key: Keeps the noise of this run apart from that of others; it depends on the data.
        allow_code: Whether the scenario may run code (`--allow-code`).

    Raises:
        InputError: if the scenario cannot run here, or its data are others here.
    """
    fleet = Fleet.of(Scenario.from_text(text), plan=Plan.from_json(plan), allow_code=allow_code)
    if fleet.streams.run != noise_key:
        raise InputError(
            "a worker has read other data, or other code of the model, than the command: files have to be "
            "the same, under the same path, on every machine."
        )
    fleet = _timed(fleet)
    return make_app(fleet, pool=None if fleet.client_timeout is None else WorkerPool())


def stops_clients(fleet: Fleet) -> bool:
    """Whether a worker with `fleet_app` stops by itself a client that hangs: a process of its own trains."""
    return CAN_FORK and fleet.device == "cpu" and _timed(fleet).client_timeout is not None


def _timed(fleet: Fleet) -> Fleet:
    """A fleet with a time limit per client, if the scenario sets one or clients distrust the server.

    There a worker that a client hangs or kills would show the server the other clients that are missing with
    it.
    """
    if not fleet.plan.distrusts_server:
        return fleet
    return replace(fleet, client_timeout=fleet.client_timeout or fleet.timeout)
