"""Runs one statistics scenario: plan, grid, apps, record, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid, ServerApp

from clients.app import make_app
from clients.statistics import StatisticsClients
from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import PlannedWork
from fedprivacy.records.ownership import begin_run
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import write as write_report
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.record import OnQuery, StatisticsRecord
from scenarios.budgets.planned_work import statistics_work
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.jobs.outcome import print_charge
from server.statistics import serve


def ask(
    scenario: Statistics,
    out: Path,
    *,
    command: str = "",
    on_query: OnQuery | None = None,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs a statistics scenario in a new directory under `out`.

    Args:
        scenario: The queries and their data.
        out: Where run directories go.
        command: The command that reproduces it, for the record.
        on_query: Called with each query's result.
        charge: The account that is charged before the first query.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if the scenario cannot run, its plan not enter the account
            or `out` not be written.
        RunError: if nobody answers a query; the directory then has the progress.
    """
    clients = StatisticsClients.of(scenario)

    def works() -> list[PlannedWork]:
        return [statistics_work(scenario, clients.plan, clients.people, clients.streams.run)]

    with (
        ChargedRun(charge, works) as charged,
        begin_run(out, scenario.label, scenario.to_toml()) as directory,
    ):
        charged.begin(directory)
        try:
            release(scenario, clients, directory, command=command, on_query=on_query)
        finally:
            document = directory.document()
            write_report(document, directory.path)
            print_charge(document)
    return document


def release(
    scenario: Statistics,
    clients: StatisticsClients,
    directory: RunDirectory | None = None,
    *,
    command: str = "",
    on_query: OnQuery | None = None,
) -> StatisticsRecord:
    """Runs a statistics scenario through the Flower apps, in this process.

    Args:
        scenario: The queries and their data.
        clients: Its clients.
        directory: Where it is written; None: nowhere.
        command: The command that reproduces it, for the record.
        on_query: Called with each query's result.
    """
    record = StatisticsRecord(
        scenario,
        clients.plan,
        directory,
        command=command,
        on_query=on_query,
        noise_key=clients.streams.run,
    )
    grid = EmbeddedGrid(make_app(clients), [{"partition-id": 0, "num-partitions": 1}])
    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        serve(grid, record, clients.people)

    context = Context(run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config={})
    server_app(grid, context)
    return record
