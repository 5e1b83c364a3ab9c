"""Attacks the released model of a target run: scores of the targets and of all records.

The attacker knows the records of the training data (every client's and the public part) and their labels,
the scenario's model and training, and records that nobody trains on. It knows neither whose a record is nor
which the run was trained on. Its references are models on halves of these records, drawn by coins of its own
that are independent of the game's, trained in one place and without noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from fedprivacy.attacks.game import Ids
from fedprivacy.attacks.released.battery import Battery, features
from fedprivacy.attacks.released.exposure import exposure, in_turn
from fedprivacy.attacks.released.lira import Variance, lira
from fedprivacy.attacks.released.references import Recipe, train_references
from fedprivacy.attacks.released.signals import Signals
from fedprivacy.data.groups import Grouping
from fedprivacy.errors import InputError
from fedprivacy.population.groups import training_groups
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch
from fedprivacy.scenario.attack.sections import Method, Released
from fedprivacy.scenario.training import ShuffledTraining
from fedprivacy.training.task import LocalTraining
from scenarios.attacks.game_setup import GameSetup, Tensors, rounds_trained
from scenarios.attacks.group_accuracy import Accuracies, accuracies_by_group
from scenarios.attacks.scoring import AttackResult, score_attack

MOST = 200  # records whose exposure is kept
FPR = 0.01  # of the threshold above which a record is called a member; a tenth where there are few records
# Attacks that can score one reference with the help of the others, which measures exposure; for each its
# kind of variance, and whether it works offline.
EXPOSING: dict[str, tuple[Variance, bool]] = {
    "lira": ("per-record", False),
    "lira-global": ("global", False),
    "lira-offline": ("per-record", True),
}


def attack_released_model(
    scenario: AttackScenario, setup: GameSetup, branch: Branch, tensors: Tensors
) -> dict[str, AttackResult]:
    """Runs each attack of a branch on the trained model; the results by name.

    Args:
        scenario: The run.
        setup: The run with its game.
        branch: Attacks on the released model that share their references.
        tensors: What `GameSetup.warm_up` gave.

    Raises:
        InputError: the references diverge, or the game has too few members or non-members to learn from.
    """
    began = time.perf_counter()
    attacks = {name: item for name, item in scenario.attacks.items() if name in branch.names}
    requested = {name: item for name, item in attacks.items() if isinstance(item, Released)}
    first, game, people = next(iter(requested.values())), setup.game, setup.game.people
    pool = np.sort(np.concatenate([people.partition.order, people.partition.public]))
    weights = tensors["weights"].astype(np.float32)
    methods: set[str] = {method for item in requested.values() for method in item.methods}
    battery = _battery(setup, first, pool, methods, rounds_trained(tensors, scenario))
    results_by_attack = battery.run(
        torch.from_numpy(weights), game.members, game.folds, np.searchsorted(pool, game.targets)
    )
    train, test = setup.accuracies(weights)
    groups = training_groups(scenario.data, scenario.evaluation)
    references = battery.references.weights
    accuracies = accuracies_by_group(scenario, setup, weights, references) if groups else {}
    exposures = {
        method: _exposure(battery, method, pool, groups, accuracies)
        for method in EXPOSING
        if any(method == _exposing(item) for item in requested.values())
    }
    results = {}
    for name, attack in requested.items():
        scores: dict[str, Signals] = {
            method: item for method, item in features(results_by_attack).items() if method in attack.methods
        }
        try:
            results[name] = score_attack(
                scores,
                game,
                setup.probe,
                delta=scenario.privacy.delta or 0.0,
                ascended=None,
                observed=[],
                accuracy=(test, test),
                seconds=(time.perf_counter() - began) / len(requested),
                base=next(iter(scores)),
                train_accuracy=train,
                exposure=exposures.get(_exposing(attack) or ""),
            )
        except InputError as error:
            raise InputError(f"attacks.{name}: {error}") from error
    return results


def training_of(scenario: AttackScenario, attack: Released, records: float, rounds: int) -> LocalTraining:
    """The training settings of a reference model: those of the run, in one place.

    A round in which each of K clients takes one step on B records, and which averages them, is one step on
    K B records. So a reference takes steps on as many, and goes through its records as often as clients do.

    Args:
        scenario: The run.
        attack: What it asks for instead.
        records: Of the mean client.
        rounds: That the run was trained for.
    """
    options, clients = scenario.training, scenario.population
    if isinstance(options, ShuffledTraining):
        size = records if options.batch_size == "all" else float(options.batch_size)
        passes = float(options.epochs)
    else:
        rate = getattr(options, "rate", None)
        size = records * rate if rate else float(options.batch_size or records)
        passes = options.steps * size / records
    batches = ShuffledBatches(
        attack.epochs or max(1, round(passes * rounds)),
        attack.batch_size or max(1, round(size * clients)),
    )
    return LocalTraining(batches, options.learning_rate, options.momentum, options.weight_decay)


def _battery(setup: GameSetup, attack: Released, pool: Ids, methods: set[str], rounds: int) -> Battery:
    scenario, fleet, people = setup.scenario, setup.fleet, setup.game.people
    recipe = Recipe(fleet.model.build, training_of(scenario, attack, float(fleet.sizes.mean()), rounds))
    rows = torch.from_numpy(pool)
    x, y = fleet.x[rows], fleet.y[rows]
    others = tuple(torch.from_numpy(part).to(x.device) for part in people.held_out("test"))
    return Battery(
        fleet.module,
        x,
        y,
        (others[0], others[1]),
        train_references(recipe, x, y, fleet.streams, attack.references),
        fleet.streams,
        [method for method in get_args(Method) if method in methods],
        attack.gamma,
        attack.offline_a,
    )


def _exposing(attack: Released) -> str | None:
    """The method by which an attack ranks exposed records."""
    return next((method for method in EXPOSING if method in attack.methods), None)


def _exposure(
    battery: Battery, method: str, pool: Ids, groups: Sequence[Grouping], accuracies: Accuracies
) -> dict[str, Any]:
    """The exposure of records under a method, by their index in the training data."""
    variance, offline = EXPOSING[method]

    def score(target: Signals, references: Signals, members: NDArray[np.bool_]) -> Signals:
        return lira(target, references, members, variance=variance, offline=offline)

    members, labels = battery.references.members, battery.y.cpu().numpy()
    fpr = FPR if (~members).sum(axis=1).min() >= math.ceil(1 / FPR) - 1 else 10 * FPR
    signals = battery.reference_confidences[0]
    of_pool = [replace(group, codes=group.codes[pool]) for group in groups]
    result = exposure(in_turn(score, signals, members), members, labels, fpr, signals, of_pool)
    as_json = result.to_json(MOST)
    for column, parts in as_json.get("groups", {}).items():
        for label, part in parts.items():
            part |= accuracies[column].get(label, {})
    for exposed in as_json["most_exposed"]:
        exposed["record"] = int(pool[exposed["record"]])  # its content stays secret
    return {"method": method, **as_json}
