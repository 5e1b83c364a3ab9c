"""Accuracy by group on test records: of the attacked model, and of reference models without noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.models.prediction import named_classes
from fedprivacy.population.groups import held_out_groups
from fedprivacy.records.final_evaluation import by_group
from fedprivacy.records.seed_statistics import interval
from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.game_setup import GameSetup

MOST_REFERENCES = 16  # of which the accuracy is measured
Accuracies = Mapping[str, Mapping[str, dict[str, Any]]]  # by column, then by group


def accuracies_by_group(
    scenario: AttackScenario, setup: GameSetup, weights: NDArray[np.float32], references: Tensor
) -> Accuracies:
    """By column and group, `accuracy` of the attacked model and `reference_accuracy` of the references.

    The interval of the first is over the group's test records, that of the second over reference models.

    Args:
        scenario: The run.
        setup: The run with its game.
        weights: Of the attacked model, flat.
        references: Those of the reference models, shape (models, parameters).
    """
    groups = held_out_groups(scenario.data, scenario.evaluation)
    if not groups:
        return {}
    module, (x, y) = setup.fleet.module, setup.game.people.held_out("test")
    attacked = named_classes(module, weights, x)
    right = [
        named_classes(module, reference.cpu().numpy(), x) == y for reference in references[:MOST_REFERENCES]
    ]
    return {
        grouping.column: {
            group["group"]: {
                "accuracy": {"value": group["accuracy"], "low": group["low"], "high": group["high"]},
                "reference_accuracy": _over_models([each[grouping.codes == code] for each in right]),
            }
            for code, group in enumerate(by_group(grouping, y, attacked)["groups"])
            if group["records"]
        }
        for grouping in groups
    }


def _over_models(right: list[NDArray[np.bool_]]) -> dict[str, float | None]:
    figure = interval([float(each.mean()) for each in right])
    return {"value": figure["mean"], "low": figure["low"], "high": figure["high"]}
