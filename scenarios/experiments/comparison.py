"""Compares trust models: one scenario under each trust model, unit, epsilon and seed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import Ledgers, PlannedWork
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Performance
from fedprivacy.errors import HeldError, InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.environment import peak_memory_mb, versions
from fedprivacy.io.folder import is_below
from fedprivacy.io.lock import alone
from fedprivacy.plan.from_scenario import candidates_of, plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import population
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.records.run_directory import RunDirectory, read_document
from fedprivacy.records.run_record import broken_off, scenario_digest
from fedprivacy.report import write as write_report
from fedprivacy.scenario import Code, Scenario
from fedprivacy.scenario.cells import Corner
from fedprivacy.scenario.loading import loads
from fedprivacy.scenario.variations import Variation
from fedprivacy.training.early_stopping import has_ended
from fedprivacy.training.features import share_features
from fedprivacy.training.model_spec import ModelSpec, model_of
from fedprivacy.training.trainers import trainer_of
from fedprivacy.verification import cells as records
from fedprivacy.verification import run as run_record
from fedprivacy.verification.cells import closing, places, results
from scenarios.budgets.planned_work import as_options, rounded_down, training_work, with_rounds
from scenarios.experiments.comparison_account import largest_comparison, options_of_cell
from scenarios.jobs.cell_store import CellTask
from scenarios.jobs.outcome import JobOutcome
from scenarios.jobs.stored_job import StoredJob, Work, open_job
from scenarios.runner import resume as resume_run
from scenarios.runner import run

OnRun = Callable[[str, int, int], None]


@dataclass
class Cell(records.Cell):
    """A cell with the plan of its runs, calibrated once."""

    plan: Plan = field(kw_only=True)


def cells_of(scenario: Scenario, model: ModelSpec) -> list[Cell]:
    """The cells of a comparison, each calibrated once. Seeds are paired over trust models.

    Raises:
        InputError: if the scenario itself has no privacy to compare.
        UnsupportedEvent: if no accountant answers for a cell.
    """
    settings = scenario.compare
    if scenario.privacy.trust == "none" and set(settings.trusts) != {"none"}:
        raise InputError(
            'privacy.trust = "none": a comparison takes delta and the clipping norm from the scenario '
            'itself. Set privacy.trust = "central"; trust "none" is one of the cells all the same.'
        )
    _check_groups(scenario)
    if scenario.training.personal is not None:
        raise InputError(
            "training.personal: a comparison measures the model that all clients share. Run the scenario by "
            "itself, or remove it."
        )
    cells = []
    for corner, epsilon, variation in places(scenario):
        scenarios = {seed: _scenario(scenario, corner, epsilon, variation, seed) for seed in settings.seeds}
        first = scenarios[settings.seeds[0]]
        plan, candidates = plan_of(first, model), candidates_of(first, model)
        considered = None if candidates is None else [candidate.to_json() for candidate in candidates]
        if variation is not None:
            epsilon = first.privacy.epsilon
        cells.append(Cell(corner, epsilon, scenarios, considered, variation, scenario.privacy, plan=plan))
    return cells


def _check_groups(scenario: Scenario) -> None:
    """Refuses epsilons of clients in no group that are below those of a group."""
    least = min(scenario.compare.epsilons)
    for name, group in (scenario.privacy.groups or {}).items():
        if group.epsilon is not None and group.epsilon > least:
            raise InputError(
                f"compare.epsilons: {least:g} is below privacy.groups.{name}.epsilon = {group.epsilon:g}. "
                "They are budgets of the clients in no group, and a group is stricter. Leave it out: --set "
                "compare.epsilons=[...]."
            )


def _scenario(
    scenario: Scenario, corner: Corner, epsilon: float | None, variation: Variation | None, seed: int
) -> Scenario:
    """The scenario of one run of a cell."""
    if variation is not None:
        return scenario.varied(variation, seed)
    if corner.ablation is not None:
        return scenario.ablated(corner, seed)
    return scenario.cell(corner.trust, epsilon, seed, corner.mechanism, corner.unit, option=corner.option)


def compare(
    scenario: Scenario,
    out: Path,
    *,
    workers: int,
    resume: Path | None = None,
    allow_code: bool = False,
    command: str = "",
    on_run: OnRun | None = None,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs every cell of a scenario's comparison and writes one document and one report.

    Args:
        scenario: The scenario with its `compare` section.
        out: Where the comparison's directory goes; the runs go below it.
        workers: Parallel processes; the results do not depend on their number.
        resume: The directory of this comparison, to resume: finished runs are kept.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        on_run: Called with the cell's label, runs done and runs in all, after each run.
        charge: The account that is charged, for all cells together, before the first run.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a cell cannot be accounted, the model not be made or not
            be trained as asked, or `out` not be written, or `resume` not be resumed.
        RunError: if a run fails; the report has the finished cells.
    """
    people = population(scenario.data)
    data = people.dataset
    model = model_of(scenario, people, allow_code=allow_code)
    cells = cells_of(scenario, model)
    share_features(model.build(0), people.dataset.x, people.dataset.x_test)
    for cell in cells:
        if cell.plan.delta is not None:
            cell.plan.spent()  # forked workers inherit the account, and need no accountant of their own
    trainers = sorted({run.training.trainer for cell in cells for run in cell.scenarios.values()})
    for trainer in trainers:
        trainer_of(trainer, model.build(0), people.features, data.classes, data.task)
    work = Work(
        "compare",
        scenario.name,
        scenario.to_toml(compare=True),
        {name: at for trainer in trainers for name, at in versions(trainer).items()},
        data=run_streams(scenario, people, model.code).run,
        code=isinstance(scenario.model, Code),
    )

    def works() -> list[PlannedWork]:
        return [_planned(scenario, cell, run, model) for cell in cells for run in cell.scenarios.values()]

    with (
        ChargedRun(charge, works, resume, largest_comparison(scenario.compare, cells)) as charged,
        open_job(work, out, resume=resume, command=command, prepare=charged.begin) as job,
    ):
        charged.hold(job.directory)
        if job.finished is not None:
            return job.finished
        return _work(job, scenario, cells, workers, allow_code, on_run)


