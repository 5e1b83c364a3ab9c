"""A statistics scenario under each trust model, epsilon, number of clients and mechanism, repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.statistics import StatisticsClients
from fedprivacy.documents.answers import StatisticsCell
from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.io.environment import versions
from fedprivacy.report import write as write_report
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.cells import Corner, claims_of_cell, closing, corners_of
from fedprivacy.statistics.comparison import brief, summary
from fedprivacy.statistics.plan import plan_of
from scenarios.experiments.statistics_run import release
from scenarios.jobs.cell_store import CellTask
from scenarios.jobs.outcome import JobOutcome
from scenarios.jobs.stored_job import StoredJob, Work, open_job

BATCH = 10  # repeats of one cell task
OnRun = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Cell(Corner):
    """One point of a comparison, and its scenario."""

    scenario: Statistics

    def seeded(self, seed: int) -> Statistics:
        """The scenario of one repeat."""
        return self.scenario.model_copy(update={"seed": seed})


def cells_of(scenario: Statistics) -> Iterator[Cell]:
    """The cells of a comparison.

    Raises:
        InputError: if the scenario itself has no privacy to compare, or a cell is impossible.
    """
    for corner in corners_of(scenario):
        cell = scenario.cell(corner.trust, corner.epsilon, scenario.seed, corner.clients, corner.mechanism)
        plan_of(cell)  # impossible mechanisms are reported before any work
        yield Cell(corner.trust, corner.mechanism, corner.epsilon, corner.clients, cell)


def compare(
    scenario: Statistics,
    out: Path,
    *,
    workers: int,
    resume: Path | None = None,
    command: str = "",
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Runs every cell of a scenario's comparison and writes one document and one report.

    Args:
        scenario: The scenario with its `compare` section.
        out: Where the comparison's directory goes.
        workers: Parallel processes; the results do not depend on their number.
        resume: The directory of this comparison, to resume: finished blocks are kept.
        command: The command that reproduces it, for the record.
        on_run: Called with the cell's label, repeats done and repeats in all.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a cell cannot be run, or `out` not be written, or
            `resume` not be resumed.
        RunError: if nobody answers; what has finished is in the report.
    """
    cells = list(cells_of(scenario))
    key = StatisticsClients.of(scenario).streams.run  # the data are there before a folder is made
    work = Work("compare-statistics", scenario.name, scenario.to_toml(), versions(), data=key)
    with open_job(work, out, resume=resume, command=command) as job:
        if job.finished is not None:
            return job.finished
        return _work(job, scenario, cells, workers, on_run)


def _work(
    job: StoredJob, scenario: Statistics, cells: list[Cell], workers: int, on_run: OnRun | None
) -> dict[str, Any]:
    """Runs what has not finished, and closes the comparison."""
    results_by_cell: dict[int, dict[int, list[dict[str, Any]]]] = {}
    job_outcome = JobOutcome(job.path, job.again)
    try:
        with job_outcome:
            _run_all(cells, scenario, job, workers, results_by_cell, on_run)
    finally:
        documents = [_document(cells[number], results_by_cell[number]) for number in sorted(results_by_cell)]
        document = StatisticsComparison.new(
            name=scenario.name,
            path=str(job.path),
            status=job_outcome.status,
            error=job_outcome.error,
            command=job.command,
            started=job.started,
            versions=versions(),
            scenario=scenario.tables(),
            cells=documents,
            **closing(scenario, documents, job_outcome.status),
            performance=Performance.of_process(job.seconds),
        ).to_json()
        job.directory.write_document(document)
        write_report(document, job.path)
    return document


def _run_all(
    cells: list[Cell],
    scenario: Statistics,
    job: StoredJob,
    workers: int,
    results_by_cell: dict[int, dict[int, list[dict[str, Any]]]],
    on_run: OnRun | None,
) -> None:
    """Runs every repeat of every cell, and puts the results of each complete batch into `results_by_cell`."""
    repeats = range(scenario.seed, scenario.seed + scenario.compare.repeats)
    wanted = [
        (number, batch)
        for number, cell in enumerate(cells)
        for batch in ([repeats[:1]] if cell.trust == "none" else _batches(repeats))
    ]
    total, done, tasks = sum(len(batch) for _, batch in wanted), 0, list[CellTask]()
    for number, batch in wanted:
        key = f"{cells[number].label}, seeds {batch[0]} to {batch[-1]}, cell {number}"
        tasks.append((key, (cells[number], list(batch))))
    for place, results in job.cells.complete(_run_cell, list, tasks, min(workers, len(tasks))):
        number, batch = wanted[place]
        results_by_cell.setdefault(number, {}).update(zip(batch, results, strict=True))
        done += len(batch)
        if on_run:
            on_run(cells[number].label, done, total)


def _batches(repeats: range) -> list[range]:
    return [repeats[start : start + BATCH] for start in range(0, len(repeats), BATCH)]


def _run_cell(cell: Cell, seeds: list[int]) -> list[list[dict[str, Any]]]:
    """The queries' results for each seed, in any process."""
    plan = plan_of(cell.scenario)
    scenarios = map(cell.seeded, seeds)
    return [
        [brief(query) for query in release(seeded, StatisticsClients.of(seeded, plan)).queries]
        for seeded in scenarios
    ]


def _document(cell: Cell, results_by_seed: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    runs = [results_by_seed[seed] for seed in sorted(results_by_seed)]
    plan = plan_of(cell.scenario)
    return StatisticsCell.new(
        **claims_of_cell(cell, cell.scenario, plan),
        repeats=len(runs),
        queries=[summary([run[number] for run in runs]) for number in range(len(plan.asks))],
        seconds=round(sum(query["seconds"] for run in runs for query in run), 6),
    ).to_json()
