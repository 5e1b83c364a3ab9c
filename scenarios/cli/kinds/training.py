"""Scenarios that train a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fedprivacy.scenario import Scenario
from fedprivacy.scenario.model import permit
from scenarios.cli.kinds.kind import ComparisonKind, Document, OnEvent, OnRun, RunKind, RunOptions


class TrainingKind(RunKind, ComparisonKind):
    """A scenario that trains a model."""

    results = "trainings"

    def check(self, scenario: Scenario, options: RunOptions) -> None:
        """Refuses code that is not allowed."""
        permit(scenario.model, options.allow_code)

    def progress(self, scenario: Scenario) -> AbstractContextManager[OnEvent]:
        """Shows rounds."""
        from scenarios.cli.display import round_progress

        return round_progress(scenario.server.rounds)

    def run(self, scenario: Scenario, options: RunOptions, on_event: OnEvent) -> Document:
        """Trains, and writes record and report."""
        from scenarios import runner

        return runner.run(
            scenario,
            options.out,
            allow_code=options.allow_code,
            command=options.command,
            on_round=on_event,
            engine=options.engine,
        )

    def resume(self, path: Path, scenario: Scenario, options: RunOptions) -> Document:
        """Resumes from the newest whole checkpoint."""
        from scenarios import runner

        with self.progress(scenario) as on_round:
            return runner.resume(
                path, allow_code=options.allow_code, on_round=on_round, engine=options.engine
            )

    def show(self, document: Mapping[str, Any], verbose: bool = False) -> None:
        """Prints accuracy and guarantees."""
        from scenarios.cli.display import show_run

        show_run(document, verbose)

    def seeds(self, scenario: Scenario) -> int:
        """Returns the length of `compare.seeds`."""
        return len(scenario.compare.seeds)

    def seed_overrides(self, first: int, seeds: int) -> list[str]:
        """Returns the override of `compare.seeds`."""
        return [f"compare.seeds={[*range(first, first + seeds)]}"]

    def compare(
        self,
        scenario: Scenario,
        out: Path,
        *,
        workers: int,
        resume: Path | None,
        allow_code: bool,
        command: str,
        on_run: OnRun,
    ) -> Document:
        """Compares trust models over units, epsilons and seeds."""
        permit(scenario.model, allow_code)
        from scenarios.experiments.comparison import compare

        return compare(
            scenario,
            out,
            workers=workers,
            resume=resume,
            allow_code=allow_code,
            command=command,
            on_run=on_run,
        )

    def show_comparison(self, document: Mapping[str, Any], verbose: bool = False) -> None:
        """Prints the accuracy of each cell."""
        from scenarios.cli.display import show_comparison

        show_comparison(document, verbose)
