"""`fedprivacy compare`. Heavy imports happen inside the command, so that help is instant."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from fedprivacy.io import side_process
from scenarios.cli import beside
from scenarios.cli.options import (
    RUNS,
    AccountFile,
    Again,
    AllowCode,
    Engine,
    OptionalSource,
    Out,
    SamePopulation,
    Seed,
    Set,
    Track,
    Verbose,
    charge_of,
)
from scenarios.cli.output import Json, Operator, check_operator, print_result, show_result


def compare(
    scenario: OptionalSource = None,
    set_: Set = None,
    seed: Seed = None,
    engine: Engine = "embedded",
    workers: Annotated[
        int | None, typer.Option(help="Processes that run cells in parallel; default: one a core.")
    ] = None,
    out: Out = None,
    resume: Again = None,
    account: AccountFile = None,
    same_population: SamePopulation = False,
    track: Track = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Compare local, central and no privacy over units, epsilons and seeds.

    SCENARIO is a scenario file, or the name of a ready one. --seed N compares seeds N, N+1, ...
    """
    from fedprivacy.records.run_directory import check_out
    from scenarios.cli.display import job_progress
    from scenarios.cli.kind_interface import ComparisonKind
    from scenarios.cli.kind_registry import kind_of, scenario_for
    from scenarios.cli.scenario_argument import (
        check_start_or_resume,
        comparison_to_resume,
        reproducing_command,
        seed_of,
    )
    from scenarios.engines.launch import check_workers, only_embedded
    from scenarios.tracking.track import check_tracking, tracking

    only_embedded(engine, "`fedprivacy compare` runs")
    processes, first = check_workers(workers), None
    charge = charge_of(account, same_population, "compare")
    check_start_or_resume(
        "compare", scenario, resume, {"--set": set_, "--seed": seed is not None, "--out": out}
    )
    check_tracking(track, operator and track is not None, resume is not None)
    check_operator(operator, json_ or track is not None, "--json or --track")
    if resume is not None:
        requested = comparison_to_resume(resume)
    else:
        assert scenario is not None
        requested = scenario_for("compare", scenario, set_, None)
    kind = kind_of(requested)
    assert isinstance(kind, ComparisonKind)  # other kinds belong to another command and were refused
    if scenario is not None:
        seeds = kind.seeds(requested)
        first = seed_of(seed, seeds)
        if first is not None:
            overrides = [*(set_ or []), *kind.seed_overrides(first, seeds)]
            requested = scenario_for("compare", scenario, overrides, first)
        check_out(out or RUNS)
    with (
        side_process.started(beside.MODULES),
        tracking(track, requested, out or RUNS, operator) as tracked,
        job_progress() as on_run,
    ):
        document = kind.compare(
            requested,
            out or RUNS,
            workers=processes,
            resume=resume,
            allow_code=allow_code,
            command=reproducing_command(first),
            on_run=on_run,
            charge=charge,
        )
        tracked.result(document)
    print_result(document, json_, partial(show_result, verbose=verbose), operator)
