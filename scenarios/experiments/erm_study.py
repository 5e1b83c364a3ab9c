"""Runs a study of private estimates: plan, grid, apps, record, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid, ServerApp

from clients.erm import Silos
from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import PlannedWork
from fedprivacy.erm.study.document import OnCell
from fedprivacy.records.ownership import begin_run
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.report import write as write_report
from fedprivacy.scenario.erm import ErmScenario
from scenarios.budgets.estimates_work import estimates_work
from scenarios.engines.launch import EMBEDDED, Engine, launched_silos
from server.erm import serve


def fit(
    scenario: ErmScenario,
    out: Path,
    *,
    command: str = "",
    on_cell: OnCell | None = None,
    engine: Engine = EMBEDDED,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs a study in a new directory under `out`. What silos do goes through Flower's apps.

    Args:
        scenario: What is fitted.
        out: Where run directories go.
        command: The command that reproduces it, for the record.
        on_cell: Called with each cell's result.
        engine: Where the apps run; the numbers do not depend on it.
        charge: The account that is charged before the first estimate; the results are then the operator's.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if the scenario cannot run or `out` not be written.
        RunError: if a minimum was not found, or no silo answers; the directory then has the progress.
    """
    silos = Silos.of(scenario)

    def works() -> list[PlannedWork]:
        return [estimates_work(scenario, silos.study.people, silos.study.streams.run)]

    with (
        launched_silos(engine, scenario, silos) as grid,
        ChargedRun(charge, works) as charged,
        begin_run(out, scenario.name, scenario.to_toml()) as directory,
    ):
        charged.begin(directory)
        server_app = ServerApp()

        @server_app.main()
        def main(grid: Grid, context: Context) -> None:
            side = silos.study
            serve(
                grid,
                scenario,
                side.people,
                directory,
                side.streams,
                for_operator=charge is not None,
                command=command,
                on_cell=on_cell,
            )

        context = Context(
            run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config={}
        )
        try:
            server_app(grid, context)
        finally:
            document = directory.document()
            write_report(document, directory.path)
    return document
