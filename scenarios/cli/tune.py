"""`fedprivacy tune`. Heavy imports happen inside the command, so that help is instant."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from fedprivacy.io.waiting import waiting
from scenarios.cli.options import (
    RUNS,
    AccountFile,
    Again,
    AllowCode,
    OptionalSource,
    Out,
    SamePopulation,
    Seed,
    Set,
    Verbose,
    charge_of,
)
from scenarios.cli.output import Json, Operator, check_operator, print_result, show_result


def tune(
    scenario: OptionalSource = None,
    set_: Set = None,
    seed: Seed = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that run candidates in parallel; default: one a core.")
    ] = None,
    out: Out = None,
    resume: Again = None,
    account: AccountFile = None,
    same_population: SamePopulation = False,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Choose settings of a scenario, and report what the choice costs beside the naive way.

    SCENARIO has a section [tune]: the settings to choose from, and how (public split, exponential mechanism,
    random stopping).
    """
    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario.loading import load
    from fedprivacy.scenario.model import permit
    from fedprivacy.scenario.tune import TuneScenario
    from scenarios.cli.display import job_progress
    from scenarios.cli.kind_registry import scenario_for
    from scenarios.cli.scenario_argument import (
        check_start_or_resume,
        reproducing_command,
        seed_of,
    )
    from scenarios.engines.launch import check_workers
    from scenarios.jobs.manifest import manifest_in

    processes, first = check_workers(workers), seed_of(seed)
    charge = charge_of(account, same_population, "tune")
    check_operator(operator, json_, "--json")
    check_start_or_resume("tune", scenario, resume, {"--set": set_, "--seed": seed is not None, "--out": out})
    if resume is not None:
        manifest_in(resume, "tune")
        requested = load(resume / "scenario.toml")
    else:
        assert scenario is not None
        requested = scenario_for("tune", scenario, set_, first)
        check_out(out or RUNS)
    if not isinstance(requested, TuneScenario):
        where = scenario if resume is None else resume / "scenario.toml"
        raise InputError(
            f"{where}: has no [tune]. `fedprivacy new mine --from tuned` writes a scenario with one."
        )
    permit(requested.model, allow_code)
    with waiting("loading PyTorch and Flower"):
        from scenarios.experiments.tuning import tune as choose_settings

    with job_progress() as on_run:
        document = choose_settings(
            requested,
            out or RUNS,
            workers=processes,
            resume=resume,
            allow_code=allow_code,
            command=reproducing_command(first),
            on_run=on_run,
            charge=charge,
        )
    print_result(document, json_, partial(show_result, verbose=verbose), operator)
