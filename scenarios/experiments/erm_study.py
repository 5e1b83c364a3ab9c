"""Runs a study of private estimates: plan, grid, apps, record, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid, ServerApp

from clients.erm import Silos
from fedprivacy.erm.study.document import OnCell
from fedprivacy.records.ownership import begin_run
from fedprivacy.report import write as write_report
from fedprivacy.scenario.erm import ErmScenario
from scenarios.engines.launch import EMBEDDED, Engine, launched_silos
from server.erm import serve


def fit(
    scenario: ErmScenario,
    out: Path,
    *,
    command: str = "",
    on_cell: OnCell | None = None,
    engine: Engine = EMBEDDED,
) -> dict[str, Any]:
    """Runs a study in a new directory under `out`. What silos do goes through Flower's apps.

    Args:
        scenario: What is fitted.
        out: Where run directories go.
        command: The command that reproduces it, for the record.
        on_cell: Called with each cell's result.
        engine: Where the apps run; the numbers do not depend on it.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if the scenario cannot run or `out` not be written.
        RunError: if a minimum was not found, or no silo answers; the directory then has the progress.
    """
    silos = Silos.of(scenario)
    with (
        launched_silos(engine, scenario, silos) as grid,
        begin_run(out, scenario.name, scenario.to_toml()) as directory,
    ):
        server_app = ServerApp()

        @server_app.main()
        def main(grid: Grid, context: Context) -> None:
            side = silos.study
            serve(grid, scenario, side.people, directory, side.streams, command=command, on_cell=on_cell)

        context = Context(
            run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config={}
        )
        try:
            server_app(grid, context)
        finally:
            document = directory.document()
            write_report(document, directory.path)
    return document
