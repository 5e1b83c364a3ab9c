"""Growth of a run's time and memory with clients, records, parameters and rounds.

    python -m benchmarks.cost_model --out DIR

Each is changed alone, over two orders of magnitude, for the logistic regression and the MLP of `cohort`, by
the way of every run (`workload`). Of clients, records and parameters it is the median time of a round, of
rounds the time of the whole run. Memory is the most that the process of the run held, and the most that one
of its workers did, which shares the data with it. Each run is in a process of its own.

To the figures a cost is fitted that is fixed and one for each unit, neither below 0, with the least squared
relative error.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.cohort import WORKS
from benchmarks.cost_law import Law, Row
from benchmarks.cost_model_plot import draw
from benchmarks.workload import CORES, Timing, Workload
from fedprivacy.io.environment import peak_memory_bytes

Result = TypeVar("Result")

HIDDEN = (2, 6, 20, 63, 200)  # of an MLP 784-h-10, for its parameters
AXES: dict[str, tuple[int, ...]] = {
    "clients": (10, 32, 100, 316, 1000),
    "records": (2, 6, 20, 63, 200),
    "parameters": HIDDEN,
    "rounds": (3, 10, 30, 100, 300),
}
UNITS = {"clients": "client", "records": "record", "parameters": "parameter", "rounds": "round"}
COHORT, USERS = 100, 200  # where they are not what changes


def points(axis: str, works: Sequence[str]) -> Iterator[tuple[str, int, Workload]]:
    """The runs along an axis: the name of the work, the value (of parameters, the hidden units), the work."""
    for name in works:
        base = replace(WORKS[name], users=USERS, cohort=COHORT)
        for value in AXES[axis]:
            if axis == "clients":
                yield name, value, replace(base, users=max(AXES[axis]), cohort=value)
            elif axis == "records":
                yield name, value, replace(base, records=value)
            elif axis == "rounds":
                yield name, value, base
            elif name == "mlp":
                yield name, value, replace(base, model=f'name = "mlp", hidden = [{value}]')


def rows(axes: Sequence[str], works: Sequence[str], rounds: int, warmup: int, workers: int) -> list[Row]:
    """Every run.

    Args:
        axes: What is changed.
        works: Their names.
        rounds: How many are timed, but along "rounds".
        warmup: How many come before them.
        workers: Processes that train.
    """
    results = []
    for axis in axes:
        for name, value, work in points(axis, works):
            print(f"{axis}: {name}, {value}", file=sys.stderr)
            count = value if axis == "rounds" else warmup + rounds
            with tempfile.TemporaryDirectory() as folder:
                data = _fresh(work.write_data, Path(folder))
                timing, peak, worker_peak = _fresh(_train, work, data, Path(folder), workers, count)
            seconds = timing.total if axis == "rounds" else timing.after(warmup).median
            units = timing.parameters if axis == "parameters" else value
            results.append(Row(axis, name, units, seconds, peak, worker_peak))
    return results


def _fresh(work: Callable[..., Result], *given: object) -> Result:
    """Measures in a separate process, whose memory is counted from its start."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def _train(
    work: Workload, data: Path, out: Path, workers: int, rounds: int
) -> tuple[Timing, float, float | None]:
    timing = work.train(data, out, workers, rounds)
    unit = 1 if sys.platform == "darwin" else 1024
    worker = float(unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return timing, float(peak_memory_bytes()), worker or None


def laws(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[Law, Law]]:
    """Of each axis and work, the laws of the seconds and of the bytes of the process of the run."""
    fitted = {}
    for place in dict.fromkeys((row.axis, row.work) for row in rows):
        group = [row for row in rows if (row.axis, row.work) == place]
        x = [row.value for row in group]
        fitted[place] = Law.of(x, [row.seconds for row in group]), Law.of(x, [row.peak for row in group])
    return fitted


def show(rows: Sequence[Row]) -> None:
    """Prints the rows as a table, and the laws."""
    fitted = laws(rows)
    table = Table(title="What a run costs; by law: fixed + so much for each unit")
    for name in ("axis", "work", "units", "ms", "by law", "MB", "by law", "MB of a worker"):
        table.add_column(name, justify="left" if name in ("axis", "work") else "right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        seconds, peak = (law.at(row.value) for law in fitted[row.axis, row.work])
        table.add_row(
            row.axis,
            row.work,
            f"{row.value:,}",
            f"{1e3 * row.seconds:,.1f}",
            f"{1e3 * seconds:,.1f}",
            f"{row.peak / 1e6:,.0f}",
            f"{peak / 1e6:,.0f}",
            "" if row.worker_peak is None else f"{row.worker_peak / 1e6:,.0f}",
            end_section=after is None or (after.axis, after.work) != (row.axis, row.work),
        )
    console = Console(highlight=False, width=max(Console().width, 110))
    console.print(table)
    for (axis, work), (time, memory) in fitted.items():
        console.print(
            f"{axis}, {work}: {1e3 * time.fixed:,.4g} ms and {1e6 * time.each:,.4g} us a {UNITS[axis]}; "
            f"{memory.fixed / 1e6:.0f} MB and {memory.each / 1e3:.3g} kB a {UNITS[axis]}."
        )


def write(rows: Sequence[Row], folder: Path) -> None:
    """Writes the rows and laws as cost_model.json, and the picture as .svg and .png."""
    fitted = laws(rows)
    laws_written = [
        {"axis": axis, "work": work, "seconds": asdict(time), "bytes": asdict(memory)}
        for (axis, work), (time, memory) in fitted.items()
    ]
    document = {
        "schema": 1,
        "cores": os.cpu_count(),
        "rows": [asdict(row) for row in rows],
        "laws": laws_written,
    }
    (folder / "cost_model.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draw(rows, fitted, folder / "cost_model")


def main(
    out: Annotated[Path, typer.Option(help="Where the figures and the picture go.")],
    axis: Annotated[list[str] | None, typer.Option(help=f"{', '.join(AXES)}.")] = None,
    work: Annotated[list[str] | None, typer.Option(help="lr, mlp.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How many are timed.")] = 10,
    warmup: Annotated[int, typer.Option(min=1, help="How many come before them.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Processes that train; one a core.")] = CORES,
) -> None:
    """Measures what a run costs along each axis."""
    for given, known, hint in ((axis, AXES, "--axis"), (work, ("lr", "mlp"), "--work")):
        if unknown := sorted(set(given or ()) - set(known)):
            raise typer.BadParameter(f"{', '.join(unknown)}: none of {', '.join(known)}.", param_hint=hint)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(
            f"{out}: {error.strerror}. Choose a folder that you may write to."
        ) from error
    results = rows(axis or list(AXES), work or ["lr", "mlp"], rounds, warmup, workers)
    show(results)
    write(results, out)


if __name__ == "__main__":
    typer.run(main)
