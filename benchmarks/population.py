"""Memory and time for each client of a population, sampled or not.

    python -m benchmarks.population

The clients of a round cost what `benchmarks.cost_model` measures; this is the rest, which grows with the
population: the index of whose records are whose, the draw of a cohort, the counts of answers, and where
these go. Two populations, one ten times the other, show that each is linear. Bytes are those that are held,
or for a draw those that are held while it lasts; times are the least of several.
"""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from flwr.app import Array, ArrayRecord
from rich.console import Console
from rich.table import Table

from clients.fleet import Budgets
from fedprivacy.population.partition import one_per_example
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from fedprivacy.sampling.cohorts import FixedSampling, PoissonSampling

POPULATIONS = (1_000_000, 10_000_000)
COHORT = 10_000
_REPEATS = 3


@dataclass(frozen=True)
class Row:
    """One part.

    Args:
        what: The part.
        often: How often it is done.
        population: Clients.
        held: Bytes a client.
        nanoseconds: A client.
    """

    what: str
    often: str
    population: int
    held: float
    nanoseconds: float


def rows(populations: tuple[int, ...] = POPULATIONS) -> list[Row]:
    """Measures every part with each population."""
    return [row for population in populations for row in _rows(population)]


def _rows(population: int) -> list[Row]:
    stream = Streams(1).stream("population")
    rate = min(1.0, COHORT / population)
    budgets = Budgets.fresh(population, 4)

    def through_a_message() -> int:
        """A node's state is read, and written anew, with every message that it answers."""
        record = ArrayRecord({"counts": Array(budgets.counts), "last": Array(budgets.last)})
        return sum(record[name].numpy().nbytes for name in ("counts", "last"))

    def checkpoint() -> int:
        with tempfile.TemporaryDirectory() as folder:
            directory = RunDirectory.create(Path(folder), "population", "")
            tensors = {"counts": budgets.counts, "last": budgets.last, "ledger": budgets.counts}
            directory.save_checkpoint(Checkpoint(1, tensors, {}))
            return sum(file.stat().st_size for file in directory.path.rglob("*.safetensors"))

    parts: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "index of records, one a client",
            "a run",
            lambda: one_per_example(population, public_fraction=0.0, seed=1),
        ),
        ("Poisson cohort", "a round", lambda: PoissonSampling(rate).draw(population, stream)),
        (
            "cohort of fixed size",
            "a round",
            lambda: FixedSampling(min(COHORT, population)).draw(population, stream),
        ),
        ("budgets through a message (local)", "a message", through_a_message),
        ("checkpoint of budgets (local)", "a round", checkpoint),
    ]
    return [
        Row(what, often, population, _peak(work) / population, _least(work) / population * 1e9)
        for what, often, work in parts
    ]


def _least(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def _peak(work: Callable[[], Any]) -> int:
    """The most bytes that were held while it worked."""
    tracemalloc.start()
    try:
        _result = work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def show(rows: list[Row]) -> None:
    """Prints the table."""
    table = Table(title="What each client of the population costs, asked or not")
    for heading in ("part", "how often", "population", "bytes a client", "ns a client"):
        table.add_column(heading, justify="left" if heading in ("part", "how often") else "right")
    for row in rows:
        table.add_row(row.what, row.often, f"{row.population:,}", f"{row.held:.1f}", f"{row.nanoseconds:.1f}")
    Console().print(table)


def main(
    population: Annotated[list[int] | None, typer.Option(min=1000, help="Clients.")] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Where the figures go as JSON.")] = None,
) -> None:
    """Measures what the population of a run costs."""
    results = rows(tuple(population or POPULATIONS))
    show(results)
    if file is not None:
        document = {"schema": 1, "rows": [asdict(row) for row in results]}
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
