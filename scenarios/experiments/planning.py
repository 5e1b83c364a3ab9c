"""`fedprivacy plan`: how many clients a target takes, the least epsilon, or the accuracy to expect.

without noise, all clients x repeats -> does the target lie above? Then stop.
without noise, half of the clients x repeats -> has accuracy levelled off? Else extrapolate nothing.
for each trust model: numbers x repeats -> accuracy on development records -> law -> answer
at the answer: repeats -> accuracy on test records, measured once
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.errors import InputError
from fedprivacy.forecast.answer import enough_points, unreachable
from fedprivacy.forecast.cells import cell_tables, is_public, least_clients
from fedprivacy.forecast.curve import FARTHEST, LEAST_POINTS
from fedprivacy.forecast.design_effect import design_effect
from fedprivacy.forecast.question import Question
from fedprivacy.io.environment import versions
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population, population
from fedprivacy.population.nested import LEAST_PUBLIC, DevelopmentSplit, nested
from fedprivacy.records.run_record import scenario_digest
from fedprivacy.records.seed_statistics import interval
from fedprivacy.report import write as write_report
from fedprivacy.scenario import Code, Scenario
from fedprivacy.training.features import share_features
from fedprivacy.training.model_spec import ModelSpec, model_of
from fedprivacy.verification.plan import answers, claims_of, closing, no_answer
from scenarios.experiments.tuning_candidate import train
from scenarios.jobs.cell_store import CellTask
from scenarios.jobs.outcome import JobOutcome
from scenarios.jobs.stored_job import StoredJob, Work, open_job

OnRun = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Runs:
    """The inputs of every run of a plan.

    Args:
        scenario: The scenario.
        question: What is unknown.
        model: The scenario's model.
        people: Its clients, all of them.
        split: Those that train, and the development records.
        workers: Processes that train in parallel.
        allow_code: Whether the scenario may run code.
    """

    scenario: Scenario
    question: Question
    model: ModelSpec
    people: Population
    split: DevelopmentSplit
    workers: int
    allow_code: bool

    @property
    def clients(self) -> int:
        """The clients whose records can train."""
        return self.split.people.partition.clients

    def cell(self, trust: str, epsilon: float | None, clients: int, repeat: int = 0) -> Scenario:
        """The scenario of one run."""
        seed, total = self.scenario.seed + repeat, self.people.partition.clients
        tables = cell_tables(self.scenario.tables(), trust, epsilon, seed, clients, total)
        return Scenario.from_tables(tables, f'trust "{trust}" with {clients} clients')

    def plan(self, trust: str, epsilon: float | None, clients: int) -> Plan:
        """The plan of the runs at one number of clients."""
        # A record of a small client may cost more: what the smallest clients get holds for every draw.
        everyone = self.split.people
        smallest = np.argsort(everyone.partition.sizes, kind="stable")
        people = nested(everyone, smallest, clients)
        return plan_of(self.cell(trust, epsilon, clients), self.model, people)

    def tasks(self, trust: str, epsilon: float | None, clients: int, *, tested: bool) -> list[CellTask]:
        """The repeats at one number of clients and one epsilon."""
        plan, part = self.plan(trust, epsilon, clients), "test" if tested else "development"
        at = "" if epsilon is None else f", epsilon {epsilon:g}"
        return [
            (
                f"{trust}{at}, {clients} clients, {part}, repeat {repeat}",
                (
                    self.cell(trust, epsilon, clients, repeat),
                    plan,
                    self.scenario.seed,
                    repeat,
                    tested,
                    self.allow_code,
                ),
            )
            for repeat in range(self.question.repeats)
        ]

    def grid(self, trust: str) -> list[tuple[float, float, int]]:
        """Of each number to measure at: itself, the epsilon and the clients.

        Raises:
            InputError: there are too few numbers for a curve.
        """
        question = self.question
        least = least_clients(self.scenario.tables(), trust, self.people.partition.clients)
        wanted = question.clients
        if wanted is not None and wanted < least:
            raise InputError(
                f'--clients {wanted}: under trust "{trust}" a cohort keeps its share of the clients, '
                f"and of fewer than {least} that share is no client. Give {least} or more, or set a "
                "larger sampling.cohort."
            )
        numbers = question.grid(self.clients)
        if question.axis == "epsilon":
            return [(x, x, question.clients or 0) for x in numbers]
        numbers = [x for x in numbers if x >= least]
        if not enough_points(numbers):
            raise InputError(
                f"data: {self.clients} clients give {len(numbers)} numbers of clients to measure at under "
                f'trust "{trust}", and the law takes {LEAST_POINTS}. Bring more clients, or larger cohorts.'
            )
        return [(x, question.epsilon or 0.0, int(x)) for x in numbers]


def plan(
    scenario: Scenario,
    question: Question,
    out: Path,
    *,
    workers: int,
    resume: Path | None = None,
    allow_code: bool = False,
    command: str = "",
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Answers a question of planning by runs of a scenario, and writes one document and one report.

    Args:
        scenario: The scenario, whose trust models come with their `[compare.<trust>]`.
        question: What is given, and what is unknown.
        out: Where the directory goes.
        workers: Processes that train in parallel; the results do not depend on their number.
        resume: The directory of this plan, to resume.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        on_run: Called with a run's label, runs done and runs in all, after each.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a run cannot be planned, or `resume` not be resumed.
        RunError: if a run fails.
    """
    _check_scenario(scenario)
    people = population(scenario.data)
    model = model_of(scenario, people, allow_code=allow_code)
    split = DevelopmentSplit.of(people, scenario.seed)
    runs = Runs(scenario, question, model, people, split, workers, allow_code)
    _check_clients(question, runs.clients, people.partition.clients)
    _check_cells(runs)
    for trust in question.trusts:  # refuses what cannot be planned before any work
        for _, epsilon, clients in runs.grid(trust):
            runs.plan(trust, epsilon, clients)
    share_features(model.build(0), people.dataset.x, people.dataset.x_test)
    work = Work(
        "plan",
        scenario.name,
        scenario.to_toml(),
        versions(scenario.training.trainer),
        data=run_streams(scenario, people, model.code).run,
        code=isinstance(scenario.model, Code),
        facts={"question": question.to_json()},
    )
    with open_job(work, out, resume=resume, command=command) as job:
        if job.finished is not None:
            return job.finished
        with JobOutcome(job.path, job.again, announce=False):
            document = _document(job, runs, **_measured(job, runs, on_run))
            job.directory.write_document(document)
            write_report(document, job.path)
        return document


