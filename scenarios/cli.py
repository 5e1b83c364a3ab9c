"""The `fedprivacy` command.

Heavy imports (torch, Flower, the accountants) happen inside the commands, so that help is instant.
Exit codes: 0 done, 1 the run failed, 2 the input is wrong, 130 interrupted.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from fedprivacy.errors import FedPrivacyError
from scenarios.budget_cli import app as budget_app
from scenarios.federation_cli import app as federation_app
from scenarios.printing import Json, print_result

app = typer.Typer(
    name="fedprivacy",
    help="Simulate federated learning with differential privacy, and say who is protected from whom.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(budget_app, name="budget")
app.add_typer(federation_app, name="federation")


def _complete(incomplete: str) -> list[str]:
    from scenarios.ready import complete

    return complete(incomplete)


_SOURCE: Any = {"metavar": "SCENARIO", "help": "A scenario file, or the name of a ready one."}
Source = Annotated[str, typer.Argument(**_SOURCE, autocompletion=_complete)]
OptionalSource = Annotated[str | None, typer.Argument(**_SOURCE, autocompletion=_complete)]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a key, as in server.rounds=10. May be repeated."
    ),
]
Seed = Annotated[
    str | None, typer.Option(metavar="NUMBER|random", help="Override the seed; random: none can guess it.")
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
    Path | None, typer.Option("--resume", metavar="DIR", help="Go on with one that was broken off instead.")
]
RUNS = Path("runs")
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help='Let the scenario run code of its own: model.name = "code".')
]


def _version(wanted: bool) -> None:
    if wanted:
        from fedprivacy import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate federated learning with differential privacy, and say who is protected from whom."""


@app.command()
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
    from fedprivacy.runs import check_out
    from fedprivacy.scenario.erm import ErmScenario
    from fedprivacy.scenario.model import permit
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.asked import asked_any, one_of, seed_of
    from scenarios.display import show_run, watching
    from scenarios.launch import engine_of, only_embedded

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
        if isinstance(asked, ErmScenario):
            only_embedded(engine, "study of private estimates")
            check_out(out or RUNS)
            from scenarios.display_estimates import fitting_cells, show_estimates
            from scenarios.fitting import fit

            with fitting_cells(asked) as on_cell:
                document = fit(asked, out or RUNS, command=_command(chosen), on_cell=on_cell)
            print_result(document, json_, show_estimates)
            return
        if where.name == "superlink":
            _run_elsewhere(asked, out or RUNS, places, pinned, allow_code, _command(chosen), json_)
            return
        if isinstance(asked, Statistics):
            only_embedded(engine, "statistics run")
        check_out(out or RUNS)
        if isinstance(asked, Statistics):
            from scenarios import asking
            from scenarios.display_statistics import asking_queries, show_statistics

            with asking_queries(len(asked.queries)) as on_query:
                document = asking.ask(asked, out or RUNS, command=_command(chosen), on_query=on_query)
            print_result(document, json_, show_statistics)
            return
        permit(asked.model, allow_code)
        from scenarios import runner

        with watching(asked.server.rounds) as on_round:
            document = runner.run(
                asked,
                out or RUNS,
                allow_code=allow_code,
                command=_command(chosen),
                on_round=on_round,
                engine=where,
            )
    print_result(document, json_, show_run)


@app.command()
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
    from fedprivacy.runs import check_out
    from fedprivacy.scenario.model import permit
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.asked import asked as read_asked
    from scenarios.asked import asked_again, one_of, seed_of
    from scenarios.display import counting, show_comparison
    from scenarios.launch import check_workers, only_embedded

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
        from scenarios.display_statistics import show_sweep
        from scenarios.sweep import compare as sweep

        with counting() as on_run:
            document = sweep(
                asked, out or RUNS, workers=many, resume=resume, command=_command(first), on_run=on_run
            )
        print_result(document, json_, show_sweep)
        return
    permit(asked.model, allow_code)
    from scenarios.compare import compare as run_comparison

    with counting() as on_run:
        document = run_comparison(
            asked,
            out or RUNS,
            workers=many,
            resume=resume,
            allow_code=allow_code,
            command=_command(first),
            on_run=on_run,
        )
    print_result(document, json_, show_comparison)


