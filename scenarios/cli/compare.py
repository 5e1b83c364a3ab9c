"""`fedprivacy compare`. Heavy imports happen inside the command, so that help is instant."""

from __future__ import annotations

from typing import Annotated

import typer

from scenarios.cli.options import RUNS, Again, AllowCode, Engine, OptionalSource, Out, Seed, Set
from scenarios.cli.output import Json, print_result


def compare(
    scenario: OptionalSource = None,
    set_: Set = None,
    seed: Seed = None,
    engine: Engine = "embedded",
    workers: Annotated[
        int | None, typer.Option(help="Processes that run cells side by side; default: one a core.")
    ] = None,
    out: Out = None,
    resume: Again = None,
    allow_code: AllowCode = False,
    json_: Json = False,
) -> None:
    """Compare local, central and no privacy over units, epsilons and seeds.

    SCENARIO is a scenario file, or the name of a ready one. --seed N compares seeds N, N+1, ...
    """
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario.model import permit
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.cli.display import counting, show_comparison
    from scenarios.cli.scenario_argument import asked as read_asked
    from scenarios.cli.scenario_argument import asked_again, command_again, one_of, seed_of
    from scenarios.engines.launch import check_workers, only_embedded

    only_embedded(engine, "`fedprivacy compare` runs")
    many, first = check_workers(workers), None
    one_of("compare", scenario, resume, {"--set": set_, "--seed": seed is not None, "--out": out})
    if resume is not None:
        asked = asked_again(resume)
    else:
        assert scenario is not None
        asked = read_asked(scenario, set_, None)
        seeds = asked.compare.repeats if isinstance(asked, Statistics) else len(asked.compare.seeds)
        first = seed_of(seed, seeds)
        if first is not None:
            listed = f"compare.seeds={[*range(first, first + seeds)]}"
            more = [] if isinstance(asked, Statistics) else [listed]
            asked = read_asked(scenario, [*(set_ or []), *more], first)
        check_out(out or RUNS)
    if isinstance(asked, Statistics):
        from scenarios.cli.display_statistics import show_sweep
        from scenarios.experiments.statistics_comparison import compare as sweep

        with counting() as on_run:
            document = sweep(
                asked, out or RUNS, workers=many, resume=resume, command=command_again(first), on_run=on_run
            )
        print_result(document, json_, show_sweep)
        return
    permit(asked.model, allow_code)
    from scenarios.experiments.comparison import compare as run_comparison

    with counting() as on_run:
        document = run_comparison(
            asked,
            out or RUNS,
            workers=many,
            resume=resume,
            allow_code=allow_code,
            command=command_again(first),
            on_run=on_run,
        )
    print_result(document, json_, show_comparison)
