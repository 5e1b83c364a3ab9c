"""The commands' handling of each kind of scenario, and their registry.

Methods import what they need themselves, so that a mistake is reported before torch is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from fedprivacy.errors import InputError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario, load
from fedprivacy.scenario.model import permit
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario
from scenarios.authoring.catalogue import find
from scenarios.budgets.uncovered_work import refuse_charge
from scenarios.cli.changed_texts import with_changes_noted
from scenarios.cli.kind_interface import ComparisonKind, Document, Kind, OnEvent, OnRun, RunKind, RunOptions
from scenarios.engines.launch import REMOTE, only_embedded

if TYPE_CHECKING:
    from fedprivacy.account.charge import Charge


def scenario_for(command: str, source: str, overrides: list[str] | None, seed: int | None) -> AnyScenario:
    """Reads a scenario with `--set` and `--seed` applied, and updates its texts to name what changed.

    Args:
        command: The command that will run it, without `fedprivacy`; it must take this kind of scenario.
        source: A ready name or a file.
        overrides: `--set` options.
        seed: The seed; None for the scenario's own.

    Raises:
        InputError: if there is no such scenario, an option does not fit it, or only another command takes it.
    """
    overrides = overrides or []
    seeded = [] if seed is None else [f"seed={seed}"]
    scenario = load(find(source), [*overrides, *seeded])
    kind_of(scenario).check_command(command, source)
    return with_changes_noted(scenario, overrides, command)


class TrainingKind(RunKind, ComparisonKind):
    """A scenario that trains a model."""

    results = "trainings"

    def check(self, scenario: Scenario, options: RunOptions) -> None:
        """Refuses code that is not allowed."""
        permit(scenario.model, options.allow_code)

    def progress(self, scenario: Scenario) -> AbstractContextManager[OnEvent]:
        """Shows rounds."""
        from fedprivacy.documents.headline import primary_of
        from scenarios.cli.display import round_progress

        return round_progress(scenario.server.rounds, primary_of(scenario.tables()).title)

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
            charge=options.charge,
        )

    def resume(self, path: Path, scenario: Scenario, options: RunOptions) -> Document:
        """Resumes from the newest whole checkpoint."""
        from scenarios import runner

        with self.progress(scenario) as on_round:
            return runner.resume(
                path,
                allow_code=options.allow_code,
                on_round=on_round,
                engine=options.engine,
                charge=options.charge,
            )

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
        charge: Charge | None = None,
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
            charge=charge,
        )


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

        return statistics_run.ask(
            scenario, options.out, command=options.command, on_query=on_event, charge=options.charge
        )

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
        charge: Charge | None = None,
    ) -> Document:
        """Compares trust models over epsilons, clients and mechanisms."""
        if charge is not None:
            refuse_charge(scenario, "a comparison of statistics")
        from scenarios.experiments.statistics_comparison import compare

        return compare(scenario, out, workers=workers, resume=resume, command=command, on_run=on_run)


class EstimatesKind(RunKind):
    """A scenario that fits private estimates."""

    command, feature = "run", "fits private estimates"
    results = "private estimates"

    def check(self, scenario: ErmScenario, options: RunOptions) -> None:
        """Refuses `--pinned`, and `--account` with remote silos."""
        if options.pinned:
            raise InputError("--pinned: nodes cannot pin a study of private estimates. Leave it out.")
        if options.charge is not None and options.engine.name in REMOTE:
            raise InputError(
                "--account: a study on nodes rests on what their submitter states, which its entry would not "
                "contain. Leave out --engine superlink, or --account."
            )

    def progress(self, scenario: ErmScenario) -> AbstractContextManager[OnEvent]:
        """Shows cells."""
        from scenarios.cli.display_estimates import cell_progress

        return cell_progress(scenario)

    def run(self, scenario: ErmScenario, options: RunOptions, on_event: OnEvent) -> Document:
        """Fits every cell, and writes record and report."""
        from scenarios.experiments.erm_study import fit

        return fit(
            scenario,
            options.out,
            command=options.command,
            on_cell=on_event,
            engine=options.engine,
            charge=options.charge,
        )


class AttackKind(Kind):
    """A scenario with attacks on its model."""

    command, feature = "replay", "has attacks"


class TuningKind(Kind):
    """A scenario with settings to choose from."""

    command, feature = "tune", "has a [tune]"


KINDS: Mapping[str, Kind] = {
    Scenario.kind: TrainingKind(),
    Statistics.kind: StatisticsKind(),
    ErmScenario.kind: EstimatesKind(),
    AttackScenario.kind: AttackKind(),
    TuneScenario.kind: TuningKind(),
}


def kind_of(scenario: AnyScenario) -> Kind:
    """Returns the commands' handling of a scenario."""
    return KINDS[scenario.kind]
