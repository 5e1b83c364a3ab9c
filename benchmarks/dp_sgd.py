"""DP-SGD steps per second beside Opacus, on the same model and batch.

    python -m benchmarks.dp_sgd

A step is the gradient of each record, clipping, the sum, Gaussian noise and an SGD update. Ours is what a
client runs: `train_examples`, for a round of `STEPS` steps on all of its records. Each of our steps takes its
records out of the data set, and a round begins with its random streams and the order of its records; all of
that is in our times. Opacus makes as many steps as `PrivacyEngine.make_private` sets them up, without Poisson
sampling, in each of its ways to get gradients of single records; "hooks" is its standard. It has the batch in
memory already: its data loader is not in its times.

All run in one process and take turns of a tenth of a second or of a round, so that a machine that changes its
speed does so for all; medians over the rounds are compared. First with one thread of torch, then with as many
as there are cores. Where other programs want the same cores, long rounds are interrupted more often than
short ones: the ratio of the CPU's own time is then the one to believe, and a target is reached only if both
ratios reach it.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.training.dp_sgd import train_examples
from fedprivacy.training.task import LocalTraining, Task

CLIPPING_NORM, NOISE, LEARNING_RATE = 1.0, 1.0, 0.1
CLASSES = 10
STEPS = 20  # in a round
TURN = 0.1  # seconds until the next trainer has its turn
MODES = ("hooks", "functorch", "ghost")  # of Opacus
TARGETS = {"logistic": 5.0, "mlp": 3.0, "cnn": 1.0}  # times Opacus' steps per second with one thread
Round = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        model: The model's name.
        batch: Records in a batch.
        threads: Threads of torch.
        trainer: "ours", or Opacus' way to get gradients of single records.
        milliseconds: The median time of a step.
        ratio: Our steps per second divided by this trainer's.
        cpu_milliseconds: The median time that a step kept CPUs busy.
        cpu_ratio: This trainer's busy time divided by ours.
    """

    model: str
    batch: int
    threads: int
    trainer: str
    milliseconds: float
    ratio: float
    cpu_milliseconds: float
    cpu_ratio: float


def models() -> dict[str, tuple[nn.Sequential, tuple[int, ...]]]:
    """Each model with the shape of a record."""
    torch.manual_seed(1)
    images = [nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    images += [nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return {
        "logistic": (nn.Sequential(nn.Linear(64, CLASSES)), (64,)),
        "mlp": (nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, CLASSES)), (784,)),
        "cnn": (
            nn.Sequential(*images, nn.Linear(1568, 56), nn.ReLU(), nn.Linear(56, CLASSES)),
            (1, 28, 28),
        ),
    }


