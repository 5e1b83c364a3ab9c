"""A statistics scenario under each trust model, epsilon, number of clients and mechanism, repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.respondents import Respondents
from fedprivacy.accounting.statement import guarantees
from fedprivacy.analytics.comparison import INTERVAL, brief, finding, slope_by_trust, slopes, summary
from fedprivacy.analytics.ledger import ledger
from fedprivacy.analytics.plan import plan_of
from fedprivacy.analytics.record import SIZES_NOTE, TRUTH_NOTE
from fedprivacy.analytics.shuffled import shuffled
from fedprivacy.errors import InputError
from fedprivacy.record import SEEDS
from fedprivacy.report import write as write_report
from fedprivacy.runs import SCHEMA
from fedprivacy.scenario.sections import Trust
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.surroundings import peak_memory_mb, versions
from scenarios.asking import play
from scenarios.cells import Job
from scenarios.ending import Ending
from scenarios.undertaking import Undertaking, Work, undertaking

ONE_RUN_ALONE = (
    "Each epsilon is that of one run alone: who sees the results of several cells or repeats has seen "
    "several releases about the same people, which cost the sum of their epsilons at most."
)
OPERATOR_ONLY = ("cells[].seconds", "performance.seconds", "error", *SEEDS)
# What tells how many clients there are, where one may be there or not: see `SIZES_NOTE`.
SIZES = (
    "scenario.data.clients", "scenario.compare.clients", "cells[].clients", "cells[].ledger.population",
    "performance.peak_memory_mb",
)  # fmt: skip
# Errors against the true values, and what is made of them.
SIMULATION_ONLY = ("cells[].queries", "finding", "slope", "slopes")
BATCH = 10  # repeats that one process plays before the next may take over
OnRun = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Cell:
    """One point of a comparison; `asked` is the mechanism where several are compared, else None."""

    trust: Trust
    asked: str | None
    epsilon: float | None
    clients: int | None
    scenario: Statistics

    @property
    def label(self) -> str:
        """A name for progress."""
        parts = [self.trust, self.asked, self.epsilon and f"epsilon {self.epsilon:g}"]
        parts.append(self.clients and f"{self.clients:,} clients")
        return ", ".join(str(part) for part in parts if part)

    def seeded(self, seed: int) -> Statistics:
        """The scenario of one repeat."""
        return self.scenario.model_copy(update={"seed": seed})


def cells_of(scenario: Statistics) -> Iterator[Cell]:
    """The cells of a comparison.

    Raises:
        InputError: if the scenario itself has no privacy to compare, or a cell cannot be played.
    """
    settings = scenario.compare
    if scenario.privacy.trust == "none" and set(settings.trusts) != {"none"}:
        raise InputError(
            'privacy.trust = "none": a comparison takes delta from the scenario itself. '
            'Set privacy.trust = "central"; trust "none" is one of the cells all the same.'
        )
    for trust in settings.trusts:
        mechanisms: tuple[str, ...] = {"local": settings.local, "central": settings.central}.get(trust, ())
        for asked in mechanisms or (None,):
            for epsilon in (None,) if trust == "none" else settings.epsilons:
                for clients in settings.clients or (None,):
                    cell = scenario.cell(trust, epsilon, scenario.seed, clients, asked)
                    plan_of(cell)  # what cannot be had is said before anything is played
                    yield Cell(trust, asked, epsilon, clients, cell)


def compare(
    scenario: Statistics,
    out: Path,
    *,
    workers: int,
    resume: Path | None = None,
    command: str = "",
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Plays every cell of a scenario's comparison and writes one document and one report.

    Args:
        scenario: The scenario with its `compare` section.
        out: Where the comparison's directory goes.
        workers: Processes that play side by side; the numbers do not depend on it.
        resume: The directory of this comparison, to go on with: what has finished is kept.
        command: The command that reproduces it, for the record.
        on_run: Called with the cell's label, repeats done and repeats in all.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a cell cannot be played, or `out` not be written, or
            `resume` not be gone on with.
        RunError: if nobody answers; what has finished is in the report.
    """
    cells = list(cells_of(scenario))
    key = Respondents.of(scenario).streams.run  # the data are there before a folder is made
    work = Work("compare-statistics", scenario.name, scenario.to_toml(), versions(), data=key)
    with undertaking(work, out, resume=resume, command=command) as task:
        if task.finished is not None:
            return task.finished
        return _work(task, scenario, cells, workers, on_run)


