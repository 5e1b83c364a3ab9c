"""The arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fedprivacy.account.charge import Charge

RUNS = Path("runs")


def complete(incomplete: str) -> list[str]:
    """Completes a word to ready scenarios and files, for the shell."""
    from scenarios.authoring import catalogue

    return catalogue.complete(incomplete)


def complete_setting(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes `--set` to keys of the scenario, and to the values of a key."""
    from scenarios.authoring import completion

    return completion.settings(_typed_scenario(ctx), incomplete)


def complete_attack(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes `--attack` to the attacks of the scenario."""
    from scenarios.authoring import completion

    return completion.attacks(_typed_scenario(ctx), incomplete)


def complete_run(incomplete: str) -> list[str]:
    """Completes a word to run directories."""
    from scenarios.authoring import completion

    return completion.runs(incomplete)


def run_path(text: str) -> Path:
    """Parses a RUN: a path, or the name of a run directory in `runs`."""
    from scenarios.stored.run_names import run_directory

    return run_directory(text, RUNS)


def charge_of(account: Path | None, same_population: bool, command: str) -> Charge | None:
    """Returns the account that a command charges, once it is readable; None where it names none.

    Raises:
        InputError: it is no account, or `--same-population` was given without one.
    """
    from fedprivacy.account.account import Account
    from fedprivacy.account.charge import Charge
    from fedprivacy.errors import InputError

    if account is None:
        if same_population:
            raise InputError("--same-population: is a statement to an account. Give --account FILE too.")
        return None
    Account.read(account)
    return Charge(account, command, same_population)


def _typed_scenario(ctx: typer.Context) -> str | None:
    # click leaves arguments unparsed while the value of an option is missing.
    return ctx.params.get("scenario") or next(iter(ctx.args), None)


RUN_VALUE: Any = {"parser": run_path, "autocompletion": complete_run}
_SOURCE: Any = {"metavar": "SCENARIO", "help": "A scenario file, or the name of a ready one."}
Source = Annotated[str, typer.Argument(**_SOURCE, autocompletion=complete)]
OptionalSource = Annotated[str | None, typer.Argument(**_SOURCE, autocompletion=complete)]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, as in server.rounds=10. May be repeated.",
        autocompletion=complete_setting,
    ),
]
Seed = Annotated[
    str | None, typer.Option(metavar="NUMBER|random", help="Override the seed; random: nobody can guess it.")
]
Engine = Annotated[str, typer.Option(help="Where the Flower apps run: embedded (in this process).")]
AnyEngine = Annotated[
    str,
    typer.Option(
        help="Where the Flower apps run: embedded (in this process), ray (Ray actors: its ports are open to "
        "the network, without a password; see docs/engines.md), or superlink (a Flower federation; see "
        "docs/deployment.md)."
    ),
]
Out = Annotated[Path | None, typer.Option(help="The folder that run directories go to.", show_default="runs")]
Again = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Resume an interrupted one instead.",
        autocompletion=complete_run,
    ),
]
Track = Annotated[
    str | None,
    typer.Option(
        metavar="tensorboard|mlflow|wandb", help="Send public values to a tracker, which is an observer."
    ),
]
AccountFile = Annotated[
    Path | None,
    typer.Option(
        "--account",
        metavar="FILE",
        help="Charge this account before the work begins (`fedprivacy account`).",
    ),
]
SamePopulation = Annotated[
    bool,
    typer.Option(
        "--same-population",
        help="With an account: you state that the clients are those of its other entries.",
    ),
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help='Let the scenario run its code: model.name = "code".')
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print every guarantee with its assumptions.")]
