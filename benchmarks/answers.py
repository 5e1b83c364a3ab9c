"""Measures how fast answers for bits and categories are drawn, relative to raw random numbers.

    python -m benchmarks.answers

Each time is the least of several runs, and a ratio is of times in one process. With a million clients, on
one core of a busy 2-core machine (numpy 2.4, Philox streams as in a run), over five runs:

    randomised response, bits             0.29 to 0.40 times a uniform number and a comparison each
    randomised response, numbers          1.9 to 2.2 times the same
    k-ary, 10,000 items                   0.56 to 0.86 times a uniform number and an integer each
    Hadamard response, 10,000 items       1.5 to 2.0 times the same
    counting the reports of either        0.2 to 0.4 times the same
    SUE and OUE, 1000 items               4.4 to 8.3 s, and 0.6 to 1.3 s to count; 253 MB at most

Bits take less than the numbers that they are compared with, since a random byte decides nearly all.
The unary rows are measured in a process of their own each, whose peak memory is printed: with everything
that was imported, the values and the reports.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from fedprivacy.io.environment import peak_memory_bytes
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import HadamardResponse, KaryRandomizedResponse
from fedprivacy.mechanisms.unary import OptimizedUnary, SymmetricUnary
from fedprivacy.randomness.streams import Streams

EPSILON = 1.0
LIMIT = 3.0  # times the draws that are needed
MEMORY = 1e9  # bytes, for unary encodings


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        what: The mechanism and its part.
        seconds: For all clients.
        beside: What it is compared with; "" for nothing.
        ratio: seconds / those of the comparison.
        peak: Bytes, the most that the process held; None where it was not measured.
    """

    what: str
    seconds: float
    beside: str = ""
    ratio: float | None = None
    peak: float | None = None

    @property
    def within(self) -> bool:
        """Whether it is within the limits."""
        return (self.ratio is None or self.ratio <= LIMIT) and (self.peak is None or self.peak < MEMORY)


def rows(clients: int, items: int, unary_items: int, repeats: int = 7) -> list[Row]:
    """Every measurement.

    Args:
        clients: How many answer.
        items: Categories of k-ary randomised response and Hadamard response.
        unary_items: Categories of the unary encodings.
        repeats: Runs of which the least time counts.
    """
    stream = Streams(1).stream("answers")
    bits = stream.integers(0, 2, clients, dtype=np.uint8)
    numbers = stream.random(clients)
    values = stream.integers(0, items, clients)
    response = RandomizedResponse(EPSILON)
    kary, hadamard = KaryRandomizedResponse(items, EPSILON), HadamardResponse(items, EPSILON)
    reports = kary.draw(values, stream), hadamard.draw(values, stream)

    def least(work: Callable[[], object]) -> float:
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    first = least(lambda: stream.random(clients) < 0.3)
    two = least(lambda: (stream.random(clients), stream.integers(0, items, clients)))
    coin, pair = "random and a comparison", "random and integers"
    results = [Row(coin, first), Row(pair, two)]
    for what, beside, base, work in (
        ("randomised response, bits", coin, first, lambda: response.draw(bits, stream)),
        ("randomised response, numbers", coin, first, lambda: response.draw_numbers(numbers, stream)),
        (f"k-ary, {items} items", pair, two, lambda: kary.draw(values, stream)),
        (f"k-ary, {items} items, counted", pair, two, lambda: kary.support(reports[0])),
        (f"Hadamard, {items} items", pair, two, lambda: hadamard.draw(values, stream)),
        (f"Hadamard, {items} items, counted", pair, two, lambda: hadamard.support(reports[1])),
    ):
        seconds = least(work)
        results.append(Row(what, seconds, beside, seconds / base))
    return results + [row for kind in ("sue", "oue") for row in unary(kind, clients, unary_items)]


def unary(name: str, clients: int, items: int) -> list[Row]:
    """A unary encoding drawn and counted in a process of its own, with that process's peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        drawn, counted, peak = pool.apply(_unary, (name, clients, items))
    return [Row(f"{name}, {items} items", drawn, peak=peak), Row(f"{name}, {items} items, counted", counted)]


def _unary(name: str, clients: int, items: int) -> tuple[float, float, float]:
    kind = {"sue": SymmetricUnary, "oue": OptimizedUnary}[name]
    oracle, stream = kind(items, EPSILON), Streams(1).stream("answers")
    values = stream.integers(0, items, clients)
    start = time.perf_counter()
    reports = oracle.draw(values, stream)
    drawn = time.perf_counter()
    oracle.support(reports)
    counted = time.perf_counter()
    return drawn - start, counted - drawn, float(peak_memory_bytes())


def show(rows: list[Row], clients: int) -> None:
    """Prints the rows as a table."""
    table = Table(title=f"{clients:,} clients, epsilon {EPSILON:g}")
    for name in ("what", "ms", "beside", "ratio", "peak MB"):
        table.add_column(name, justify="left" if name in ("what", "beside") else "right", no_wrap=True)
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        peak = "" if row.peak is None else f"{row.peak / 1e6:.0f}"
        table.add_row(row.what, f"{1e3 * row.seconds:.1f}", row.beside, ratio, peak)
    Console(highlight=False, width=max(Console().width, 110)).print(table)


def main(
    clients: Annotated[int, typer.Option(min=1000, help="How many answer.")] = 1_000_000,
    items: Annotated[int, typer.Option(min=2, help="Categories of k-ary and Hadamard response.")] = 10_000,
    unary_items: Annotated[int, typer.Option(min=2, help="Categories of the unary encodings.")] = 1000,
) -> None:
    """Measures how fast answers are drawn; ends with exit code 1 where a limit is broken."""
    results = rows(clients, items, unary_items)
    show(results, clients)
    broken = [row.what for row in results if not row.within]
    if broken:
        print(f"Beyond {LIMIT:g} times, or {MEMORY / 1e9:g} GB: {', '.join(broken)}.")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