def _check_scenario(scenario: Scenario) -> None:
    """Refuses a scenario whose runs a plan would replace by others."""
    if (task := getattr(scenario.data, "task", CLASSIFICATION)) != CLASSIFICATION:
        raise InputError(
            f'data.task = "{task}": a plan forecasts accuracy, which a classification '
            "alone has. Use fedprivacy run or fedprivacy compare, which report the measures of this task."
        )
    if scenario.training.personal is not None:
        raise InputError("training.personal: a plan forecasts the model that all clients share. Remove it.")
    if scenario.privacy.groups is not None:
        raise InputError(
            "privacy.groups: a plan has one epsilon for all clients, and would forecast better runs than "
            "those with groups. Remove them, and plan with each group's epsilon."
        )


def _check_cells(runs: Runs) -> None:
    """Refuses settings of single trust models that runs of a plan do not have."""
    total = runs.people.partition.clients
    least = least_clients(runs.scenario.tables(), "none", total)
    if runs.clients < least:
        raise InputError(
            f"sampling.cohort: {runs.clients} of {total} clients can train here, and without noise "
            f"a cohort's share of fewer than {least} is no client. Set a larger one."
        )
    for trust in ("none", *runs.question.trusts):
        at = runs.cell(trust, None if trust == "none" else 1.0, runs.clients)
        if at.server.patience is not None:
            raise InputError(
                f"server.patience = {at.server.patience}: a plan trains all rounds, and would forecast other "
                f'runs (trust "{trust}"). Remove it, and set server.rounds.'
            )
        if at.training.adversarial is not None and runs.split.source == "public":
            raise InputError(
                f"training.adversarial = {at.training.adversarial:g}: trains on the public records, on "
                f'which the plan measures (trust "{trust}"). Remove it, or set a data.public_fraction of '
                f"fewer than {LEAST_PUBLIC} records."
            )


def _check_clients(question: Question, available: int, total: int) -> None:
    """Refuses more clients than runs or the law can answer for."""
    wanted = question.clients
    here = f"{available:,} of {total:,} clients can train here, the others measure"
    if wanted is None or wanted <= available:
        return
    if question.unknown == "epsilon":
        raise InputError(f"--clients {wanted}: {here}. Give at most {available}, or bring more data.")
    if wanted > FARTHEST * available:
        raise InputError(
            f"--clients {wanted}: {here}, and the law is extrapolated to {FARTHEST:g} times as many at most. "
            "Bring more data."
        )


