"""Scenarios that fit private estimates (ERM)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.scenario.erm import ErmScenario
from scenarios.cli.kinds.kind import Document, OnEvent, RunKind, RunOptions


class EstimatesKind(RunKind):
    """A scenario that fits private estimates."""

    command, feature = "run", "fits private estimates"
    results = "private estimates"

    def check(self, scenario: ErmScenario, options: RunOptions) -> None:
        """Refuses `--pinned`."""
        if options.pinned:
            raise InputError("--pinned: nodes cannot pin a study of private estimates. Leave it out.")

    def progress(self, scenario: ErmScenario) -> AbstractContextManager[OnEvent]:
        """Shows cells."""
        from scenarios.cli.display_estimates import cell_progress

        return cell_progress(scenario)

    def run(self, scenario: ErmScenario, options: RunOptions, on_event: OnEvent) -> Document:
        """Fits every cell, and writes record and report."""
        from scenarios.experiments.erm_study import fit

        return fit(scenario, options.out, command=options.command, on_cell=on_event, engine=options.engine)

    def show(self, document: Mapping[str, Any], verbose: bool = False) -> None:
        """Prints excess losses and guarantees."""
        from scenarios.cli.display_estimates import show_estimates

        show_estimates(document, verbose)
