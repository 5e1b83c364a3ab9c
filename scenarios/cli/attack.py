"""The commands that attack: replay, risk, audit.

Heavy imports happen inside them, so that help is instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scenarios.cli.options import RUNS, Again, AllowCode, Engine, Out, Seed, Set, Source, complete
from scenarios.cli.output import Json, print_result


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
        list[str] | None, typer.Option(metavar="NAME", help="Only this attack. May be repeated.")
    ] = None,
    seed: Seed = None,
    engine: Engine = "embedded",
    workers: Annotated[
        int | None, typer.Option(help="Processes that attack side by side; default: one a core.")
    ] = None,
    out: Out = None,
    resume: Again = None,
    json_: Json = False,
) -> None:
    """Play membership attacks against a federated run, beside the bound that its guarantee gives.

    Of an earlier replay the trained runs are attacked again, without training.
    """
    from fedprivacy.records.run_directory import check_out
    from scenarios.cli.display import counting
    from scenarios.cli.display_attacks import show_replay
    from scenarios.cli.scenario_argument import attacked, attacked_again, command_again, one_of, seed_of
    from scenarios.engines.launch import check_workers, only_embedded

    only_embedded(engine, "`fedprivacy replay` runs")
    many, first = check_workers(workers), seed_of(seed)
    only = {"--set": set_, "--attack": attack, "--seed": seed is not None, "--out": out}
    one_of("replay", scenario, resume, only)
    if resume is not None:
        asked, stored = attacked_again(resume)
    else:
        assert scenario is not None
        asked, stored = attacked(scenario, set_, attack, first)
        check_out(out or RUNS)
    from scenarios.attacks.replay import replay as play

    with counting() as on_attack:
        document = play(
            asked,
            out or RUNS,
            workers=many,
            stored=stored,
            resume=resume,
            command=command_again(first),
            on_attack=on_attack,
        )
    print_result(document, json_, show_replay)


def risk(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a replay.")],
    most: Annotated[int, typer.Option(min=1, help="How many records, at most.")] = 20,
    attack: Annotated[str | None, typer.Option(metavar="NAME", help="By this attack.")] = None,
    json_: Json = False,
) -> None:
    """Say whose records the attacks of a stored replay expose most: for the operator only.

    RUN is the directory of a replay with an attack on the released model by LiRA. Records are told by their
    number in the training data, nothing of their content.
    """
    from scenarios.attacks.risk import risk as most_exposed
    from scenarios.attacks.risk import show

    print_result(most_exposed(run, most, attack), json_, show)


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
        int | None, typer.Option(help="Processes that work side by side; default: one a core.")
    ] = None,
    out: Out = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 where a claim is refuted.")] = False,
    allow_code: AllowCode = False,
    json_: Json = False,
) -> None:
    """Hold what a scenario claims against what canary clients show of it.

    Each canary answers by a coin of its own; the guesses of these coins prove a least epsilon.
    """
    from fedprivacy.errors import InputError
    from fedprivacy.records.run_directory import check_out
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.model import permit
    from scenarios.cli.display import counting
    from scenarios.cli.display_audit import show_audit
    from scenarios.cli.scenario_argument import asked as read_asked
    from scenarios.cli.scenario_argument import command_again, seed_of
    from scenarios.engines.launch import check_workers
    from scenarios.experiments.audit_options import check_options, check_unit

    many, chosen = check_workers(workers), seed_of(seed)
    asked = read_asked(scenario, set_, chosen)
    if not isinstance(asked, Scenario):
        raise InputError(f"{scenario}: asks for statistics; `fedprivacy audit` audits what trains a model.")
    check_options(method, canaries, trials, asked.seed)
    check_unit(asked.privacy.unit, scenario)
    check_out(out or RUNS)
    permit(asked.model, allow_code)
    from scenarios.experiments.audit import audit as play

    with counting() as on_run:
        document = play(
            asked,
            out or RUNS,
            canaries=canaries,
            method=method,
            trials=trials,
            workers=many,
            allow_code=allow_code,
            command=command_again(chosen),
            on_run=on_run,
        )
    print_result(document, json_, show_audit)
    if strict and document["refuted"]:
        raise typer.Exit(1)