def _measured(job: StoredJob, runs: Runs, on_run: OnRun | None) -> dict[str, Any]:
    """The runs without noise, and the curve of each trust model."""
    question, scenario = runs.question, runs.scenario

    def without_noise(clients: int) -> dict[str, Any]:
        [[accuracies, effect]] = _accuracies(job, runs, [("none", None, clients)], on_run, tested=False)
        return {"x": float(clients), "accuracies": accuracies, "design_effect": effect}

    baseline = without_noise(runs.clients)
    without = baseline["accuracies"]
    development = _development(runs)
    records = development["records"] / baseline["design_effect"]
    if unreachable(question, without, records, interval(without)):
        curves = [{"trust": trust, **no_answer(question, runs.clients)} for trust in question.trusts]
        return {"baseline": baseline, "curves": curves}
    half = runs.clients // 2
    least = least_clients(scenario.tables(), "none", runs.people.partition.clients)
    of_half = without_noise(half) if question.axis == "clients" and half >= least else None
    grids = {trust: runs.grid(trust) for trust in question.trusts}
    places = [(trust, epsilon, clients) for trust, grid in grids.items() for _, epsilon, clients in grid]
    every = iter(_accuracies(job, runs, places, on_run, tested=False))
    curves = []
    for trust, grid in grids.items():
        places_of = [(x, *next(every)) for x, _, _ in grid]
        points = [(x, values) for x, values, _ in places_of]
        effects = [effect for _, _, effect in places_of]
        answered = answers(
            question,
            points,
            without,
            None if of_half is None else of_half["accuracies"],
            development,
            scenario.seed,
            [baseline["design_effect"], *effects],
        )
        measured = [
            {"x": x, "accuracies": values, "design_effect": effect} for x, values, effect in places_of
        ]
        curves.append({"trust": trust, "points": measured, **answered})
    finals = [(curve["trust"], *_final(question, curve["answer"], runs.clients)) for curve in curves]
    tests: Sequence[list[float] | None] = [None] * len(finals)
    if len(runs.people.dataset.y_test):
        tests = [values for values, _ in _accuracies(job, runs, finals, on_run, tested=True)]
    for curve, (trust, epsilon, clients), accuracies in zip(curves, finals, tests, strict=True):
        planned = runs.plan(trust, epsilon, clients)
        curve |= {
            "epsilon": epsilon,
            "test": accuracies
            and {"clients": clients, "accuracies": accuracies, "accuracy": interval(accuracies)},
            "planned": planned.to_json(),
            "guarantees": claims_of(planned, tested=not development["public"]),
        }
    return {"baseline": baseline, "baseline_of_half": of_half, "curves": curves}


def _final(question: Question, answer: Mapping[str, Any], available: int) -> tuple[float, int]:
    """The epsilon and the clients of the run to measure on test records: the answer, if there is one."""
    value = answer["value"] if answer["value"] is not None else answer["largest"]
    if question.unknown == "epsilon":
        return value, question.clients or 0
    clients = value if question.unknown == "clients" else question.clients or 0
    return question.epsilon or 0.0, min(int(clients), available)


def _accuracies(
    job: StoredJob,
    runs: Runs,
    places: Sequence[tuple[str, float | None, int]],
    on_run: OnRun | None,
    *,
    tested: bool,
) -> list[tuple[list[float], float]]:
    """The accuracies of all repeats at each place, in order, and their mean design effect."""
    tasks = [task for place in places for task in runs.tasks(*place, tested=tested)]
    values: dict[int, tuple[float, float]] = {}
    for at, value in job.cells.complete(_run, _read, tasks, runs.workers):
        values[at] = value
        if on_run:
            on_run(tasks[at][0], len(values), len(tasks))
    repeats = runs.question.repeats
    results = []
    for start in range(0, len(tasks), repeats):
        accuracies, effects = zip(*(values[at] for at in range(start, start + repeats)), strict=True)
        results.append((list(accuracies), sum(effects) / repeats))
    return results


def _run(
    scenario: Scenario, planned: Plan, seed: int, repeat: int, tested: bool, allow_code: bool
) -> dict[str, float]:
    """Trains one repeat in any process, and measures it on development or test records."""
    people = population(scenario.data)
    split = DevelopmentSplit.of(people, seed)
    chosen = split.first(planned.population, seed + repeat)
    trained = train(scenario, planned, chosen, allow_code=allow_code)
    x, y = people.held_out("test") if tested else (split.x, split.y)
    effect = 1.0
    if split.sizes is not None and not tested:
        effect = design_effect(trained.right(split.people, split.rows), split.sizes)
    return {"accuracy": trained.accuracy(x, y), "design_effect": effect}


def _read(result: Any) -> tuple[float, float]:
    """Reads the accuracy of a run, and the design effect of the records that it is measured on.

    Raises:
        InputError: it is something else.
    """
    value = result.get("accuracy") if isinstance(result, Mapping) else None
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise InputError("the result of a run is not an accuracy")
    effect = result.get("design_effect")
    if not isinstance(effect, float) or not effect >= 1:
        raise InputError("the result of a run has no design effect")
    return value, effect


def _development(runs: Runs) -> dict[str, Any]:
    return {
        "clients": runs.clients,
        "total": runs.people.partition.clients,
        "source": runs.split.source,
        "records": len(runs.split.rows),
        "classes": runs.people.dataset.classes,
        "public": is_public(runs.scenario.tables()["data"]),
    }


def _document(job: StoredJob, runs: Runs, **measured: Any) -> dict[str, Any]:
    scenario = runs.scenario
    return PlanDocument.new(
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
        question=runs.question.to_json(),
        development=_development(runs),
        **measured,
        **closing(scenario),
        performance=Performance.of_process(job.seconds),
    ).to_json()
