"""`fedprivacy tune`: chooses settings of a scenario, and reports the cost of the choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import PlannedWork
from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.tune import Choice, TuneCandidate, TuneDocument
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.io.environment import versions
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population, population
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.records.run_directory import Checkpoint
from fedprivacy.records.run_record import scenario_digest
from fedprivacy.report import write as write_report
from fedprivacy.scenario import Code
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.grid import words_of
from fedprivacy.scenario.tune.sections import ExponentialTune, StoppingTune
from fedprivacy.training.model_spec import model_of
from fedprivacy.tuning.ledgers import chosen_ledger, law_of, naive_ledger
from fedprivacy.tuning.scores import by_clients as by_the_clients
from fedprivacy.tuning.selection import PrivateSelection, best
from fedprivacy.verification.tune import claims_of
from scenarios.budgets.planned_work import tuning_work
from scenarios.experiments.tuning_candidate import PublicSplit, by_clients, by_public, train
from scenarios.jobs.cell_store import CellTask, digest_of
from scenarios.jobs.outcome import JobOutcome
from scenarios.jobs.stored_job import StoredJob, Work, open_job

OnRun = Callable[[str, int, int], None]


def tune(
    scenario: TuneScenario,
    out: Path,
    *,
    workers: int,
    resume: Path | None = None,
    allow_code: bool = False,
    command: str = "",
    on_run: OnRun | None = None,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs the candidates of a scenario, chooses one, and writes one document and one report.

    Args:
        scenario: The scenario with its section `[tune]`.
        out: Where the directory goes.
        workers: Processes that run candidates side by side; the numbers do not depend on it.
        resume: The directory of this choice, to resume.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        on_run: Called with a candidate's settings, runs done and runs in all, after each.
        charge: The account that is charged before the first candidate.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a candidate cannot be accounted for or trained, or `resume`
            not be resumed.
        RunError: if a run on the public split fails, or that of the chosen candidate, or every try on the
            clients.
    """
    people = population(scenario.data)
    model = model_of(scenario, people, allow_code=allow_code)
    candidates = [scenario.candidate(number) for number in range(len(scenario.settings))]
    plans = [
        plan_of(
            candidate,
            model_of(candidate, people, allow_code=allow_code),
        )
        for candidate in candidates
    ]
    tested = people.tests_clients("test")
    for build in (chosen_ledger, naive_ledger):  # refuses before any work if no accountant answers
        guarantees(build(scenario.tune, plans, 0, tested=tested))
    if not isinstance(scenario.tune, StoppingTune):
        split = PublicSplit.of(people, scenario.seed)
        for plan in plans:
            split.plan(plan)
    streams = streams_of(scenario, people, model.code)
    work = Work(
        "tune",
        scenario.name,
        scenario.to_toml(),
        versions(scenario.training.trainer),
        data=streams.run,
        code=isinstance(scenario.model, Code),
    )

    def works() -> list[PlannedWork]:
        return [tuning_work(scenario, plans, people, run_streams(scenario.plain, people, model.code).run)]

    with (
        ChargedRun(charge, works, resume) as charged,
        open_job(work, out, resume=resume, command=command, prepare=charged.begin) as job,
    ):
        charged.hold(job.directory)
        if job.finished is not None:
            return job.finished
        return _work(job, scenario, plans, people, streams, workers, allow_code, on_run)


def streams_of(scenario: TuneScenario, people: Population, code: str) -> Streams:
    """The streams of a choice: with another grid, law or noise it has other draws.

    Two choices with the same draws would reveal more about the clients than the sum of both charges.
    """
    streams = run_streams(scenario.plain, people, code)
    return replace(streams, run=f"{streams.run}/{digest_of(scenario.tables()['tune'])}")