def _planned(scenario: Scenario, cell: Cell, run: Scenario, model: ModelSpec) -> PlannedWork:
    """What a run of a cell releases at most; with fewer rounds it is a comparison of one run."""
    people = population(run.data)
    work = training_work(run, cell.plan, people, run_streams(run, people, model.code).run)
    if cell.part != "cells" or cell.epsilon is None:
        return replace(work, first=None)

    def options(rounds: int) -> list[str]:
        epsilon = rounded_down(with_rounds(cell.plan, rounds).spent().epsilon)
        return [f"server.rounds={rounds}", *options_of_cell(scenario.compare, cell, epsilon, run.seed)]

    def ledgers(rounds: int) -> Ledgers:
        smaller = loads(scenario.to_toml(compare=True), scenario.name, options(rounds))
        assert isinstance(smaller, Scenario)
        (fewer,) = cells_of(smaller, model)
        (only,) = fewer.scenarios.values()
        return training_work(only, fewer.plan, people, work.noise_key).ledgers

    return replace(work, settings=lambda rounds: as_options(options(rounds)), ledgers_of_settings=ledgers)


def _work(
    job: StoredJob,
    scenario: Scenario,
    cells: list[Cell],
    workers: int,
    allow_code: bool,
    on_run: OnRun | None,
) -> dict[str, Any]:
    """Runs the cells that have not finished, and closes the comparison."""
    job_outcome = JobOutcome(job.path, job.again)
    try:
        with job_outcome:
            _run_all(cells, job, workers, allow_code, on_run)
    finally:
        _close_broken_runs(job.path, job_outcome.status)
        document = CompareDocument.new(
            name=scenario.name,
            path=str(job.path),
            status=job_outcome.status,
            error=job_outcome.error,
            command=job.command,
            started=job.started,
            versions=versions(scenario.training.trainer),
            scenario=scenario.tables(),
            scenario_digest=scenario_digest(job.directory),
            **results(cells, job.path),
            **closing(scenario, cells, job_outcome.status),
            performance=performance(cells, job.seconds),
        ).to_json()
        job.directory.write_document(document)
        write_report(document, job.path)
    return document


def _close_broken_runs(base: Path, status: str) -> None:
    """Gives the runs whose process was ended the comparison's own status; they charged their whole plan."""
    for path in base.glob("*/*/run.json"):
        run = RunDirectory(path.parent)
        try:
            document = run.document()
        except InputError:  # damaged: it is repeated when the comparison resumes
            continue
        if document.get("status") == "running":
            with suppress(HeldError), alone(path.parent):  # else another process could resume it
                run.write_document(broken_off(document, status, "the comparison was broken off"))