def our_round(module: nn.Module, x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    """Returns a callable round of our DP-SGD on all records: from the module's weights to its update.

    The update is float64, shape (parameters,).
    """
    size = len(y)
    options = LocalTraining(ShuffledBatches(STEPS), LEARNING_RATE)
    noise, weights, records = Gaussian(CLIPPING_NORM, NOISE), flat_weights(module), [np.arange(size)]
    task = Task(module, weights, x, y, records, np.array([0]), options, Streams(1), round=0)

    def run() -> Tensor:
        return train_examples(task, CLIPPING_NORM, noise)[0][0]

    return run


def opacus_round(module: nn.Module, x: Tensor, y: Tensor, mode: str) -> tuple[Round, nn.Module]:
    """As many steps of Opacus, to be called again and again, and the module that they change."""
    from opacus import PrivacyEngine

    copy = deepcopy(module).train()
    criterion = nn.CrossEntropyLoss()
    private = PrivacyEngine().make_private(
        module=copy,
        optimizer=torch.optim.SGD(copy.parameters(), lr=LEARNING_RATE),
        criterion=criterion,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=len(y)),
        noise_multiplier=NOISE,
        max_grad_norm=CLIPPING_NORM,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    wrapped, optimizer = private[0], private[1]
    loss = private[2] if mode == "ghost" else criterion

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss(wrapped(x), y).backward()
            optimizer.step()

    return run, copy


def rows(
    names: Sequence[str], batches: Sequence[int], threads: Sequence[int], modes: Sequence[str], seconds: float
) -> list[Row]:
    """Every measurement, each for about `seconds`."""
    results = []
    for name in names:
        module, shape = models()[name]
        for batch in batches:
            generator = torch.Generator().manual_seed(batch)
            x = torch.randn(batch, *shape, generator=generator)
            y = torch.randint(0, CLASSES, (batch,), generator=generator)
            rounds: dict[str, Round] = {"ours": our_round(module, x, y)}
            rounds |= {mode: opacus_round(module, x, y, mode)[0] for mode in modes}
            for count in threads:
                times = _medians(rounds, count, seconds)
                ours, busy = times["ours"]
                results += [
                    Row(name, batch, count, trainer, 1e3 * wall, wall / ours, 1e3 * cpu, cpu / busy)
                    for trainer, (wall, cpu) in times.items()
                ]
    return results


def _medians(rounds: Mapping[str, Round], threads: int, seconds: float) -> dict[str, tuple[float, float]]:
    """The median seconds of a step of each: by the clock, and of the CPUs."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for run in rounds.values():
            run()
        walls: dict[str, list[float]] = {name: [] for name in rounds}
        cpus: dict[str, list[float]] = {name: [] for name in rounds}
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(walls["ours"]) < 3:
            for name, run in rounds.items():
                turn = time.perf_counter() + TURN
                now = 0.0
                while now < turn:
                    start, busy = time.perf_counter(), time.process_time()
                    run()
                    cpus[name].append((time.process_time() - busy) / STEPS)
                    now = time.perf_counter()
                    walls[name].append((now - start) / STEPS)
    finally:
        torch.set_num_threads(before)
    return {name: (statistics.median(walls[name]), statistics.median(cpus[name])) for name in rounds}


def show(rows: Sequence[Row]) -> None:
    """Prints the rows as a table."""
    table = Table(title="DP-SGD, ratio: our steps per second / theirs")
    for name in (
        "model",
        "batch",
        "threads",
        "trainer",
        "ms a step",
        "steps a second",
        "ratio",
        "CPU ms",
        "CPU ratio",
    ):
        table.add_column(name, justify="left" if name in ("model", "trainer") else "right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(
            row.model,
            f"{row.batch}",
            f"{row.threads}",
            row.trainer,
            f"{row.milliseconds:.3g}",
            f"{1e3 / row.milliseconds:,.0f}",
            "" if row.trainer == "ours" else f"{row.ratio:.2f}",
            f"{row.cpu_milliseconds:.3g}",
            "" if row.trainer == "ours" else f"{row.cpu_ratio:.2f}",
            end_section=after is None or after.trainer == "ours",
        )
    Console(highlight=False, width=max(Console().width, 110)).print(table)


def missed(rows: Sequence[Row]) -> list[str]:
    """The workloads below their target beside Opacus' standard with one thread."""
    return [
        f"{row.model}, batch {row.batch}: {least:.2f}, to reach {TARGETS[row.model]:g}"
        for row in rows
        if row.trainer == MODES[0] and row.threads == 1
        if (least := min(row.ratio, row.cpu_ratio)) < TARGETS[row.model]
    ]


def main(
    model: Annotated[list[str] | None, typer.Option(help="logistic, mlp, cnn.")] = None,
    batch: Annotated[list[int] | None, typer.Option(min=1, help="Records in a batch.")] = None,
    threads: Annotated[list[int] | None, typer.Option(min=1, help="Threads of torch.")] = None,
    mode: Annotated[list[str] | None, typer.Option(help=f"Of Opacus: {', '.join(MODES)}.")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="For each measurement.")] = 10.0,
    file: Annotated[Path | None, typer.Option("--json", help="Where the figures go as JSON.")] = None,
) -> None:
    """Measures DP-SGD steps beside Opacus; ends with exit code 1 where a target is missed."""
    warnings.simplefilter("ignore")  # Opacus warns of its random numbers, and of what it does to modules
    cores = os.cpu_count() or 1
    counts = threads or [1, *([cores] if cores > 1 else [])]
    results = rows(model or list(TARGETS), batch or [64, 256], counts, mode or MODES, seconds)
    show(results)
    if file is not None:
        text = json.dumps({"schema": 1, "rows": [asdict(row) for row in results]}, indent=1)
        file.write_text(text + "\n", encoding="utf-8")
    if less := missed(results):
        print(f"Slower than aimed at: {'; '.join(less)}.")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