def _work(
    task: Undertaking, scenario: Statistics, cells: list[Cell], workers: int, on_run: OnRun | None
) -> dict[str, Any]:
    """Plays what has not finished, and closes the comparison."""
    played: dict[int, dict[int, list[dict[str, Any]]]] = {}
    ending = Ending(task.path, task.again)
    try:
        with ending:
            _play_all(cells, scenario, task, workers, played, on_run)
    finally:
        documents = [_document(cells[number], played[number]) for number in sorted(played)]
        found = slopes(documents)
        private_size = scenario.privacy.adjacency != "replace-one"
        document = {
            "schema": SCHEMA,
            "kind": "compare-statistics",
            "name": scenario.name,
            "path": str(task.path),
            "status": ending.status,
            "error": ending.error,
            "command": task.command,
            "started": task.started,
            "versions": versions(),
            "scenario": scenario.tables(),
            "cells": documents,
            "slope": slope_by_trust(found),
            "slopes": found,
            "finding": finding(documents, found, scenario.tables()["privacy"]) if documents else None,
            "interval": INTERVAL,
            "operator_only": list(OPERATOR_ONLY),
            "simulation_only": [*SIMULATION_ONLY, *(SIZES if private_size else ())],
            "notes": [TRUTH_NOTE, ONE_RUN_ALONE, *([SIZES_NOTE] if private_size else [])],
            "performance": {
                "seconds": round(task.seconds, 3),
                "peak_memory_mb": peak_memory_mb(),
            },
        }
        task.directory.write_document(document)
        write_report(document, task.path)
    return document


def _play_all(
    cells: list[Cell],
    scenario: Statistics,
    task: Undertaking,
    workers: int,
    played: dict[int, dict[int, list[dict[str, Any]]]],
    on_run: OnRun | None,
) -> None:
    """Plays every repeat of every cell, and puts the results of each whole batch into `played`."""
    repeats = range(scenario.seed, scenario.seed + scenario.compare.repeats)
    wanted = [
        (number, batch)
        for number, cell in enumerate(cells)
        for batch in ([repeats[:1]] if cell.trust == "none" else _batches(repeats))
    ]
    total, done, jobs = sum(len(batch) for _, batch in wanted), 0, list[Job]()
    for number, batch in wanted:
        key = f"{cells[number].label}, seeds {batch[0]} to {batch[-1]}, cell {number}"
        jobs.append((key, (cells[number], list(batch))))
    for job, results in task.cells.play(_play, list, jobs, min(workers, len(jobs))):
        number, batch = wanted[job]
        played.setdefault(number, {}).update(zip(batch, results, strict=True))
        done += len(batch)
        if on_run:
            on_run(cells[number].label, done, total)


def _batches(repeats: range) -> list[range]:
    return [repeats[start : start + BATCH] for start in range(0, len(repeats), BATCH)]


def _play(cell: Cell, seeds: list[int]) -> list[list[dict[str, Any]]]:
    """The queries' results for each seed, in any process."""
    plan = plan_of(cell.scenario)
    scenarios = map(cell.seeded, seeds)
    return [[brief(query) for query in play(one, Respondents.of(one, plan)).queries] for one in scenarios]


def _document(cell: Cell, played: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    runs = [played[seed] for seed in sorted(played)]
    plan = plan_of(cell.scenario)
    charged = ledger(plan, len(plan.asks), held=True)
    return {
        "trust": cell.trust,
        "asked": cell.asked,
        "epsilon": cell.epsilon,
        "clients": cell.scenario.population,
        "repeats": len(runs),
        "queries": [summary([run[number] for run in runs]) for number in range(len(plan.asks))],
        "guarantees": [guarantee.to_json() for guarantee in guarantees(charged)],
        "shuffled": shuffled(plan) if cell.scenario.privacy.shuffled else None,
        "ledger": charged,
        "seconds": round(sum(query["seconds"] for run in runs for query in run), 6),
    }
