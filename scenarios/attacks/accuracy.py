"""Accuracies of a game's trained runs, with intervals over runs, for every arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedprivacy.attacks.document_claims import arm_claims
from fedprivacy.documents.attack import ArmResult
from fedprivacy.errors import InputError
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.seed_statistics import interval
from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.game_setup import rounds_trained
from scenarios.attacks.target_run import TargetRun, stored_run
from server.averaging import released_weights

Trained = dict[tuple[int, int], "Accuracy"]  # by the number of the variant, the seed


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


def measure(run: TargetRun) -> dict[str, float]:
    """The accuracy of a trained run, in any process, as JSON (`accuracy`)."""
    setup = run.setup()
    tensors = stored_run(run, setup)
    train, test = setup.accuracies(released_weights(tensors))
    return {"train": train, "test": test, "rounds": rounds_trained(tensors, run.scenario)}


def accuracy(measured: Any) -> Accuracy:
    """The measured accuracies of one run.

    Raises:
        InputError: it is something else.
    """
    try:
        result = Accuracy(float(measured["train"]), float(measured["test"]), int(measured["rounds"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError("the accuracy of a run is not one") from error
    if not (0 <= result.train <= 1 and 0 <= result.test <= 1):
        raise InputError("the accuracy of a run is not one")
    return result


def arms_document(
    variants: Sequence[AttackScenario],
    plans: Sequence[Plan],
    ledgers: Sequence[Mapping[str, Any]],
    epsilons: Sequence[float | None],
    trained: Trained,
    seeds: Sequence[int],
    strongest: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The document's entry for each arm at each epsilon whose runs were all measured.

    Args:
        variants: The arms at their epsilons.
        plans: Of each variant.
        ledgers: Of each variant.
        epsilons: Of each variant, what was asked for or is spent; None without.
        trained: The accuracies.
        seeds: Of the runs.
        strongest: Of each variant, by seat the figures of the strongest attack.
    """
    arms = []
    for number, (variant, plan) in enumerate(zip(variants, plans, strict=True)):
        runs = [trained[number, seed] for seed in seeds if (number, seed) in trained]
        if len(runs) < len(seeds):
            continue
        accuracies = {
            "train": [accuracy_of_run.train for accuracy_of_run in runs],
            "test": [accuracy_of_run.test for accuracy_of_run in runs],
        }
        arms.append(
            ArmResult.new(
                **arm_claims(variant, number, plan, ledgers[number], epsilons[number]),
                rounds_played=[accuracy_of_run.rounds for accuracy_of_run in runs],
                seeds=len(runs),
                accuracy={name: interval(values) for name, values in accuracies.items()},
                accuracies=accuracies,
                strongest=strongest[number],
            ).to_json()
        )
    return arms
