"""The commands that attack: replay, risk, audit.

Heavy imports happen inside the commands, so that help is instant.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fedprivacy.io.waiting import waiting
from scenarios.cli.options import (
    RUN_VALUE,
    RUNS,
    AccountFile,
    Again,
    AllowCode,
    Engine,
    Out,
    SamePopulation,
    Seed,
    Set,
    Source,
    Verbose,
    charge_of,
    complete,
    complete_attack,
)
from scenarios.cli.output import Json, Operator, check_operator, print_result, show_result


def replay(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO|DIR",
            help="An attack scenario, or the directory of an earlier replay.",
            autocompletion=complete,
        ),
    ] = None,
    set_: Set = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this attack. May be repeated.", autocompletion=complete_attack
        ),
    ] = None,
    seed: Seed = None,
    engine: Engine = "embedded",
    workers: Annotated[
        int | None, typer.Option(help="Processes that attack in parallel; default: one a core.")
    ] = None,
    out: Out = None,
    resume: Again = None,
    account: AccountFile = None,
    same_population: SamePopulation = False,
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Run membership attacks on a federated run, beside the bound that its guarantee gives.

    Given an earlier replay, it attacks the trained runs again, without training.
    """
    from fedprivacy.records.run_directory import check_out
    from scenarios.cli.display import job_progress
    from scenarios.cli.scenario_argument import (
        attack_scenario,
        check_start_or_resume,
        replay_to_resume,
        reproducing_command,
        seed_of,
    )
    from scenarios.engines.launch import check_workers, only_embedded

    only_embedded(engine, "`fedprivacy replay` runs")
    processes, first = check_workers(workers), seed_of(seed)
    check_operator(operator, json_, "--json")
    start_only = {"--set": set_, "--attack": attack, "--seed": seed is not None, "--out": out}
    check_start_or_resume("replay", scenario, resume, start_only)
    if resume is not None:
        requested, stored = replay_to_resume(resume)
    else:
        assert scenario is not None
        requested, stored = attack_scenario(scenario, set_, attack, first)
    charge = charge_of(account, same_population, "replay")
    if resume is None:
        check_out(out or RUNS)
    with waiting("loading PyTorch and Flower"):
        from scenarios.attacks.replay import replay as run_attacks

    with job_progress("training the models to attack, and shadow models") as on_attack:
        document = run_attacks(
            requested,
            out or RUNS,
            workers=processes,
            stored=stored,
            resume=resume,
            command=reproducing_command(first),
            on_attack=on_attack,
            charge=charge,
        )
    print_result(document, json_, partial(show_result, verbose=verbose), operator)


def risk(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The directory or name of a replay.", **RUN_VALUE),
    ],
    most: Annotated[int, typer.Option(min=1, help="How many records, at most.")] = 20,
    attack: Annotated[str | None, typer.Option(metavar="NAME", help="By this attack.")] = None,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """List the records that the attacks of a stored replay expose most, for the operator only.

    RUN is the directory of a replay with an attack on the released model by LiRA. Records are listed by
    their number in the training data, without their content.
    """
    from fedprivacy.errors import InputError
    from scenarios.attacks.risk import risk as most_exposed
    from scenarios.attacks.risk import show

    if json_ and not operator:
        raise InputError("risk --json: all of its result is operator-only. Give --operator too.")
    print_result(most_exposed(run, most, attack), json_, show, operator)


def audit(
    scenario: Source,
    set_: Set = None,
    canaries: Annotated[int, typer.Option(help="Clients that are added, each with a coin to guess.")] = 1000,
    method: Annotated[
        str,
        typer.Option(
            metavar="one-run|canary-clients|both", help="A lower bound of epsilon, an estimate, or both."
        ),
    ] = "both",
    trials: Annotated[int, typer.Option(help="Runs, each with a seed, coins and noise of its own.")] = 1,
    seed: Seed = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that work in parallel; default: one a core.")
    ] = None,
    out: Out = None,
    account: AccountFile = None,
    same_population: SamePopulation = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 where a claim is refuted.")] = False,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Test the epsilon that a scenario claims against a lower bound and an estimate from canary clients.

    A coin decides how each canary answers; correct guesses of these coins prove a lower bound of
    epsilon.
    """
    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.model import permit
    from scenarios.cli.display import job_progress
    from scenarios.cli.kind_registry import scenario_for
    from scenarios.cli.scenario_argument import reproducing_command, seed_of
    from scenarios.engines.launch import check_workers
    from scenarios.experiments.audit_options import check_options, check_privacy

    processes, chosen = check_workers(workers), seed_of(seed)
    check_operator(operator, json_, "--json")
    requested = scenario_for("audit", scenario, set_, chosen)
    if not isinstance(requested, Scenario):
        raise InputError(
            f"{scenario}: releases statistics, which `fedprivacy audit` does not support. "
            "Choose a scenario that trains a model."
        )
    check_options(method, canaries, trials, requested.seed)
    check_privacy(requested.privacy, scenario)
    if strict and account is not None:
        raise InputError(
            "--strict: the results of an audit with --account are operator-only, and an exit code is as "
            "public as the log that has it. Leave out --strict, and read operator.html."
        )
    charge = charge_of(account, same_population, "audit")
    check_out(out or RUNS)
    permit(requested.model, allow_code)
    with waiting("loading PyTorch and Flower"):
        from scenarios.experiments.audit import audit as run_audit

    with job_progress("training with canary clients") as on_run:
        document = run_audit(
            requested,
            out or RUNS,
            canaries=canaries,
            method=method,
            trials=trials,
            workers=processes,
            allow_code=allow_code,
            command=reproducing_command(chosen),
            on_run=on_run,
            charge=charge,
        )
    print_result(document, json_, partial(show_result, verbose=verbose), operator)
    if strict and document["refuted"]:
        raise typer.Exit(1)
