"""Scenarios that release statistics."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fedprivacy.scenario.statistics import Statistics
from scenarios.cli.kinds.kind import ComparisonKind, Document, OnEvent, OnRun, RunKind, RunOptions
from scenarios.engines.launch import REMOTE, only_embedded


class StatisticsKind(RunKind, ComparisonKind):
    """A scenario that releases statistics."""

    results = "statistics"

    def check(self, scenario: Statistics, options: RunOptions) -> None:
        """Refuses engines that have no use here."""
        if options.engine.name not in REMOTE:
            only_embedded(options.engine.name, "statistics run")

    def progress(self, scenario: Statistics) -> AbstractContextManager[OnEvent]:
        """Shows queries."""
        from scenarios.cli.display_statistics import query_progress

        return query_progress(len(scenario.queries))

    def run(self, scenario: Statistics, options: RunOptions, on_event: OnEvent) -> Document:
        """Answers every query, and writes record and report."""
        from scenarios.experiments import statistics_run

        return statistics_run.ask(scenario, options.out, command=options.command, on_query=on_event)

    def show(self, document: Mapping[str, Any], verbose: bool = False) -> None:
        """Prints estimates and guarantees."""
        from scenarios.cli.display_statistics import show_statistics

        show_statistics(document, verbose)

    def seeds(self, scenario: Statistics) -> int:
        """Returns `compare.repeats`."""
        return scenario.compare.repeats

    def seed_overrides(self, first: int, seeds: int) -> list[str]:
        """Returns nothing, because repeats count up from the scenario's seed."""
        return []

    def compare(
        self,
        scenario: Statistics,
        out: Path,
        *,
        workers: int,
        resume: Path | None,
        allow_code: bool,
        command: str,
        on_run: OnRun,
    ) -> Document:
        """Compares trust models over epsilons, clients and mechanisms."""
        from scenarios.experiments.statistics_comparison import compare

        return compare(scenario, out, workers=workers, resume=resume, command=command, on_run=on_run)

    def show_comparison(self, document: Mapping[str, Any], verbose: bool = False) -> None:
        """Prints the error of each cell."""
        from scenarios.cli.display_statistics import show_statistics_comparison

        show_statistics_comparison(document, verbose)
