"""Attacks the released model of a target run: scores of the targets and of all records.

The attacker knows the records of the training data (every client's and the public part) and their labels,
the scenario's model and training, and records that nobody trains on. It knows neither whose a record is nor
which the run was trained on. Its references are models on halves of these records, drawn by coins of its own
that are independent of the game's, trained in one place and without noise.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from fedprivacy.attacks.released.attack import Released
from fedprivacy.attacks.released.battery import features
from fedprivacy.attacks.released.signals import Signals
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch
from scenarios.attacks.game_setup import GameSetup, Tensors, rounds_trained
from scenarios.attacks.group_accuracy import Accuracies, accuracies_by_group
from scenarios.attacks.reference_models import EXPOSING, ReferenceModels, reference_models
from scenarios.attacks.scoring import AttackResult, score_attack
from server.averaging import released_weights

MOST = 200  # records whose exposure is kept


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
    first, game = next(iter(requested.values())), setup.game
    weights = released_weights(tensors)
    methods: set[str] = {method for item in requested.values() for method in item.methods}
    models = reference_models(setup, first, methods, rounds_trained(tensors, scenario))
    results_by_attack = models.battery.run(
        torch.from_numpy(weights), game.members, game.folds, np.searchsorted(models.pool, game.targets)
    )
    train, test = setup.accuracies(weights)
    references = models.battery.references.weights
    accuracies = accuracies_by_group(scenario, setup, weights, references) if models.groups else {}
    exposures = {
        method: _exposure(models, method, accuracies)
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


def _exposing(attack: Released) -> str | None:
    """The method by which an attack ranks exposed records."""
    return next((method for method in EXPOSING if method in attack.methods), None)


def _exposure(models: ReferenceModels, method: str, accuracies: Accuracies) -> dict[str, Any]:
    """The exposure of records under a method, by their index in the training data."""
    as_json = models.exposure(method).to_json(MOST)
    for column, parts in as_json.get("groups", {}).items():
        for label, part in parts.items():
            part |= accuracies[column].get(label, {})
    for exposed in as_json["most_exposed"]:
        exposed["record"] = int(models.pool[exposed["record"]])  # its content stays secret
    return {"method": method, **as_json}
