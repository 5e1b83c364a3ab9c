"""The calls of the Python API, which run what the commands of the same names run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fedprivacy.account.charge import Charge
from fedprivacy.documents.headline import primary_of
from fedprivacy.documents.redaction import measured_on_clients
from fedprivacy.errors import InputError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.model import is_object
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario
from scenarios.api.data_argument import People
from scenarios.api.progress import in_notebook, notebook_progress
from scenarios.api.results import (
    Audit,
    Comparison,
    Estimates,
    Replay,
    Result,
    Run,
    StatisticsComparison,
    StatisticsRun,
    Tuning,
    result_of,
)
from scenarios.api.scenario_arguments import Request, Source, out_of, request
from scenarios.budgets.uncovered_work import refuse_charge
from scenarios.cli.kind_interface import ComparisonKind, RunKind, RunOptions
from scenarios.cli.kind_registry import kind_of
from scenarios.cli.options import charge_of
from scenarios.engines.launch import check_workers, engine_of
from scenarios.tracking.track import check_tracking, tracking

Account = str | Path | None  # the file of an account
RUNS = "runs"
ENGINES = ("embedded", "ray")  # a federation has nodes with data of their own: see the command


def scenario_for(source: Source, *, seed: int | None = None, **settings: Any) -> AnyScenario:
    """Returns the scenario that a call with the same arguments would run.

    Args:
        source: The name of a ready scenario, the path of a TOML file, a scenario, or `People`.
        seed: The seed; None for the scenario's own.
        settings: As of `run`.

    Raises:
        ScenarioError: with every mistake.

    >>> scenario_for("digits", epsilon=8).privacy.epsilon
    8.0
    """
    return request("run", source, settings, seed=seed).scenario


def run(
    source: Source,
    *,
    out: str | Path = RUNS,
    seed: int | None = None,
    engine: str = "embedded",
    workers: int | None = None,
    allow_code: bool = False,
    progress: bool = True,
    limits: bool = False,
    track: str | None = None,
    operator: bool = False,
    account: Account = None,
    same_population: bool = False,
    **settings: Any,
) -> Run | StatisticsRun | Estimates:
    """Runs a simulation, and writes its record and report, as `fedprivacy run` does.

    Args:
        source: The name of a ready scenario, the path of a TOML file, a scenario, or `People`.
        out: The folder of run directories.
        seed: The seed; None for the scenario's own.
        engine: "embedded" or "ray"; the numbers do not depend on it.
        workers: Processes that train clients; None: one for each core.
        allow_code: Whether a scenario file may run its code. A model that is a Python object needs no leave.
        progress: Whether to show progress.
        limits: Whether to train variants after the run (no noise, no clipping, more rounds, ...), to see what
            limits it; they take many times the time of the run.
        track: "tensorboard", "mlflow" or "wandb": a tracker, which gets public values only.
        operator: Whether the tracker gets operator-only values too, under `operator/`.
        account: The file of an account, which is charged before the first round (`fedprivacy account`).
        same_population: With an account: you state that the clients are those of its other entries.
        settings: What to change: `trust`, `epsilon`, `delta`, `unit`, `adjacency`, `rounds`, `rate` (Poisson
            sampling), `cohort` (of fixed size), `learning_rate`, `server_learning_rate`, `model` (a name, an
            `nn.Module` or a function that returns one), any key whose name is there once (`clipping_norm`),
            and whole keys in `set={"data.scaling": "none"}`.

    Raises:
        InputError: with every mistake, before anything is written.
        RunError: if the run fails; its directory holds what it reached.

    >>> import tempfile
    >>> result = run("digits", rounds=2, out=tempfile.mkdtemp(), progress=False)
    >>> result.guarantees["participant"].epsilon <= 2.0001
    True
    """
    charge = _charge(account, same_population, "run")
    requested = request("run", source, settings, seed=seed, allow_code=allow_code)
    if not limits:
        return _run(requested, out, engine, workers, progress, track, operator, charge)
    if charge is not None:
        refuse_charge(requested.scenario, "--limits")
    from scenarios.experiments.limits import check_limits, measure

    trained = check_limits(requested.scenario, engine)
    model = getattr(requested.scenario, "model", None)
    if model is not None and is_object(model):
        raise InputError(
            "limits=True: the variants are trained in other processes, which do not have the model, an "
            "object of this one. Leave it out, or name the model in a scenario file."
        )
    first = _run(requested, out, engine, workers, progress, track, operator)
    with _shown(_jobs, progress) as on_run:
        document = measure(
            first.document,
            trained,
            workers=check_workers(workers),
            allow_code=requested.allow_code,
            command=requested.command,
            on_run=on_run,
        )
    return Run(document)


def _run(
    requested: Request,
    out: str | Path,
    engine: str,
    workers: int | None,
    progress: bool,
    track: str | None = None,
    operator: bool = False,
    charge: Charge | None = None,
) -> Any:
    kind = kind_of(requested.scenario)
    assert isinstance(kind, RunKind)  # other kinds belong to another call and were refused
    if engine not in ENGINES:
        raise InputError(f"engine={engine!r}: no such engine. Choose from: {', '.join(ENGINES)}.")
    model = getattr(requested.scenario, "model", None)
    if engine == "ray" and model is not None and is_object(model):
        raise InputError(
            'engine="ray": its processes do not have the model, which is an object of this one. Choose '
            'engine="embedded"; the numbers do not depend on it.'
        )
    where = engine_of(engine, workers, None, None, None, None, None, False)
    options = RunOptions(out_of(out), where, False, requested.allow_code, requested.command, charge)
    kind.check(requested.scenario, options)
    check_tracking(track, operator, resumed=False)
    rounds = requested.scenario.server.rounds if isinstance(requested.scenario, Scenario) else None
    title = primary_of(requested.scenario.tables()).title
    with (
        tracking(track, requested.scenario, options.out, operator) as tracked,
        _shown(lambda: kind.progress(requested.scenario), progress, rounds, title) as show_event,
    ):
        document = kind.run(requested.scenario, options, tracked.beside(show_event))
        tracked.result(document)
    return result_of(document)


def ask(
    source: Source,
    *,
    out: str | Path = RUNS,
    seed: int | None = None,
    engine: str = "embedded",
    workers: int | None = None,
    progress: bool = True,
    account: Account = None,
    same_population: bool = False,
    **settings: Any,
) -> StatisticsRun:
    """Releases statistics under differential privacy; arguments as of `run`.

    Raises:
        InputError: if the scenario has no queries, or with every mistake.

    >>> import tempfile
    >>> answers = ask("star-wars-survey", out=tempfile.mkdtemp(), progress=False)
    >>> answers.guarantees["server"].epsilon
    1.0
    """
    charge = _charge(account, same_population, "run")
    requested = request("run", source, settings, seed=seed)
    if not isinstance(requested.scenario, Statistics):
        raise InputError(
            f"{_named(source)}: has no [queries.NAME], so it releases no statistics. Use fedprivacy.run."
        )
    return cast("StatisticsRun", _run(requested, out, engine, workers, progress, charge=charge))


def compare(
    source: Source,
    *,
    out: str | Path = RUNS,
    seed: int | None = None,
    workers: int | None = None,
    allow_code: bool = False,
    progress: bool = True,
    track: str | None = None,
    operator: bool = False,
    account: Account = None,
    same_population: bool = False,
    **settings: Any,
) -> Comparison | StatisticsComparison:
    """Compares trust models over epsilons and seeds, as `fedprivacy compare` does.

    Args:
        source: As of `run`.
        out: As of `run`.
        seed: The first of the seeds; None for the scenario's own.
        workers: Processes that run cells in parallel; None: one for each core.
        allow_code: As of `run`.
        progress: As of `run`.
        track: As of `run`.
        operator: As of `run`.
        account: As of `run`; all cells enter it together.
        same_population: As of `run`.
        settings: As of `run`, besides `trusts`, `epsilons`, `seeds`, `units` and `mechanisms`.

    Raises:
        InputError: with every mistake, before anything is written.
        RunError: if a cell fails.

    >>> import tempfile
    >>> few = {"trusts": ["none", "central"], "epsilons": [2], "seeds": [1], "rounds": 1}
    >>> both = compare("digits", **few, out=tempfile.mkdtemp(), progress=False, workers=1)
    >>> both.table[["trust", "epsilon"]].values.tolist()
    [['none', nan], ['central', 2.0]]
    """
    charge = _charge(account, same_population, "compare")
    requested = request("compare", source, settings, seed=None, allow_code=allow_code)
    kind = kind_of(requested.scenario)
    assert isinstance(kind, ComparisonKind)
    if seed is not None:
        texts = kind.seed_overrides(seed, kind.seeds(requested.scenario))
        overrides = dict(text.split("=", 1) for text in texts)
        seeds = {key: [int(each) for each in text.strip("[]").split(",")] for key, text in overrides.items()}
        changed = {**settings, "set": {**settings.get("set", {}), **seeds}}
        requested = request("compare", source, changed, seed=seed, allow_code=allow_code)
    folder, processes = out_of(out), check_workers(workers)
    check_tracking(track, operator, resumed=False)
    with (
        tracking(track, requested.scenario, folder, operator) as tracked,
        _shown(_jobs, progress) as on_run,
    ):
        document = kind.compare(
            requested.scenario,
            folder,
            workers=processes,
            resume=None,
            allow_code=requested.allow_code,
            command=requested.command,
            on_run=on_run,
            charge=charge,
        )
        tracked.result(document)
    return cast("Comparison | StatisticsComparison", result_of(document))


def replay(
    source: Source,
    *,
    attacks: str | Sequence[str] | None = None,
    out: str | Path = RUNS,
    seed: int | None = None,
    workers: int | None = None,
    progress: bool = True,
    account: Account = None,
    same_population: bool = False,
    **settings: Any,
) -> Replay:
    """Runs membership attacks beside the bounds of the guarantees, as `fedprivacy replay` does.

    Args:
        source: An attack scenario: the name of a ready one, the path of a file, or a scenario.
        attacks: The attack to run, or several; None: all.
        out: As of `run`.
        seed: As of `run`.
        workers: Processes that attack in parallel; None: one for each core.
        progress: As of `run`.
        account: As of `run`; results are then operator-only.
        same_population: As of `run`.
        settings: As of `run`.

    Raises:
        InputError: if it has no attacks, or with every mistake.

    >>> import tempfile
    >>> small = {"game.members": 20, "game.nonmembers": 40, "model.hidden": [16], "attacks.passive.rounds": 2}
    >>> options = {"out": tempfile.mkdtemp(), "progress": False, "workers": 1}
    >>> result = replay("active-gradient-ascent", attacks=["passive"], rounds=2, set=small, **options)
    >>> result.table[["attack", "seat"]].values.tolist()
    [['passive', 'server']]
    """
    names = [attacks] if isinstance(attacks, str) else list(attacks or ())
    requested = request("replay", source, settings, seed=seed, options=[("--attack", name) for name in names])
    chosen = requested.scenario
    if not isinstance(chosen, AttackScenario):
        raise InputError(f"{_named(source)}: has no [attacks.NAME], so there is nothing to replay.")
    if unknown := [name for name in names if name not in chosen.attacks]:
        raise InputError(f"attacks: no attack {unknown[0]!r}. Choose from: {', '.join(chosen.attacks)}.")
    if names:
        selected = {name: attack for name, attack in chosen.attacks.items() if name in names}
        chosen = chosen.model_copy(update={"attacks": selected})
    charge = _charge(account, same_population, "replay")
    folder = out_of(out)
    from scenarios.attacks.replay import replay as run_attacks

    with _shown(_jobs, progress) as on_attack:
        document = run_attacks(
            chosen,
            folder,
            workers=check_workers(workers),
            stored=None,
            resume=None,
            command=requested.command,
            on_attack=on_attack,
            charge=charge,
        )
    return Replay(document)


def audit(
    source: Source,
    *,
    canaries: int = 1000,
    method: str = "both",
    trials: int = 1,
    out: str | Path = RUNS,
    seed: int | None = None,
    workers: int | None = None,
    allow_code: bool = False,
    progress: bool = True,
    account: Account = None,
    same_population: bool = False,
    **settings: Any,
) -> Audit:
    """Tests the claimed epsilon against lower bounds from canary clients, as `fedprivacy audit` does.

    Args:
        source: As of `run`.
        canaries: Clients that are added, each with a coin to guess.
        method: "one-run" (a lower bound), "canary-clients" (an estimate) or "both".
        trials: Runs, each with its own seed, coins and noise.
        out: As of `run`.
        seed: As of `run`.
        workers: Processes that work in parallel; None: one for each core.
        allow_code: As of `run`.
        progress: As of `run`.
        account: As of `run`; results are then operator-only.
        same_population: As of `run`.
        settings: As of `run`.

    Raises:
        InputError: with every mistake, before anything is written.

    >>> import tempfile
    >>> options = {"out": tempfile.mkdtemp(), "progress": False, "workers": 1}
    >>> audit("digits", rounds=1, canaries=50, method="one-run", **options).refuted
    False
    """
    from scenarios.experiments.audit_options import check_options, check_privacy

    options = [("--canaries", canaries), ("--method", method), ("--trials", trials)]
    requested = request("audit", source, settings, seed=seed, allow_code=allow_code, options=options)
    if not isinstance(requested.scenario, Scenario):
        raise InputError(f"{_named(source)}: trains no model, so there is no training to audit.")
    check_options(method, canaries, trials, requested.scenario.seed)
    check_privacy(requested.scenario.privacy, _named(source))
    charge = _charge(account, same_population, "audit")
    folder = out_of(out)
    from scenarios.experiments.audit import audit as run_audit

    with _shown(_jobs, progress) as on_run:
        document = run_audit(
            requested.scenario,
            folder,
            canaries=canaries,
            method=method,
            trials=trials,
            workers=check_workers(workers),
            allow_code=requested.allow_code,
            command=requested.command,
            on_run=on_run,
            charge=charge,
        )
    return Audit(document)


def tune(
    source: Source,
    *,
    out: str | Path = RUNS,
    seed: int | None = None,
    workers: int | None = None,
    allow_code: bool = False,
    progress: bool = True,
    account: Account = None,
    same_population: bool = False,
    **settings: Any,
) -> Tuning:
    """Chooses settings under differential privacy, as `fedprivacy tune` does; arguments as of `run`.

    Raises:
        InputError: if the scenario has no [tune], or with every mistake.

    >>> import tempfile
    >>> choice = tune("tuned", rounds=1, out=tempfile.mkdtemp(), progress=False, workers=1)
    >>> sorted(choice.choice)
    ['privacy.clipping_norm', 'server.learning_rate']
    """
    charge = _charge(account, same_population, "tune")
    requested = request("tune", source, settings, seed=seed, allow_code=allow_code)
    if not isinstance(requested.scenario, TuneScenario):
        raise InputError(f"{_named(source)}: has no [tune], so there is nothing to choose from.")
    folder = out_of(out)
    from scenarios.experiments.tuning import tune as choose_settings

    with _shown(_jobs, progress) as on_run:
        document = choose_settings(
            requested.scenario,
            folder,
            workers=check_workers(workers),
            resume=None,
            allow_code=requested.allow_code,
            command=requested.command,
            on_run=on_run,
            charge=charge,
        )
    return Tuning(document)


def _charge(account: Account, same_population: bool, command: str) -> Charge | None:
    return charge_of(None if account is None else Path(account), same_population, command)


@dataclass(frozen=True)
class Noise:
    """Gaussian noise for a budget.

    Attributes:
        noise_multiplier: The standard deviation of the noise on the sum, over the clipping norm.
        words: The guarantee with all of its terms.
    """

    noise_multiplier: float
    words: str

    def __repr__(self) -> str:
        """Returns the noise multiplier and its guarantee."""
        return f"noise multiplier {self.noise_multiplier:.6g}: {self.words}"


def noise(
    *,
    epsilon: float,
    delta: float = 1e-5,
    rounds: int = 1,
    rate: float | None = None,
    cohort: int | None = None,
    clients: int | None = None,
    adjacency: str = "replace-one",
) -> Noise:
    """Returns the Gaussian noise that an epsilon needs, as `fedprivacy budget gaussian` does.

    Args:
        epsilon: The budget of all rounds together.
        delta: The probability with which the bound may fail.
        rounds: The number of rounds.
        rate: The rate of Poisson sampling; None: no secrecy of cohorts is counted.
        cohort: The size of a cohort of fixed size, in place of `rate`.
        clients: The number of clients that a cohort is drawn from.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: with every argument that is out of its range.

    >>> round(noise(epsilon=2, rounds=100, rate=0.1).noise_multiplier, 3)
    3.982
    """
    from scenarios.budgets.gaussian import GaussianQuestion

    question = GaussianQuestion(
        epsilon=epsilon,
        delta=delta,
        rounds=rounds,
        sampling_rate=rate,
        cohort=cohort,
        population=clients,
        adjacency=adjacency,
    )
    try:
        document = question.document()
    except InputError as error:
        raise InputError(_as_arguments(str(error))) from None
    return Noise(document["noise_multiplier"], document["words"])


def _as_arguments(text: str) -> str:
    """Returns a message about options of the command as one about arguments of `noise`."""
    for option, argument in (("sampling-rate", "rate"), ("population", "clients")):
        text = text.replace(f"--{option}", argument)
    return text.replace("--", "")


def read(path: str | Path) -> Result:
    """Returns a stored result, once its guarantees follow again from its scenario, plan and rounds.

    Args:
        path: A run directory.

    Raises:
        InputError: if it is no run directory, or its record is damaged or contradicts itself.

    >>> import tempfile
    >>> stored = run("digits", rounds=1, out=tempfile.mkdtemp(), progress=False).path
    >>> read(stored).status
    'finished'
    """
    from fedprivacy.verification.verify import checked_document

    folder = Path(path)
    return result_of({**checked_document(folder), "path": str(folder)})


def track(result: Result, tracker: str, *, operator: bool = False) -> None:
    """Sends a result to a tracker, as `run(..., track=...)` does while it runs.

    Args:
        result: A result of a call, or of `read`.
        tracker: "tensorboard", "mlflow" or "wandb". It gets public values only.
        operator: Whether it gets operator-only values too, under `operator/`.

    Raises:
        InputError: if there is no such tracker, or its package is not installed.

    >>> import tempfile
    >>> survey = ask("star-wars-survey", out=tempfile.mkdtemp(), progress=False)
    >>> track(survey, "paper")
    Traceback (most recent call last):
    fedprivacy.errors.InputError: --track paper: no such tracker. Choose from tensorboard, mlflow, wandb.
    """
    check_tracking(tracker, operator, resumed=False)
    document = result.document
    tested = measured_on_clients(document)
    with tracking(tracker, result.scenario, result.path.parent, operator, tested) as tracked:
        log = tracked.beside(lambda _: None)
        for event in document.get("rounds", ()):
            log(event)
        tracked.result(document)


def _named(source: Source) -> str:
    return "people" if isinstance(source, People) else str(getattr(source, "name", source))


def _jobs() -> Any:
    from scenarios.cli.display import job_progress

    return job_progress()


@contextmanager
def _shown(
    display: Callable[[], Any], progress: bool, total: int | None = None, metric: str = "accuracy"
) -> Iterator[Any]:
    """Shows progress, or gives a function that ignores its arguments."""
    if not progress:
        yield lambda *_: None
        return
    with notebook_progress(total, metric) if in_notebook() else display() as on_event:
        yield on_event