def performance(cells: list[Cell], seconds: float) -> Performance:
    """Seconds in all, clients trained per second, and the largest memory of any process."""
    runs = [run for cell in cells for run in cell.runs.values()]
    trained = sum(event["cohort"] for run in runs for event in run["rounds"])
    memory = [run["performance"]["peak_memory_mb"] for run in runs]
    return Performance.new(
        seconds=round(seconds, 3),
        clients_per_second=round(trained / seconds, 1),
        peak_memory_mb=max([peak_memory_mb(), *memory]),
    )


def _run_all(cells: list[Cell], job: StoredJob, workers: int, allow_code: bool, on_run: OnRun | None) -> None:
    """Runs every seed of every cell that has not finished, `workers` at a time."""
    wanted = [(number, seed) for number, cell in enumerate(cells) for seed in cell.scenarios]
    tasks: list[CellTask] = []
    for number, seed in wanted:
        cell = cells[number]
        key = f"{cell.label}, seed {seed}, cell {number}"
        out, written = job.path / cell.label, job.cells.has(key)
        tasks.append((key, (cell.scenarios[seed], cell.plan, out, job.path, allow_code, written)))
    finished = job.cells.complete(_run, partial(_document_of, job.path), tasks, min(workers, len(tasks)))
    for done, (at, document) in enumerate(finished, 1):
        number, seed = wanted[at]
        cells[number].runs[seed] = document
        if on_run:
            on_run(cells[number].label, done, len(tasks))


def _run(
    scenario: Scenario, plan: Plan, out: Path, base: Path, allow_code: bool, written: bool
) -> dict[str, str]:
    """One run of a cell, in any process: where it is below the comparison, and a digest of its document."""
    folder = _stored_run(scenario, plan, out, allow_code, written)
    if folder is None:
        folder = Path(run(scenario, out, plan=plan, allow_code=allow_code, report=False)["path"])
    return {"run": str(folder.relative_to(base)), "digest": _digest(folder)}


def _stored_run(scenario: Scenario, plan: Plan, out: Path, allow_code: bool, written: bool) -> Path | None:
    """Completes an earlier run of this cell and returns its path; None if none exists.

    One that has finished is taken as it is, if its process was killed before the cell was written down. If
    the cell was, the run is another than it was then. It is removed and played again, to the same numbers,
    and so is what cannot be resumed; but nothing that another process works on.

    Raises:
        HeldError: another process works on it.
    """
    unfinished = None
    for file in sorted(out.glob("*/scenario.toml")):
        folder = file.parent
        try:
            if bounded_json.read_bytes(file, follow=False) != scenario.to_toml().encode():
                continue
        except FileNotFoundError:  # of another seed, whose process removes it just now
            continue
        if unfinished is None and _is_whole(folder, scenario, plan, allow_code, written):
            unfinished = folder
            continue
        with alone(folder):
            shutil.rmtree(folder)
    return unfinished


def _is_whole(folder: Path, scenario: Scenario, plan: Plan, allow_code: bool, written: bool) -> bool:
    """Completes a resumable run; returns whether it has everything that a cell needs."""
    try:
        finished = RunDirectory(folder).document().get("status") == "finished"
        if finished and written:
            return False
        document = resume_run(folder, plan=plan, allow_code=allow_code, report=False)
        if finished:  # else it was made just now
            run_record.check(document, folder, str(folder / "run.json"))
            same = document["plan"] == plan.to_json() and has_ended(
                document["rounds"], plan.rounds, scenario.server.patience
            )
            return same and "accuracy" in document["final"]
        return True
    except HeldError:
        raise
    except (InputError, LookupError, TypeError):
        return False


def _document_of(base: Path, differing: dict[str, str]) -> dict[str, Any]:
    """The document of a finished run, if it is the one that was written then."""
    if not is_below(differing["run"]):
        raise InputError(f"{base}: a cell names the run {differing['run']!r}, which is not below it")
    folder = base / differing["run"]
    document = read_document(folder / "run.json")
    if _digest(folder) != differing["digest"]:
        raise InputError(f"{folder / 'run.json'}: changed since the run has finished")
    return {**document, "path": str(folder)}


def _digest(folder: Path) -> str:
    return hashlib.blake2b(bounded_json.read_bytes(folder / "run.json"), digest_size=16).hexdigest()
