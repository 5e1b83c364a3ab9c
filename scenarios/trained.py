"""How good the trained runs of a game are: each accuracy with its interval over runs, for every arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedprivacy.accounting.statement import SEES, guarantees
from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.comparison import interval
from fedprivacy.errors import InputError
from fedprivacy.plan import Plan
from fedprivacy.scenario.attack import AttackScenario
from scenarios.arena import played_in
from scenarios.attacked import Attacked, stored_run

BOUNDS = ("advantage", "balanced_accuracy", "auc", "tpr_at_fpr", "basis")
Trained = dict[tuple[int, int], "Accuracy"]  # by the number of the variant, the seed
BY_ARM = (
    "Each arm plays the same game with the same coins. Each epsilon is that of one run of one arm alone; "
    "whoever sees several of them has seen several releases of the same people."
)


@dataclass(frozen=True)
class Accuracy:
    """Of one trained run, before anything attacks it.

    Args:
        train: On all records that it was trained on.
        test: On held-out records.
        rounds: After how many rounds: early stopping may end training before those that were planned.
    """

    train: float
    test: float
    rounds: int


def measure(run: Attacked) -> dict[str, float]:
    """The accuracy of a trained run, in any process, as JSON (`accuracy`)."""
    tensors = stored_run(run)
    train, test = run.arena().accuracies(tensors["weights"].astype(np.float32))
    return {"train": train, "test": test, "rounds": played_in(tensors, run.scenario)}


def accuracy(measured: Any) -> Accuracy:
    """What `measure` gave.

    Raises:
        InputError: it is something else.
    """
    try:
        found = Accuracy(float(measured["train"]), float(measured["test"]), int(measured["rounds"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("the accuracy of a run is not one") from error
    if not (0 <= found.train <= 1 and 0 <= found.test <= 1):
        raise InputError("the accuracy of a run is not one")
    return found


def bounds_of(ledger: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By seat, the most that any attack can reach there; without the curve, which attacks have."""
    found = {seat: bound_of_ledger(ledger, seat).to_json() for seat in SEES}
    return {seat: {key: one[key] for key in BOUNDS} for seat, one in found.items()}


def arms_document(
    variants: Sequence[AttackScenario],
    plans: Sequence[Plan],
    ledgers: Sequence[Mapping[str, Any]],
    epsilons: Sequence[float | None],
    trained: Trained,
    seeds: Sequence[int],
) -> list[dict[str, Any]]:
    """What the document says of each arm at each epsilon whose runs all were measured.

    Args:
        variants: The arms at their epsilons.
        plans: Of each variant.
        ledgers: Of each variant.
        epsilons: Of each variant, what was asked for or is spent; None without.
        trained: The accuracies.
        seeds: Of the runs.
    """
    found = []
    for number, (variant, plan) in enumerate(zip(variants, plans, strict=True)):
        runs = [trained[number, seed] for seed in seeds if (number, seed) in trained]
        if len(runs) < len(seeds):
            continue
        accuracies = {"train": [one.train for one in runs], "test": [one.test for one in runs]}
        found.append(
            {
                "arm": variant.arm,
                "trust": variant.privacy.trust,
                "mechanism": None if plan.mechanism is None else plan.mechanism.name,
                "unit": variant.privacy.unit,
                "adjacency": variant.privacy.adjacency,
                "epsilon": epsilons[number],
                "ledger": number,
                "rounds": variant.warm_up,
                "rounds_played": [one.rounds for one in runs],
                "seeds": len(runs),
                "accuracy": {name: interval(values) for name, values in accuracies.items()},
                "accuracies": accuracies,
                "guarantees": [one.to_json() for one in guarantees(ledgers[number])],
                "bounds": bounds_of(ledgers[number]),
                "skipped": dict(variant.skipped),
            }
        )
    return found
