"""Local against central against none: the same scenario under each trust model, unit, epsilon and seed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fedprivacy.accounting.statement import check_record
from fedprivacy.blueprint import Blueprint, blueprint
from fedprivacy.candidates import Candidate
from fedprivacy.comparison import INTERVAL, difference, interval, mean_curve, mean_per_class, weakest
from fedprivacy.data.population import Population, population
from fedprivacy.errors import HeldError, InputError
from fedprivacy.finding import finding
from fedprivacy.lock import alone
from fedprivacy.plan import Plan
from fedprivacy.planning import candidates_of, plan_of
from fedprivacy.record import (
    OPERATOR_ONLY,
    SEEDS,
    TESTED_NOTE,
    TUNING_UNSTATED,
    broken_off,
)
from fedprivacy.report import write as write_report
from fedprivacy.run_streams import run_streams
from fedprivacy.runs import SCHEMA, RunDirectory, read_document
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.cells import Corner, corners, options
from fedprivacy.scenario.variations import Variation, variations
from fedprivacy.stopping import has_ended, words_of_runs
from fedprivacy.surroundings import peak_memory_mb, versions
from fedprivacy.training.trainers import trainer_of
from scenarios.cells import Job
from scenarios.ending import Ending
from scenarios.runner import resume as resume_run
from scenarios.runner import run
from scenarios.undertaking import Undertaking, Work, undertaking

OWN_OPERATOR_ONLY = (
    *(f"{part}[].{key}" for part in ("cells", "variations", "options") for key in ("seeds", "seconds")),
    "performance.clients_per_second",
    "performance.seconds",
    "error",
)
ONE_RUN_ALONE = (
    "Each epsilon is that of one run alone. Who sees the results of several cells or seeds has seen several "
    "releases of the same people. No epsilon here covers them together: cells with one seed share their "
    "cohorts, so that they can be compared in pairs, and may then cost more than the sum of their epsilons."
)
CELL_PRIVACY = (
    "unit", "noise_multiplier", "noise", "clipping_norm", "sampling", "max_participations", "population",
    "batches", "records_per_client",
)  # fmt: skip
OnRun = Callable[[str, int, int], None]


@dataclass
class Cell:
    """One trust model with one unit at one epsilon, and the run documents of its seeds that have finished.

    The corner has the unit, and the local mechanism, where a comparison names some, else None. A variation is
    what the scenario's own privacy was run with otherwise.
    """

    corner: Corner
    epsilon: float | None
    scenarios: dict[int, Scenario]
    plan: Plan
    candidates: list[Candidate] | None
    variation: Variation | None = None
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """A name for folders and progress."""
        if self.variation is not None:
            return f"{self.variation.name}-{self.variation.value}"
        corner = self.corner
        if corner.option is not None:
            return f"option-{corner.option}-epsilon-{self.epsilon:g}"
        kind = "-".join(part for part in (corner.trust, corner.unit, corner.mechanism) if part)
        return kind if self.epsilon is None else f"{kind}-epsilon-{self.epsilon:g}"


def cells_of(scenario: Scenario, model: Blueprint) -> list[Cell]:
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
    cells = []
    own = options(settings, scenario.privacy.trust)
    for corner in [*corners(settings, scenario.privacy.unit), *own]:
        for epsilon in (None,) if corner.trust == "none" else settings.epsilons:
            scenarios = {
                seed: scenario.cell(
                    corner.trust, epsilon, seed, corner.mechanism, corner.unit, option=corner.option
                )
                for seed in settings.seeds
            }
            first = scenarios[settings.seeds[0]]
            plan, candidates = plan_of(first, model), candidates_of(first, model)
            cells.append(Cell(corner, epsilon, scenarios, plan, candidates))
    return cells + _varied(scenario, model)


def _varied(scenario: Scenario, model: Blueprint) -> list[Cell]:
    """A cell for each value of a setting that is varied, under the scenario's own privacy."""
    settings, found = scenario.compare, []
    for one in variations(settings):
        scenarios = {seed: scenario.varied(one, seed) for seed in settings.seeds}
        first = scenarios[settings.seeds[0]]
        plan, candidates = plan_of(first, model), candidates_of(first, model)
        corner = Corner(first.privacy.trust)
        found.append(Cell(corner, first.privacy.epsilon, scenarios, plan, candidates, one))
    return found


