"""`fedprivacy account`: what many runs over the same clients may cost together."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.cli.options import AllowCode, SamePopulation, Seed, Set, complete
from scenarios.cli.output import Json, Operator, check_operator, print_answer, print_result

if TYPE_CHECKING:
    from fedprivacy.account.entry import PlannedWork
    from fedprivacy.scenario.loading import AnyScenario

app = typer.Typer(
    help="Keep one budget for many runs over the same clients, and refuse a plan that would exceed it.",
    no_args_is_help=True,
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The account's file.")]
Scenarios = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO...", help="Scenario files, or names of ready ones.", autocompletion=complete
    ),
]


@app.command()
def new(
    file: File,
    epsilon: Annotated[float, typer.Option(help="The epsilon of all entries together.")],
    delta: Annotated[float, typer.Option(help="The delta of all entries together.")],
    unit: Annotated[str, typer.Option(help="client or example.")] = "client",
    adjacency: Annotated[str, typer.Option(help="replace-one, add-remove or zero-out.")] = "replace-one",
    observer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=EPSILON]",
            help="Cover server, analyst (behind a shuffler), participant or outsider. May be repeated.",
            show_default="participant and outsider",
        ),
    ] = None,
    order: Annotated[
        float | None,
        typer.Option(
            help="The order of the filter's Renyi divergence; default: at which most Gaussian noise fits."
        ),
    ] = None,
) -> None:
    """Create an account, whose policy is fixed from then on."""
    from fedprivacy.account.entering import create
    from fedprivacy.account.policy import Policy
    from fedprivacy.io.escape import on_one_line

    create(file, Policy.of_options(epsilon, delta, unit, adjacency, observer or (), order))
    again = f"fedprivacy run SCENARIO --account {shlex.quote(str(file))}"
    print(f"Created {on_one_line(str(file))}. Charge it by: {again}")


@app.command()
def enter(
    file: File,
    scenarios: Scenarios,
    set_: Set = None,
    seed: Seed = None,
    same_population: SamePopulation = False,
    allow_code: AllowCode = False,
) -> None:
    """Enter plans together, before any result of any of them.

    They cost no more than one run of all of them. Each is then run with --account and the printed seed.
    --seed N gives seeds N, N+1, ...
    """
    from fedprivacy.account.entering import enter as enter_plans
    from fedprivacy.scenario import Code, Scenario

    requested, works = _works(scenarios, set_, seed, allow_code)
    enter_plans(file, works, command="account enter", started=False, same_population=same_population)
    print("Entered. Now run, with the same settings:")
    for source, scenario, work in zip(scenarios, requested, works, strict=True):
        command = "tune" if work.work == "tuning" else "run"
        words = ["fedprivacy", command, source, *(word for each in set_ or [] for word in ("--set", each))]
        allow = ["--allow-code"] * (isinstance(scenario, Scenario) and isinstance(scenario.model, Code))
        print(f"  {shlex.join([*words, '--seed', str(scenario.seed), '--account', str(file), *allow])}")


@app.command()
def plan(
    file: File,
    scenarios: Scenarios,
    set_: Set = None,
    seed: Seed = None,
    same_population: SamePopulation = False,
    allow_code: AllowCode = False,
    json_: Json = False,
) -> None:
    """Show whether plans that enter together would fit, and the largest plan that does; enter nothing."""
    from fedprivacy.account.account import Account
    from fedprivacy.account.statement import would_fit
    from scenarios.cli.display_account import show_plan

    account = Account.read(file)
    _, works = _works(scenarios, set_, seed, allow_code)
    print_answer(would_fit(account, works, same_population), json_, show_plan)


@app.command()
def show(file: File, json_: Json = False, operator: Operator = False) -> None:
    """Show the policy, the entries, what remains, and the claim with its assumptions."""
    from scenarios.cli.display_account import show_account

    check_operator(operator, json_, "--json")
    print_result(_statement(file), json_, show_account, operator, written=False)


@app.command()
def export(
    file: File,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Print the entered plans as a table, one row each. Values are public."""
    from csv import DictWriter

    from fedprivacy.account.statement import rows_of
    from fedprivacy.documents.redaction import public
    from fedprivacy.errors import InputError
    from scenarios.stored.export import cell

    if not csv:
        raise InputError("account export: give --csv.")
    document = public(_statement(file))
    rows = list(rows_of(document))
    observers = [f"cost_{claim['observer']}" for claim in document["claims"]]
    columns = ["entry", "time", "name", "work", "trust", "rounds", "sampling", "state", *observers]
    table = DictWriter(sys.stdout, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({key: cell(row[key]) for key in columns} for row in rows)


def _statement(file: Path) -> dict[str, Any]:
    from fedprivacy.account.account import Account
    from fedprivacy.account.statement import statement

    account = Account.read(file)
    account.check_claim()
    return statement(account)


def _works(
    sources: list[str], overrides: list[str] | None, seed: str | None, allow_code: bool
) -> tuple[list[AnyScenario], list[PlannedWork]]:
    """The scenarios, with consecutive seeds if a seed is given, and their plans."""
    from fedprivacy.scenario.loading import load
    from scenarios.authoring.catalogue import find
    from scenarios.budgets.planned_work import planned
    from scenarios.cli.scenario_argument import seed_of

    first = seed_of(seed, len(sources))
    requested = [
        load(find(source), [*(overrides or []), *([] if first is None else [f"seed={first + at}"])])
        for at, source in enumerate(sources)
    ]
    return requested, [planned(each, allow_code=allow_code) for each in requested]
