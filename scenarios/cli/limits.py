"""`fedprivacy run --limits`: ablations after a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenarios.cli.kind_interface import RunOptions

if TYPE_CHECKING:
    from fedprivacy.scenario.loading import AnyScenario


def check_limits(scenario: AnyScenario, engine: str) -> None:
    """Refuses `--limits` where ablations cannot be trained (`experiments.limits`)."""
    from scenarios.experiments import limits

    limits.check_limits(scenario, engine)


def measured(document: dict[str, Any], scenario: Any, options: RunOptions) -> dict[str, Any]:
    """Returns the document of a run with its `limits`, whose ablations are trained with progress shown."""
    from scenarios.cli.display import job_progress
    from scenarios.experiments.limits import measure

    with job_progress() as on_run:
        return measure(
            document,
            scenario,
            workers=options.engine.workers,
            allow_code=options.allow_code,
            command=options.command,
            on_run=on_run,
        )
