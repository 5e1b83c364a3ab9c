"""`fedprivacy run`. Heavy imports happen inside the command, so that help is instant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from scenarios.cli.options import RUNS, AllowCode, AnyEngine, OptionalSource, Out, Seed, Set
from scenarios.cli.output import Json, print_result


def run(
    scenario: OptionalSource = None,
    set_: Set = None,
    seed: Seed = None,
    engine: AnyEngine = "embedded",
    out: Out = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Go on with an interrupted run instead.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that train clients side by side; default: one a core.")
    ] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option(metavar="SHARE", help="With --engine ray: of a GPU, for each worker.")
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT|auto", help="With --engine ray: a cluster that is up already."),
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
        typer.Option(
            "--pinned", help="With --superlink: you state that every node holds this very plan itself."
        ),
    ] = False,
    allow_code: AllowCode = False,
    json_: Json = False,
) -> None:
    """Launch a simulation and write its record and report.

    SCENARIO is a scenario file, or the name of a ready one (`fedprivacy scenarios`).
    """
    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario.erm import ErmScenario
    from fedprivacy.scenario.model import permit
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.cli.display import show_run, watching
    from scenarios.cli.scenario_argument import asked_any, command_again, one_of, seed_of
    from scenarios.engines.launch import engine_of, only_embedded

    places = (superlink, root_certificates, federation)
    where, chosen = engine_of(engine, workers, gpus_per_worker, ray_address, *places, pinned), seed_of(seed)
    one_of("run", scenario, resume, {"--set": set_, "--seed": seed is not None, "--out": out})
    if resume is not None and where.name == "superlink":
        raise InputError(
            "--resume with --engine superlink: a run on a federation is not gone on with, since its nodes "
            "keep their own state. Start a new one."
        )
    # The scenario is read before torch is, and the folder tried: a mistake is answered at once.
    if resume is not None:
        rounds = _rounds_of(resume)
        from scenarios import runner

        with watching(rounds) as on_round:
            document = runner.resume(resume, allow_code=allow_code, on_round=on_round, engine=where)
    else:
        assert scenario is not None
        asked = asked_any(scenario, set_, chosen)
        if where.name == "superlink":
            _run_elsewhere(asked, out or RUNS, places, pinned, allow_code, command_again(chosen), json_)
            return
        if isinstance(asked, ErmScenario):
            check_out(out or RUNS)
            _fit(asked, out or RUNS, command_again(chosen), json_, where)
            return
        if isinstance(asked, Statistics):
            only_embedded(engine, "statistics run")
        check_out(out or RUNS)
        if isinstance(asked, Statistics):
            from scenarios.cli.display_statistics import asking_queries, show_statistics
            from scenarios.experiments import statistics_run

            with asking_queries(len(asked.queries)) as on_query:
                document = statistics_run.ask(
                    asked, out or RUNS, command=command_again(chosen), on_query=on_query
                )
            print_result(document, json_, show_statistics)
            return
        permit(asked.model, allow_code)
        from scenarios import runner

        with watching(asked.server.rounds) as on_round:
            document = runner.run(
                asked,
                out or RUNS,
                allow_code=allow_code,
                command=command_again(chosen),
                on_round=on_round,
                engine=where,
            )
    print_result(document, json_, show_run)


def _fit(asked: Any, out: Path, said: str, json_: bool, engine: Any) -> None:
    """Plays a study of private estimates, and shows its record."""
    from scenarios.cli.display_estimates import fitting_cells, show_estimates
    from scenarios.experiments.erm_study import fit

    with fitting_cells(asked) as on_cell:
        document = fit(asked, out, command=said, on_cell=on_cell, engine=engine)
    print_result(document, json_, show_estimates)


def _run_elsewhere(
    asked: Any,
    out: Path,
    places: tuple[str | None, Path | None, Path | None],
    pinned: bool,
    allow: bool,
    said: str,
    json_: bool,
) -> None:
    """Runs a scenario on a federation, and shows its record."""
    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.erm import ErmScenario
    from fedprivacy.scenario.model import permit
    from scenarios.federation.state import target_of

    if isinstance(asked, Scenario):
        permit(asked.model, allow)
    if isinstance(asked, ErmScenario) and pinned:
        raise InputError("--pinned: no node holds a study of private estimates as its own; leave it out.")
    target = target_of(*places, pinned)
    check_out(out)
    from scenarios.engines import superlink as engine

    progress, show = _shown(asked)
    with progress as on_event:
        document = engine.run(asked, out, target, allow_code=allow, command=said, on_event=on_event)
    print_result(document, json_, show)


def _shown(asked: Any) -> tuple[AbstractContextManager[Any], Callable[[Any], None]]:
    """How a scenario's progress is shown, and its record."""
    from fedprivacy.scenario.erm import ErmScenario
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.cli.display import show_run, watching
    from scenarios.cli.display_estimates import fitting_cells, show_estimates
    from scenarios.cli.display_statistics import asking_queries, show_statistics

    if isinstance(asked, ErmScenario):
        return fitting_cells(asked), show_estimates
    if isinstance(asked, Statistics):
        return asking_queries(len(asked.queries)), show_statistics
    return watching(asked.server.rounds), show_run


def _rounds_of(path: Path) -> int:
    import shlex

    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import RunDirectory
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.loading import load
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.jobs.manifest import BEGUN, begun_in

    file = RunDirectory.open(path).path / "scenario.toml"
    if (path / BEGUN).exists():
        begun_in(path, "run")  # which says by which command it goes on
    scenario = load(file)
    if not isinstance(scenario, Scenario):
        what = "statistics" if isinstance(scenario, Statistics) else "private estimates"
        raise InputError(
            f"--resume {path}: {what} are not resumed, since making them again takes little. Start anew with "
            f"the same seed, for the same answers: fedprivacy run {shlex.quote(str(file))}"
        )
    return scenario.server.rounds
