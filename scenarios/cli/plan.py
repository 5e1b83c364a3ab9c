"""`fedprivacy plan`. Heavy imports happen inside the command, so that help is instant."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from fedprivacy.io.waiting import waiting
from scenarios.cli.options import RUNS, Again, AllowCode, OptionalSource, Out, Seed, Set, Verbose
from scenarios.cli.output import Json, Operator, check_operator, print_result, show_result

DEFAULT = "local-vs-central"  # a task that both trust models are tuned for


def plan(
    scenario: OptionalSource = None,
    target_accuracy: Annotated[
        float | None, typer.Option(metavar="SHARE", help="The accuracy that is wanted, such as 0.8.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget, such as 4.")] = None,
    clients: Annotated[int | None, typer.Option(help="The number of clients, such as 50.")] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            metavar="TRUST,...",
            help="The trust models: local, central, distributed; default: the scenario's.",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(help="Runs at each number, with other clients and other noise.", show_default="3"),
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that train in parallel; default: one a core.")
    ] = None,
    out: Out = None,
    resume: Again = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Answer how many clients an accuracy takes at an epsilon, by runs with fewer of them.

    Give two of --target-accuracy, --epsilon and --clients: the plan finds the third, with its 95 % interval.
    SCENARIO has the task and the data; without one it is local-vs-central.
    """
    from fedprivacy.errors import InputError
    from fedprivacy.forecast.question import Question
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.loading import load
    from fedprivacy.scenario.model import permit
    from scenarios.cli.display import job_progress
    from scenarios.cli.kind_registry import scenario_for
    from scenarios.cli.scenario_argument import check_start_or_resume, reproducing_command, seed_of
    from scenarios.engines.launch import check_workers
    from scenarios.jobs.manifest import manifest_in

    processes, first = check_workers(workers), seed_of(seed)
    check_operator(operator, json_, "--json")
    given = {
        "--target-accuracy": target_accuracy is not None,
        "--epsilon": epsilon is not None,
        "--clients": clients is not None,
        "--trust": trust is not None,
        "--repeats": repeats is not None,
        "--set": set_,
        "--seed": seed is not None,
        "--out": out,
    }
    source = DEFAULT if scenario is None and resume is None else scenario
    check_start_or_resume("plan", source, resume, given)
    if resume is not None:
        facts = manifest_in(resume, "plan")["facts"]
        requested = load(resume / "scenario.toml")
        question = Question.from_json(facts.get("question") or {})
    else:
        assert source is not None
        requested = scenario_for("plan", source, set_, first)
        if not isinstance(requested, Scenario):
            raise InputError(f"{source}: trains no model, so no accuracy can be planned. Use another.")
        named = requested.privacy.trust if trust is None else trust
        trusts = tuple(part.strip() for part in named.split(","))
        if trusts == ("none",) and trust is None:
            raise InputError(f"{source}: has no privacy to plan with. Add --trust local or --trust central.")
        question = Question(trusts, target_accuracy, epsilon, clients, 3 if repeats is None else repeats)
        check_out(out or RUNS)
    assert isinstance(requested, Scenario)
    permit(requested.model, allow_code)
    with waiting("loading PyTorch and Flower"):
        from scenarios.experiments.planning import plan as make_plan

    with job_progress() as on_run:
        document = make_plan(
            requested,
            question,
            out or RUNS,
            workers=processes,
            resume=resume,
            allow_code=allow_code,
            command=reproducing_command(first),
            on_run=on_run,
        )
    print_result(document, json_, partial(show_result, verbose=verbose), operator)
