"""Performance and cost of each attack on a released model of Location-30.

    python -m benchmarks.released_attacks

Target models, an MLP 446-128-30, are trained until they know all of their records, about 2000 of 4007, each a
member by a fair coin; references in the same way on halves of their own. The test records are those that
nobody trained on. Each fold of the records is measured at thresholds, and by attack networks, of the other
folds. Seconds are of processor time. The data are read from where they lie; without them nothing is measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from fedprivacy.attacks.document import over_seeds
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.metrics import Measured, measure
from fedprivacy.attacks.released.battery import ATTACKS, THRESHOLDS, Battery
from fedprivacy.attacks.released.exposure import Exposure, exposure, in_turn
from fedprivacy.attacks.released.lira import lira
from fedprivacy.attacks.released.references import MODELS, Models, Recipe, draw_coins, train, train_references
from fedprivacy.attacks.targets import Targets, draw_folds
from fedprivacy.data import npz
from fedprivacy.errors import FedPrivacyError, InputError
from fedprivacy.models.by_name import build
from fedprivacy.models.evaluation import evaluate
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.model import Mlp
from fedprivacy.training.task import LocalTraining

DATA = Path("../shared/data/location30.npz")
REFERENCED = ("lira", "lira-global", "rmia")
LEAST = 0.9  # of the AUC of one of them
TIMES = 5  # so many times the TPR of the loss threshold at 1 % FPR
RATE = "0.01"


@dataclass(frozen=True)
class Data:
    """Records and labels: the pool, and those that nobody trains on."""

    x: Tensor
    y: Tensor
    others: tuple[Tensor, Tensor]

    @classmethod
    def read(cls, path: Path) -> Data:
        """Of an .npz file."""
        x, x_test = (
            torch.from_numpy(npz.array(str(path), name).astype(np.float32)) for name in ("x_train", "x_test")
        )
        y, y_test = (
            torch.from_numpy(npz.array(str(path), name).astype(np.int64)) for name in ("y_train", "y_test")
        )
        return cls(x, y, (x_test, y_test))

    def recipe(self, epochs: int) -> Recipe:
        """The training settings of all models."""
        features, classes = tuple(self.x.shape[1:]), int(self.y.max()) + 1
        options = Mlp(name="mlp", hidden=(128,), activation="tanh")

        def make(seed: int) -> nn.Module:
            return build(options, features, classes, seed=seed)

        training = LocalTraining(ShuffledBatches(epochs, 128), learning_rate=0.2, momentum=0.9)
        return Recipe(make, training)


@dataclass(frozen=True)
class Row:
    """One attack; each figure is the mean over targets, with an interval over their training too.

    Args:
        attack: Its name.
        auc: Of all records.
        tpr: At 1 % FPR.
        balanced: The balanced accuracy.
        seconds: Of processor time, on one target, without what is done once for all targets.
    """

    attack: str
    auc: Figure
    tpr: Figure
    balanced: Figure
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        figures = {"auc": self.auc, "tpr_at_0.01": self.tpr, "balanced_accuracy": self.balanced}
        return {
            "attack": self.attack,
            **{name: figure.to_json() for name, figure in figures.items()},
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Results:
    """All that was measured.

    Args:
        rows: Of each attack.
        train: The targets' mean accuracy on their members.
        test: And on records that nobody trained on.
        exposure: Who is exposed, by LiRA on each reference.
        training: Seconds of processor time that all models took.
        once: And of what is done once for all targets.
    """

    rows: Sequence[Row]
    train: float
    test: float
    exposure: Exposure
    training: float
    once: float


def attack(
    data: Data, references: int, targets: int, epochs: int, seed: int, attacks: Sequence[str] = ATTACKS
) -> Results:
    """Trains all models and attacks the targets.

    Args:
        data: The pool, and what nobody trains on.
        references: How many reference models.
        targets: How many target models.
        epochs: Passes over a model's records.
        seed: Of coins, weights and batches.
        attacks: Their names.
    """
    recipe, streams = data.recipe(epochs), Streams(seed)
    began = time.process_time()
    coins = draw_coins(targets, len(data.y), streams.stream("released/targets/members"))
    targets_trained = train(recipe, data.x, data.y, coins, streams, "targets")
    others = train_references(recipe, data.x, data.y, streams, references)
    training = time.process_time() - began
    module = recipe.build(0)
    battery = Battery(module, data.x, data.y, data.others, others, streams, attacks)
    once = battery.prepare()
    measured: dict[str, list[Measured]] = {name: [] for name in ATTACKS if name in attacks}
    seconds = dict.fromkeys(measured, 0.0)
    for number, (weights, members) in enumerate(
        zip(targets_trained.weights, targets_trained.members, strict=True)
    ):
        folds = draw_folds(len(members), streams.stream("released/folds", member=number))
        results = battery.run(weights, members, folds)
        for name, scored in results.items():
            measured[name].append(measure(Targets(scored.scores, members, folds)))
            seconds[name] += scored.seconds / targets
    exposed = exposure(
        in_turn(lira, battery.reference_confidences[0], others.members), others.members, data.y.numpy()
    )
    inside, outside = _accuracies(module, targets_trained, data)
    rows = [_row(name, runs, seconds[name]) for name, runs in measured.items()]
    return Results(rows, inside, outside, exposed, training, once)


def _row(name: str, runs: Sequence[Measured], seconds: float) -> Row:
    rates = [rate.tpr for run in runs if (rate := run.tpr_at_fpr[RATE]) is not None]
    if len(rates) < len(runs):
        raise InputError(
            "data: too few records for a TPR at 1 % FPR, which needs 500 non-members of each target."
        )
    columns = [[run.auc for run in runs], rates, [run.balanced_accuracy for run in runs]]
    auc, tpr, balanced = (over_seeds(column) if len(column) > 1 else column[0] for column in columns)
    return Row(name, auc, tpr, balanced, seconds)


def _accuracies(module: nn.Module, models: Models, data: Data) -> tuple[float, float]:
    """The mean accuracy on members, and on what nobody trained on."""
    x, y, others = data.x.numpy(), data.y.numpy(), [part.numpy() for part in data.others]
    every = [
        (
            evaluate(module, weights, x[members], y[members]).accuracy,
            evaluate(module, weights, others[0], others[1]).accuracy,
        )
        for weights, members in zip(models.weights.numpy(), models.members, strict=True)
    ]
    inside, outside = np.mean(every, axis=0)
    return float(inside), float(outside)


def show(results: Results) -> None:
    """Prints the figures as a table."""
    table = Table(title=f"Train accuracy {results.train:.1%}, test accuracy {results.test:.1%}")
    table.add_column("attack", no_wrap=True)
    for name in ("AUC", "TPR at 1 % FPR", "balanced accuracy", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in results.rows:
        table.add_row(row.attack, *map(_text, (row.auc, row.tpr, row.balanced)), f"{row.seconds:.1f}")
    console = Console(highlight=False, width=max(Console().width, 120))
    console.print(table)
    exposed, (most,) = results.exposure, results.exposure.most(1)
    console.print(
        f"Models were trained in {results.training:.0f} s and asked in {results.once:.0f} s. LiRA on each "
        f"reference in turn: {len(exposed.proved())} of {len(exposed.hits)} records are exposed for certain; "
        f"the most exposed is found in {most.hits} of {most.models} models with it, and in {most.alarms} of "
        f"{most.others} without it."
    )


def _text(figure: Figure) -> str:
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"


def missed(results: Results) -> list[str]:
    """The targets that were missed."""
    rows: Mapping[str, Row] = {row.attack: row for row in results.rows}
    best = max((rows[name] for name in REFERENCED), key=lambda row: row.auc.value)
    simple = max((rows[name] for name in THRESHOLDS), key=lambda row: row.auc.value)
    loss = rows["loss"].tpr.value
    wrongs = {
        f"the targets know {results.train:.1%} of their records, to reach 100 %": results.train < 1,
        f"{best.attack}: AUC {best.auc.value:.3f}, to reach {LEAST}": best.auc.value < LEAST,
        f"{best.attack}: AUC not above that of {simple.attack}": best.auc.value <= simple.auc.value,
        f"{best.attack}: TPR {best.tpr.value:.3f}, to reach {TIMES} x {loss:.3f}": best.tpr.value
        < TIMES * loss,
    }
    return [what for what, wrong in wrongs.items() if wrong]


def main(
    path: Annotated[Path, typer.Option("--data", help="location30.npz.")] = DATA,
    references: Annotated[int, typer.Option(min=8, help="Reference models.")] = MODELS,
    targets: Annotated[int, typer.Option(min=1, help="Target models.")] = 4,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over a model's records.")] = 12,
    seed: Annotated[int, typer.Option(min=0, help="Of coins, weights and batches.")] = 1,
    file: Annotated[Path | None, typer.Option("--json", help="Where the figures go as JSON.")] = None,
) -> None:
    """Attacks models of Location-30; ends with exit code 1 where an aim is missed."""
    if not path.exists():
        print(f"{path}: the data are not here, so nothing was measured. --data says where they are.")
        return
    torch.set_num_threads(1)
    try:
        results = attack(Data.read(path), references, targets, epochs, seed)
    except FedPrivacyError as error:
        print(error)
        raise typer.Exit(error.exit_code) from error
    show(results)
    if file is not None:
        document = {
            "schema": 1,
            "train_accuracy": results.train,
            "test_accuracy": results.test,
            "rows": [row.to_json() for row in results.rows],
            "exposure": results.exposure.to_json(),
            "seconds": {"training": results.training, "once": results.once},
        }
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if less := missed(results):
        print(f"Less than aimed at: {'; '.join(less)}.")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
