"""Runs a study of private estimates: its cells one after the other, record, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedprivacy.at_work import begun
from fedprivacy.erm.study.document import OnCell, study
from fedprivacy.erm.study.people import records
from fedprivacy.report import write as write_report
from fedprivacy.scenario.erm import ErmScenario


def fit(
    scenario: ErmScenario, out: Path, *, command: str = "", on_cell: OnCell | None = None
) -> dict[str, Any]:
    """Runs a study in a new directory under `out`.

    Args:
        scenario: What is fitted.
        out: Where run directories go.
        command: The command that reproduces it, for the record.
        on_cell: Called with each cell's result.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if the scenario cannot run or `out` not be written.
        RunError: if a minimum was not found; the directory then says how far it came.
    """
    people = records(scenario)
    with begun(out, scenario.name, scenario.to_toml()) as directory:
        try:
            study(scenario, people, directory, command=command, on_cell=on_cell)
        finally:
            document = directory.document()
            write_report(document, directory.path)
    return document
