"""`fedprivacy run`. Heavy imports happen inside the command, so that help is instant."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedprivacy.io import side_process
from scenarios.cli import beside
from scenarios.cli.options import (
    RUNS,
    AccountFile,
    AllowCode,
    AnyEngine,
    OptionalSource,
    Out,
    SamePopulation,
    Seed,
    Set,
    Track,
    Verbose,
    charge_of,
    complete_run,
)
from scenarios.cli.output import Json, Operator, check_operator, print_result, show_result

if TYPE_CHECKING:
    from fedprivacy.scenario.loading import AnyScenario


def run(
    scenario: OptionalSource = None,
    set_: Set = None,
    seed: Seed = None,
    engine: AnyEngine = "embedded",
    out: Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Resume an interrupted run instead.", autocompletion=complete_run),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that train clients in parallel; default: one a core.")
    ] = None,
    gpus_per_worker: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="With --engine ray: the share of a GPU for each worker."),
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT|auto", help="With --engine ray: a running cluster."),
    ] = None,
    superlink: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="With --engine superlink: where the SuperLink is."),
    ] = None,
    root_certificates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --superlink: the authority that signed its certificate."),
    ] = None,
    federation: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With --engine superlink: that of `fedprivacy federation up`.",
            show_default="federation",
        ),
    ] = None,
    pinned: Annotated[
        bool,
        typer.Option("--pinned", help="With --superlink: you state that every node pins this same plan."),
    ] = False,
    roster: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --pinned: the nodes' public keys, for sums under masks."),
    ] = None,
    limits: Annotated[
        bool,
        typer.Option(
            "--limits",
            help="Then train variants (no noise, no clipping, more rounds, ...) to see what limits the run.",
        ),
    ] = False,
    stop_at_epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="EPSILON",
            help="End before the first round that would cost an observer more; fixed before round 1.",
        ),
    ] = None,
    account: AccountFile = None,
    same_population: SamePopulation = False,
    track: Track = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Launch a simulation and write its record and report.

    SCENARIO is a scenario file, or the name of a ready one (`fedprivacy scenarios`).
    """
    from fedprivacy.errors import InputError
    from fedprivacy.records.receipt import FILE as RECEIPT
    from fedprivacy.records.run_directory import check_out
    from scenarios.budgets.uncovered_work import refuse_charge
    from scenarios.cli.kind_interface import RunKind, RunOptions
    from scenarios.cli.kind_registry import kind_of, scenario_for
    from scenarios.cli.limits import check_limits, measured
    from scenarios.cli.scenario_argument import (
        check_start_or_resume,
        reproducing_command,
        run_to_resume,
        seed_of,
    )
    from scenarios.engines.launch import REMOTE, engine_of
    from scenarios.tracking.track import check_tracking, tracking

    places = (superlink, root_certificates, federation)
    where = engine_of(engine, workers, gpus_per_worker, ray_address, *places, pinned, roster)
    chosen = seed_of(seed)
    begins = {"--set": set_, "--seed": seed is not None, "--out": out}
    check_start_or_resume(
        "run", scenario, resume, {**begins, "--stop-at-epsilon": stop_at_epsilon is not None}
    )
    remote = where.name in REMOTE
    check_tracking(track, operator and track is not None, resume is not None)
    check_operator(operator, json_ or track is not None, "--json or --track")
    if resume is not None and remote:
        raise InputError(
            "--resume with --engine superlink: runs on a SuperLink federation cannot be resumed, because "
            "nodes keep their own state. Start a new run."
        )
    charge = charge_of(account, same_population, "run")
    options = RunOptions(out or RUNS, where, pinned, allow_code, reproducing_command(chosen), charge)
    # The scenario is checked before torch is imported and before anything is written.
    if resume is not None:
        requested = run_to_resume(resume)
    else:
        assert scenario is not None
        requested = scenario_for("run", scenario, set_, chosen)
    charged = charge is not None or (resume is not None and (resume / RECEIPT).exists())
    if charged and limits:
        refuse_charge(requested, "--limits")
    kind = kind_of(requested)
    assert isinstance(kind, RunKind)  # other kinds belong to another command and were refused
    if resume is not None:
        if limits:
            check_limits(requested, where.name)
        document = kind.resume(resume, requested, options)
        document = measured(document, requested, options) if limits else document
        print_result(document, json_, partial(show_result, verbose=verbose), operator)
        return
    kind.check(requested, options)
    if remote:
        from scenarios.federation.state import target_of

        target = target_of(*places, pinned, roster)
    if stop_at_epsilon is not None:
        planned = requested
        requested = _shortened(requested, stop_at_epsilon, allow_code, set_ or [])
        if remote and target.pinned and requested is not planned:
            raise InputError(
                f"--stop-at-epsilon {stop_at_epsilon:g}: the nodes pin the plan of all rounds, and refuse "
                "one with fewer. Pin the shorter plan on every node, and leave the option out."
            )
    if limits:
        check_limits(requested, where.name)
    check_out(options.out)
    with (
        side_process.started(beside.MODULES),
        tracking(track, requested, options.out, operator) as tracked,
        kind.progress(requested) as show_event,
    ):
        on_event = tracked.beside(show_event)
        if remote:
            from scenarios.engines import superlink as remote_engine

            document = remote_engine.run(
                requested,
                options.out,
                target,
                allow_code=allow_code,
                command=options.command,
                on_event=on_event,
                charge=charge,
            )
        else:
            document = kind.run(requested, options, on_event)
        tracked.result(document)
    document = measured(document, requested, options) if limits else document
    print_result(document, json_, partial(show_result, verbose=verbose), operator)


def _shortened(scenario: AnyScenario, epsilon: float, allow_code: bool, overrides: list[str]) -> AnyScenario:
    """The scenario with the rounds that an epsilon pays for, and texts that name the change."""
    from fedprivacy.io.waiting import waiting
    from scenarios.budgets.stop_at_epsilon import shortened
    from scenarios.cli.changed_texts import with_keys_noted

    with waiting("accounting for the rounds"):
        fewer = shortened(scenario, epsilon, allow_code=allow_code)
    if fewer is scenario:
        return scenario
    noted = ("server.rounds", "privacy.epsilon")  # what `--set` changed is in the texts already
    keys = [key for key in noted if not any(text.partition("=")[0].strip() == key for text in overrides)]
    return with_keys_noted(fewer, keys, "run")
