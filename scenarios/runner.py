"""Runs one scenario: plan, grid, apps, record, report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, RecordDict

from clients.app import make_app as make_client_app
from clients.fleet import Fleet
from fedprivacy.data.population import population
from fedprivacy.plan import Plan
from fedprivacy.record import OnRound, RunRecord, plan_to_resume
from fedprivacy.report import write as write_report
from fedprivacy.runs import Checkpoint, RunDirectory
from fedprivacy.scenario import Scenario
from scenarios.engines.embedded import EmbeddedGrid
from server.app import make_app as make_server_app


def run(
    scenario: Scenario,
    out: Path,
    *,
    plan: Plan | None = None,
    command: str = "",
    on_round: OnRound | None = None,
    report: bool = True,
) -> dict[str, Any]:
    """Runs a scenario from the start, in a new directory under `out`.

    Args:
        scenario: What to run.
        out: Where run directories go.
        plan: The scenario's plan, where it has been calibrated before.
        command: The command that reproduces it, for the record.
        on_round: Called with each round's event.
        report: Whether to write report.html.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if the scenario cannot run or `out` not be written.
        RunError: if the run fails; its directory then says how far it came.
    """
    fleet = Fleet.of(scenario, population(scenario.data), plan)
    directory = RunDirectory.create(out, scenario.name, scenario.to_toml(), scenario.seed)
    record = RunRecord(scenario, fleet.plan, directory, command=command, on_round=on_round)
    return _play(fleet, record, None, report)


def resume(path: Path, *, on_round: OnRound | None = None) -> dict[str, Any]:
    """Goes on with an interrupted run from its newest whole checkpoint, to the same end.

    A run that has finished is left as it is.

    Raises:
        InputError: if `path` holds no run, or not the scenario that it began with.
    """
    directory = RunDirectory.open(path)
    earlier, plan = plan_to_resume(directory)
    if earlier["status"] == "finished":
        return earlier
    scenario = Scenario.read(path / "scenario.toml")
    fleet = Fleet.of(scenario, population(scenario.data), plan)
    checkpoint = directory.load_checkpoint()
    record = RunRecord(scenario, fleet.plan, directory, earlier=earlier, on_round=on_round)
    return _play(fleet, record, checkpoint, True)


def _play(fleet: Fleet, record: RunRecord, checkpoint: Checkpoint | None, report: bool) -> dict[str, Any]:
    # One thread: many small products gain nothing from more, and spinning threads lose a lot.
    torch.set_num_threads(1)
    grid = EmbeddedGrid(make_client_app(fleet), [{"partition-id": 0, "num-partitions": 1}])
    if checkpoint is not None:
        grid.restore_node_states(checkpoint.tensors)
    server_app = make_server_app(record, fleet.people, checkpoint=checkpoint, node_states=grid.node_states)
    context = Context(run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config={})
    try:
        server_app(grid, context)
    except KeyboardInterrupt:
        path = record.directory.path
        print(f"Interrupted. Go on with: fedprivacy run --resume {shlex.quote(str(path))}", file=sys.stderr)
        raise
    finally:
        document = record.directory.document()
        if report:
            write_report(document, record.directory.path)
    return document