def compare(
    scenario: Scenario,
    out: Path,
    *,
    workers: int,
    resume: Path | None = None,
    allow_code: bool = False,
    command: str = "",
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Runs every cell of a scenario's comparison and writes one document and one report.

    Args:
        scenario: The scenario with its `compare` section.
        out: Where the comparison's directory goes; the runs go below it.
        workers: Processes that run cells side by side; the numbers do not depend on it.
        resume: The directory of this comparison, to go on with: runs that have finished are kept.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        on_run: Called with the cell's label, runs done and runs in all, after each run.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a cell cannot be accounted, the model not be made or not
            be trained as asked, or `out` not be written, or `resume` not be gone on with.
        RunError: if a run fails; what has finished is in the report.
    """
    people = population(scenario.data)
    model = blueprint(scenario.model, people.features, people.dataset.classes, allow_code=allow_code)
    cells = cells_of(scenario, model)
    trainers = sorted({one.training.trainer for cell in cells for one in cell.scenarios.values()})
    for trainer in trainers:
        trainer_of(trainer, model.build(0), people.features, people.dataset.classes)
    work = Work(
        "compare",
        scenario.name,
        scenario.to_toml(compare=True),
        {name: at for trainer in trainers for name, at in versions(trainer).items()},
        data=run_streams(scenario, people, model.code).run,
        code=bool(model.code),
    )
    with undertaking(work, out, resume=resume, command=command) as task:
        if task.finished is not None:
            return task.finished
        return _work(task, scenario, cells, people, workers, allow_code, on_run)


def _work(
    task: Undertaking,
    scenario: Scenario,
    cells: list[Cell],
    people: Population,
    workers: int,
    allow_code: bool,
    on_run: OnRun | None,
) -> dict[str, Any]:
    """Runs the cells that have not finished, and closes the comparison."""
    ending = Ending(task.path, task.again)
    try:
        with ending:
            _run_all(cells, task, workers, allow_code, on_run)
    finally:
        _close_broken_runs(task.path, ending.status)
        document = {
            "schema": SCHEMA,
            "kind": "compare",
            "name": scenario.name,
            "path": str(task.path),
            "status": ending.status,
            "error": ending.error,
            "command": task.command,
            "started": task.started,
            "versions": versions(scenario.training.trainer),
            "scenario": scenario.tables(),
            **results(cells, task.path),
            "interval": INTERVAL,
            "operator_only": [*(f"runs: {path}" for path in OPERATOR_ONLY), *OWN_OPERATOR_ONLY, *SEEDS],
            "notes": [
                scenario.tuning or TUNING_UNSTATED,
                ONE_RUN_ALONE,
                *_stopping(cells),
                *[TESTED_NOTE] * people.tests_clients(scenario.evaluation.on),
            ],
            "performance": performance(cells, task.seconds),
        }
        task.directory.write_document(document)
        write_report(document, task.path)
    return document


def _close_broken_runs(base: Path, status: str) -> None:
    """Gives the runs whose process was ended the comparison's own status; they charged their whole plan."""
    for path in base.glob("*/*/run.json"):
        run = RunDirectory(path.parent)
        try:
            document = run.document()
        except InputError:  # damaged: it is played again when the comparison goes on
            continue
        if document.get("status") == "running":
            with suppress(HeldError), alone(path.parent):  # else somebody goes on with it
                run.write_document(broken_off(document, status, "the comparison was broken off"))


def results(cells: list[Cell], base: Path) -> dict[str, Any]:
    """The cells of the document and its finding, from the runs that have finished."""
    finished = [(cell, _cell_document(cell, base)) for cell in cells if cell.runs]
    plain = [one for cell, one in finished if cell.variation is None and cell.corner.option is None]
    varied = [
        {**one, "varied": {"key": cell.variation.name, "value": cell.variation.value}}
        for cell, one in finished
        if cell.variation is not None
    ]
    optional = [
        {**one, "option": cell.corner.option, "difference": _less_without(one, plain)}
        for cell, one in finished
        if cell.corner.option is not None
    ]
    return {
        "cells": plain,
        **({"variations": varied} if varied else {}),
        **({"options": optional} if optional else {}),
        "finding": finding(plain),
    }


def _less_without(one: dict[str, Any], plain: list[dict[str, Any]]) -> dict[str, float | None] | None:
    """By how many points an option's cell is more accurate than the one without it, seed by seed."""
    for cell in plain:
        if (cell["trust"], cell["epsilon"]) == (one["trust"], one["epsilon"]):
            gap = difference(one, cell)
            return None if gap is None else {"points": gap.points, "low": gap.low, "high": gap.high}
    return None


def _stopping(cells: list[Cell]) -> list[str]:
    """What is to be said of early stopping, where there is any: of each patience that was run."""
    found: dict[int, list[Cell]] = {}
    for cell in cells:
        patience = next(iter(cell.scenarios.values())).server.patience
        if patience is not None and cell.runs:
            found.setdefault(patience, []).append(cell)
    return [
        words_of_runs(
            [(len(run["rounds"]), cell.plan.rounds) for cell in own for run in cell.runs.values()],
            patience,
            noise=any(cell.plan.noise_words is not None for cell in own),
        )
        for patience, own in found.items()
    ]


def _cell_document(cell: Cell, base: Path) -> dict[str, Any]:
    runs = [cell.runs[seed] for seed in cell.scenarios if seed in cell.runs]
    accuracies = [run["final"]["accuracy"] for run in runs]
    privacy = runs[0]["privacy"]
    return {
        "trust": cell.corner.trust,
        "mechanism": privacy["mechanism"],
        "asked": cell.corner.mechanism,
        "candidates": None if cell.candidates is None else [one.to_json() for one in cell.candidates],
        "epsilon": cell.epsilon,
        "seeds": [run["seed"] for run in runs],
        "accuracy": interval(accuracies),
        "accuracies": accuracies,
        **{key: privacy[key] for key in CELL_PRIVACY},
        "guarantees": weakest([run["privacy"]["guarantees"] for run in runs]),
        "rounds": cell.plan.rounds,
        "rounds_played": [len(run["rounds"]) for run in runs],
        "curve": mean_curve([run["rounds"] for run in runs]),
        "per_class": mean_per_class([run["final"]["per_class"] for run in runs]),
        "scaling": runs[0]["scenario"]["data"]["scaling"],
        "training": runs[0]["scenario"]["training"],
        "server": runs[0]["scenario"]["server"],
        "seconds": round(sum(run["performance"]["seconds"] for run in runs), 3),
        "runs": [str(Path(run["path"]).relative_to(base)) for run in runs],
    }


def performance(cells: list[Cell], seconds: float) -> dict[str, Any]:
    """Seconds in all, clients trained per second, and the largest memory of any process."""
    runs = [run for cell in cells for run in cell.runs.values()]
    trained = sum(event["cohort"] for run in runs for event in run["rounds"])
    memory = [run["performance"]["peak_memory_mb"] for run in runs]
    return {
        "seconds": round(seconds, 3),
        "clients_per_second": round(trained / seconds, 1),
        "peak_memory_mb": max([peak_memory_mb(), *memory]),
    }


def _run_all(
    cells: list[Cell], task: Undertaking, workers: int, allow_code: bool, on_run: OnRun | None
) -> None:
    """Runs every seed of every cell that has not finished, `workers` at a time."""
    wanted = [(number, seed) for number, cell in enumerate(cells) for seed in cell.scenarios]
    jobs: list[Job] = []
    for number, seed in wanted:
        cell = cells[number]
        key = f"{cell.label}, seed {seed}, cell {number}"
        out, written = task.path / cell.label, task.cells.has(key)
        jobs.append((key, (cell.scenarios[seed], cell.plan, out, task.path, allow_code, written)))
    finished = task.cells.play(_run, partial(_document_of, task.path), jobs, min(workers, len(jobs)))
    for done, (at, document) in enumerate(finished, 1):
        number, seed = wanted[at]
        cells[number].runs[seed] = document
        if on_run:
            on_run(cells[number].label, done, len(jobs))


def _run(
    scenario: Scenario, plan: Plan, out: Path, base: Path, allow_code: bool, written: bool
) -> dict[str, str]:
    """One run of a cell, in any process: where it is below the comparison, and a digest of its document."""
    folder = _gone_on_with(scenario, plan, out, allow_code, written)
    if folder is None:
        folder = Path(run(scenario, out, plan=plan, allow_code=allow_code, report=False)["path"])
    return {"run": str(folder.relative_to(base)), "digest": _digest(folder)}


def _gone_on_with(scenario: Scenario, plan: Plan, out: Path, allow_code: bool, written: bool) -> Path | None:
    """Where a run of this cell is that had begun before, played to its end; None if there is none.

    One that has finished is taken as it is, if its process was killed before the cell was written down. If
    the cell was, the run is another than it was then. It is removed and played again, to the same numbers,
    and so is what cannot be gone on with; but nothing that another process works on.

    Raises:
        HeldError: another process works on it.
    """
    found = None
    for file in sorted(out.glob("*/scenario.toml")):
        folder = file.parent
        try:
            if file.read_text(encoding="utf-8") != scenario.to_toml():
                continue
        except FileNotFoundError:  # of another seed, whose process removes it just now
            continue
        if found is None and _is_whole(folder, scenario, plan, allow_code, written):
            found = folder
            continue
        with alone(folder):
            shutil.rmtree(folder)
    return found


def _is_whole(folder: Path, scenario: Scenario, plan: Plan, allow_code: bool, written: bool) -> bool:
    """Plays a run to its end, if it can be gone on with; says whether it has all that a cell is made of."""
    try:
        finished = RunDirectory(folder).document().get("status") == "finished"
        if finished and written:
            return False
        document = resume_run(folder, plan=plan, allow_code=allow_code, report=False)
        if finished:  # else it was made just now
            check_record(document, str(folder / "run.json"))
            same = document["plan"] == plan.to_json() and has_ended(
                document["rounds"], plan.rounds, scenario.server.patience
            )
            return same and "accuracy" in document["final"]
        return True
    except HeldError:
        raise
    except (InputError, LookupError, TypeError):
        return False


def _document_of(base: Path, said: dict[str, str]) -> dict[str, Any]:
    """The document of a finished run, if it is the one that was written then."""
    folder = base / said["run"]
    document = read_document(folder / "run.json")
    if _digest(folder) != said["digest"]:
        raise InputError(f"{folder / 'run.json'}: changed since the run has finished")
    return {**document, "path": str(folder)}


def _digest(folder: Path) -> str:
    return hashlib.blake2b((folder / "run.json").read_bytes(), digest_size=16).hexdigest()
