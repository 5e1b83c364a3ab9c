"""Clients trained per second on all cores, for three workloads.

    python -m benchmarks.cohort

The works are logistic regression on 64 numbers, an MLP 784-200-10 and a CNN with two 5x5 convolutions. Each
of 1000 users has 20 records; a round takes a fixed number of users, and each trains one epoch in batches of
10 by SGD. Updates are clipped to norm 1.0, and the server adds Gaussian noise of multiplier 1.0. All of it
goes the way of every run: Flower apps on the embedded engine, the ledger, the run's directory. Nothing is
evaluated but in the last round, on 20 records, and the first rounds, with the start of the worker processes,
are left out.

Beside it stands how fast torch multiplies matrices with as many processes of one thread each, measured before
and after each run, since machines change their speed; and for the MLP the share of that rate which training
reaches. It counts 6 floating-point operations for each parameter and record: a multiplication and an addition
forward, for the gradient of the weights, and for that of the inputs. The first layer does not need the last
of these, and clipping and sums are not counted: it measures speed, whatever arithmetic is left out.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.machine import check_device
from benchmarks.matrices import multipliers_on
from benchmarks.workload import CORES, EPOCHS, Workload

WORKS = {
    "lr": Workload(64, 'name = "logistic"'),
    "mlp": Workload(784, 'name = "mlp", hidden = [200]'),
    "cnn": Workload(784, 'name = "cnn", channels = [16, 32], kernel_size = 5, hidden = [56]'),
}
COHORTS = (10, 100, 1000)
SHARE = 0.6  # of the rate of matrix products, to reach with the MLP and the largest cohort
COUNTED = "mlp"  # the work whose operations are counted


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        work: "lr", "mlp" or "cnn".
        parameters: Of its model.
        cohort: The clients of a round.
        device: Where they are trained.
        workers: Processes that train; on a GPU 1.
        rounds: How many were timed.
        seconds: The median time of a round.
        fastest: The time of the fastest round.
        slowest: The time of the slowest one.
        clients_per_second: By the median.
        products: Floating-point operations per second of matrix products on the same cores.
        reached: Those of training; None where they are not counted.
        share: reached / products.
        way: How clients were trained, in words.
    """

    work: str
    parameters: int
    cohort: int
    device: str
    workers: int
    rounds: int
    seconds: float
    fastest: float
    slowest: float
    clients_per_second: float
    products: float
    reached: float | None
    share: float | None
    way: str


def rows(
    works: Sequence[str],
    cohorts: Sequence[int],
    device: str,
    workers: int,
    rounds: int,
    warmup: int,
    seconds: float,
) -> list[Row]:
    """Every measurement.

    Args:
        works: Their names.
        cohorts: The clients of a round.
        device: Where clients are trained and matrices multiplied.
        workers: Processes that train, and that multiply matrices.
        rounds: How many are timed.
        warmup: How many come before them.
        seconds: How long matrices are multiplied before and after each run.
    """
    results = []
    with tempfile.TemporaryDirectory() as folder, multipliers_on(device, workers) as multipliers:
        for name in works:
            data = WORKS[name].write_data(Path(folder))
            for cohort in cohorts:
                work = replace(WORKS[name], cohort=cohort, device=device)
                before = multipliers.rate(seconds)
                timing = work.train(data, Path(folder), workers, warmup + rounds).after(warmup)
                products = (before + multipliers.rate(seconds)) / 2
                speed = cohort / timing.median
                operations = 6.0 * timing.parameters * work.records * EPOCHS
                reached = operations * speed if name == COUNTED else None
                results.append(
                    Row(
                        name,
                        timing.parameters,
                        cohort,
                        device,
                        workers,
                        rounds,
                        timing.median,
                        min(timing.rounds),
                        max(timing.rounds),
                        speed,
                        products,
                        reached,
                        None if reached is None else reached / products,
                        timing.way,
                    )
                )
    return results


def show(rows: Sequence[Row]) -> None:
    """Prints the rows as a table."""
    table = Table(title="Clients trained per second; products: of matrices, on the same cores")
    for name in ("work", "parameters", "cohort", "workers", "ms a round", "fastest", "slowest"):
        table.add_column(name, justify="left" if name == "work" else "right", no_wrap=True)
    for name in ("clients a second", "products GFLOP/s", "reached", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(
            row.work,
            f"{row.parameters:,}",
            f"{row.cohort:,}",
            f"{row.workers}",
            f"{1e3 * row.seconds:.1f}",
            f"{1e3 * row.fastest:.1f}",
            f"{1e3 * row.slowest:.1f}",
            f"{row.clients_per_second:,.0f}",
            f"{row.products / 1e9:.0f}",
            "" if row.reached is None else f"{row.reached / 1e9:.0f}",
            "" if row.share is None else f"{row.share:.0%}",
            end_section=after is None or after.work != row.work,
        )
    console = Console(highlight=False, width=max(Console().width, 130))
    console.print(table)
    for way in dict.fromkeys(f"{row.work}: {row.way}." for row in rows):
        console.print(escape(way))


def missed(rows: Sequence[Row]) -> list[str]:
    """The workloads below their target share of the rate of matrix products."""
    return [
        f"{row.work}, cohort {row.cohort}: {row.share:.0%}, to reach {SHARE:.0%}"
        for row in rows
        if row.share is not None and row.cohort == COHORTS[-1] and row.share < SHARE
    ]


def main(
    work: Annotated[list[str] | None, typer.Option(help=f"{', '.join(WORKS)}.")] = None,
    cohort: Annotated[list[int] | None, typer.Option(min=1, max=1000, help="Clients of a round.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that train; one a core.")] = CORES,
    rounds: Annotated[int, typer.Option(min=1, help="How many are timed.")] = 12,
    warmup: Annotated[int, typer.Option(min=1, help="How many come before them.")] = 3,
    seconds: Annotated[float, typer.Option(min=0, help="Of matrix products, beside each run, twice.")] = 1.0,
    file: Annotated[Path | None, typer.Option("--json", help="Where the figures go as JSON.")] = None,
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Where clients are trained.")] = "cpu",
) -> None:
    """Measures how many clients a second a run trains; ends with exit code 1 where a target is missed."""
    if unknown := sorted(set(work or ()) - set(WORKS)):
        raise typer.BadParameter(f"{', '.join(unknown)}: none of {', '.join(WORKS)}.", param_hint="--work")
    check_device(device)
    workers = workers if device == "cpu" else 1
    results = rows(work or list(WORKS), cohort or COHORTS, device, workers, rounds, warmup, seconds)
    show(results)
    if file is not None:
        document = {"schema": 1, "cores": os.cpu_count(), "rows": [asdict(row) for row in results]}
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if less := missed(results):
        print(f"Slower than aimed at: {'; '.join(less)}.")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