def _work(
    job: StoredJob,
    scenario: TuneScenario,
    plans: Sequence[Plan],
    people: Population,
    streams: Streams,
    workers: int,
    allow_code: bool,
    on_run: OnRun | None,
) -> dict[str, Any]:
    """Runs what has not finished, chooses, trains the chosen one, and writes it down."""
    with JobOutcome(job.path, job.again, announce=False):
        if isinstance(scenario.tune, StoppingTune):
            selection = PrivateSelection(len(plans), law_of(scenario.tune))
            drawn = selection.draw(streams.noise("tune/repetitions"))
            seeds = [int(streams.noise("tune/seed", member=at).integers(2**63)) for at in range(len(drawn))]
            tasks: list[CellTask] = [
                (f"try {at}", (scenario, int(number), seeds[at], plans[number], allow_code))
                for at, number in enumerate(drawn)
            ]
            tries = _results_of(job, scenario, by_clients, tasks, [int(n) for n in drawn], workers, on_run)
            at = best([-math.inf if attempt["score"] is None else attempt["score"] for attempt in tries])
            if at is None:
                chosen, seed, score = None, scenario.seed, None
            elif tries[at]["score"] is None:
                raise RunError("every try failed: there is no best one. Why is in the folder cells beside.")
            else:
                chosen, seed, score = int(drawn[at]), seeds[at], tries[at]["score"]
        else:
            tasks = [
                (f"candidate {number}", (scenario, number, plan, allow_code))
                for number, plan in enumerate(plans)
            ]
            tries = _results_of(job, scenario, by_public, tasks, list(range(len(plans))), workers, on_run)
            seed, score = scenario.seed, None
            if isinstance(scenario.tune, ExponentialTune):
                mechanism = by_the_clients(scenario.tune.epsilon, scenario.privacy.adjacency)
                private = [attempt["private"] for attempt in tries]
                chosen = int(mechanism.draw(private, streams.noise(f"tune/choice/{scenario.tune.epsilon}")))
            else:
                chosen = int(np.argmax([attempt["accuracy"] for attempt in tries]))
        accuracy = None
        if chosen is not None:
            trained = train(scenario.candidate(chosen, seed), plans[chosen], people, allow_code=allow_code)
            checkpoint = Checkpoint(plans[chosen].rounds, {"weights": trained.weights}, {})
            job.directory.save_checkpoint(checkpoint)
            accuracy = trained.accuracy(*people.held_out("test")) if len(people.dataset.y_test) else None
        choice = {"candidate": chosen, "accuracy": accuracy, "score": score}
        document = _document(job, scenario, plans, people, choice, tries)
        job.directory.write_document(document)
        write_report(document, job.path)
    return document


def _results_of(
    job: StoredJob,
    scenario: TuneScenario,
    work: Callable[..., Any],
    tasks: Sequence[CellTask],
    numbers: Sequence[int],
    workers: int,
    on_run: OnRun | None,
) -> list[dict[str, Any]]:
    """The results of the tasks, in their order."""
    results_by_try: dict[int, dict[str, Any]] = {}
    for at, result in job.cells.complete(work, _read, tasks, workers):
        results_by_try[at] = result
        if on_run:
            on_run(words_of(scenario.settings[numbers[at]]), len(results_by_try), len(tasks))
    return [results_by_try[at] for at in range(len(tasks))]


def _read(result: Any) -> dict[str, Any]:
    """Reads the result of a cell.

    Raises:
        InputError: it is something else.
    """
    if isinstance(result, Mapping):
        if result.get("score", 0) is None and isinstance(result.get("failed"), str):
            return dict(result)
        numbers = [value for key, value in result.items() if key != "candidate"]
        if numbers and all(isinstance(number, int | float) and np.isfinite(number) for number in numbers):
            return dict(result)
    raise InputError("what a candidate gave is not a score")


def _document(
    job: StoredJob,
    scenario: TuneScenario,
    plans: Sequence[Plan],
    people: Population,
    choice: Mapping[str, Any],
    tries: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    chosen, tested = choice["candidate"], people.tests_clients("test")
    settings = {} if chosen is None else scenario.settings[chosen]
    public = scenario.tune.method != "random-stopping"
    scored = {attempt["candidate"]: attempt for attempt in tries} if public else {}
    return TuneDocument.new(
        name=scenario.name,
        path=str(job.path),
        seed=scenario.seed,
        status="finished",
        error=None,
        command=job.command,
        started=job.started,
        versions=versions(scenario.training.trainer),
        scenario=scenario.tables(),
        scenario_digest=scenario_digest(job.directory),
        choice=Choice.new(**choice, settings=settings, clients=people.partition.clients),
        candidates=[
            TuneCandidate.new(
                settings=candidate,
                public_accuracy=scored.get(number, {}).get("accuracy"),
                public_records=scored.get(number, {}).get("records"),
            )
            for number, candidate in enumerate(scenario.settings)
        ],
        tries=[dict(attempt) for attempt in tries],
        **claims_of(scenario, plans, chosen, tested=tested),
        performance=Performance.of_process(job.seconds),
    ).to_json()