@app.command()
def replay(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO|DIR",
            help="An attack scenario, or the directory of an earlier replay.",
            autocompletion=_complete,
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
    from fedprivacy.runs import check_out
    from scenarios.asked import attacked, attacked_again, one_of, seed_of
    from scenarios.display import counting
    from scenarios.display_attacks import show_replay
    from scenarios.launch import check_workers, only_embedded

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
    from scenarios.replay import replay as play

    with counting() as on_attack:
        document = play(
            asked,
            out or RUNS,
            workers=many,
            stored=stored,
            resume=resume,
            command=_command(first),
            on_attack=on_attack,
        )
    print_result(document, json_, show_replay)


@app.command()
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
    from scenarios.risk import risk as most_exposed
    from scenarios.risk import show

    print_result(most_exposed(run, most, attack), json_, show)


@app.command()
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
    from fedprivacy.runs import check_out
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.model import permit
    from scenarios.asked import asked as read_asked
    from scenarios.asked import seed_of
    from scenarios.audit_options import check_options, check_unit
    from scenarios.display import counting
    from scenarios.display_audit import show_audit
    from scenarios.launch import check_workers

    many, chosen = check_workers(workers), seed_of(seed)
    asked = read_asked(scenario, set_, chosen)
    if not isinstance(asked, Scenario):
        raise InputError(f"{scenario}: asks for statistics; `fedprivacy audit` audits what trains a model.")
    check_options(method, canaries, trials, asked.seed)
    check_unit(asked.privacy.unit, scenario)
    check_out(out or RUNS)
    permit(asked.model, allow_code)
    from scenarios.audit import audit as play

    with counting() as on_run:
        document = play(
            asked,
            out or RUNS,
            canaries=canaries,
            method=method,
            trials=trials,
            workers=many,
            allow_code=allow_code,
            command=_command(chosen),
            on_run=on_run,
        )
    print_result(document, json_, show_audit)
    if strict and document["refuted"]:
        raise typer.Exit(1)


@app.command()
def scenarios(json_: Json = False) -> None:
    """Say what each ready scenario is for, how long it takes and what it needs."""
    from scenarios.display import show_scenarios
    from scenarios.ready import described, ready

    listed = [described(name, file) for name, file in ready().items()]
    print_result({"schema": 1, "kind": "scenarios", "scenarios": listed}, json_, show_scenarios)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of your scenario.")],
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SCENARIO",
            help="The scenario to start from: a ready one, or a file.",
            autocompletion=_complete,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write.", show_default="NAME.toml")
    ] = None,
) -> None:
    """Write a scenario file of your own, with every key explained.

    It is a copy of another scenario under a new NAME, its comments kept, and the keys that it leaves
    out are written as comments with their defaults.
    """
    from scenarios.new import new as write_new
    from scenarios.ready import find

    file = out or Path(f"{name}.toml")
    command = write_new(name, find(from_), from_, file)
    print(f"Wrote {file}. Start it with: {command}")


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of runs or comparisons.")],
) -> None:
    """Render the report of stored runs again.

    RUN is the directory of a run or a comparison. The guarantees of each run are accounted for again first.
    """
    from fedprivacy.rechecking import checked_document
    from fedprivacy.report import write

    for path in runs:
        print(write(checked_document(path), path))


@app.command()
def doctor(
    ports: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT[,PORT...]", help="The ports of a deployment; default: those of Flower and 18000."
        ),
    ] = None,
    out: Out = None,
    ray: Annotated[bool, typer.Option("--ray", help="Also start Ray, which takes seconds.")] = False,
    json_: Json = False,
) -> None:
    """Say whether this machine is able to run fedprivacy, and what to do where it is not.

    Looks at Python, the packages, processors and memory, folders, ports, and whether others have the names of
    our packages. Exit code 1 where something failed.
    """
    from scenarios.doctor import Asked, examine
    from scenarios.doctor.display import show
    from scenarios.doctor.places import PORTS, ports_of

    document = examine(Asked(out or RUNS, ports_of(ports) if ports else PORTS, ray))
    print_result(document, json_, show)
    if not document["able"]:
        raise typer.Exit(1)


def main() -> None:
    """Runs the command; what a user did wrong ends without a traceback."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(app(prog_name="fedprivacy", standalone_mode=False) or 0)
    except KeyboardInterrupt:  # before typer is at work; within a command it exits with 130 itself
        sys.exit(130)
    except click.ClickException as error:
        if error.format_message():  # else the help that was asked for by no word at all is out already
            print(_words(error), file=sys.stderr)
        sys.exit(error.exit_code)
    except FedPrivacyError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def _words(error: click.ClickException) -> str:
    """A wrong option or argument in the form of all messages: where, what, what to do."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "fedprivacy"
    said = error.format_message().strip().rstrip(".")
    # Newer versions of click guess too, so typer's guess stands there twice.
    said = re.sub(r"( Did you mean [^?]+\?)\1$", r"\1", said)
    said = said.replace("a valid integer", "a whole number").replace("a valid float", "a number")
    end = "" if said.endswith(("?", "?)")) else "."
    return f"{where}: {said[:1].lower()}{said[1:]}{end} `{where} --help` says what there is."


def _interrupt(number: int, frame: object) -> None:
    """Who ends a run kindly (a job scheduler, say) leaves the same record as Ctrl-C."""
    raise KeyboardInterrupt


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
    from fedprivacy.runs import check_out
    from fedprivacy.scenario.model import permit
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.display import show_run, watching
    from scenarios.display_statistics import asking_queries, show_statistics
    from scenarios.federation_state import target_of

    many = isinstance(asked, Statistics)
    if not many:
        permit(asked.model, allow)
    target = target_of(*places, pinned)
    check_out(out)
    from scenarios.engines import superlink as engine

    progress = asking_queries(len(asked.queries)) if many else watching(asked.server.rounds)
    with progress as on_event:
        document = engine.run(asked, out, target, allow_code=allow, command=said, on_event=on_event)
    print_result(document, json_, show_statistics if many else show_run)


def _rounds_of(path: Path) -> int:
    import shlex

    from fedprivacy.errors import InputError
    from fedprivacy.runs import RunDirectory
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.loading import load
    from fedprivacy.scenario.statistics import Statistics
    from scenarios.begun import BEGUN, begun_in

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


def _command(seed: int | None) -> str:
    """The command that gives the same numbers again."""
    import shlex

    given = list(sys.argv[1:])
    for at, word in enumerate(given):
        if word == "--seed=random" or (word == "random" and given[at - 1] == "--seed"):
            given[at] = word.replace("random", str(seed))
    return shlex.join(["fedprivacy", *given])
