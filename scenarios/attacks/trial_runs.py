"""Runs an attack in trials: observes the models of its rounds, and lets the kind attack."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.clientapp.typing import Mod
from numpy.typing import NDArray

from fedprivacy.attacks.stored_trials import MODELS, TrialRecording
from fedprivacy.attacks.trials import Outcome, TrialAttack, trials_of
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack.branches import Branch
from scenarios.attacks.game_setup import GameSetup, Stage, Tensors, rounds_trained
from scenarios.attacks.participation_budget import AttackRounds
from scenarios.attacks.victim import AttackedClient


def check_trials(setup: GameSetup) -> None:
    """Refuses attacks in trials that the data of a run do not allow.

    Raises:
        InputError: with the attack and the reason.
    """
    for name, attack in trials_of(setup.scenario).items():
        victim = AttackedClient(setup, attack.seat, (), setup.scenario.warm_up, name, attack.in_sum)
        try:
            attack.check(victim)
        except InputError as error:
            raise InputError(f"attacks.{name}: {error}") from error


def attack_in_trials(
    setup: GameSetup,
    branch: Branch,
    tensors: Tensors,
    spent: AttackRounds,
    transcript: TrialRecording | None = None,
) -> dict[str, Outcome]:
    """The outcome of the branch's attack, by its name.

    Args:
        setup: The run.
        branch: An attack in trials.
        tensors: The state from `GameSetup.warm_up`.
        spent: The cost of the other branches.
        transcript: Holds or takes what the attacker sees; None: it is not stored.

    Raises:
        InputError: clients have no noise left for its rounds.
    """
    [name], attack, plan = branch.names, branch.attack, setup.fleet.plan
    assert isinstance(attack, TrialAttack)
    began, first = time.perf_counter(), rounds_trained(tensors, setup.scenario)
    answered = setup.scenario.warm_up + spent.everybody + spent.victim
    stored = transcript is not None and transcript.reads
    if plan.distrusts_server and not stored and answered + attack.rounds > plan.answers:
        # Clients count their answers themselves, and worlds are no clients of the run.
        raise InputError(
            f"attacks.{name}: clients answer {plan.answers} times, {answered} of which are spent. Observe at "
            "most as many rounds as are left, or train anew."
        )
    facts: dict[str, Any] = {"seed": setup.scenario.seed, "view": attack.view}
    if transcript is not None and transcript.reads:
        transcript.check(facts)
    facts["key"] = branch.key

    def observe() -> NDArray[np.float32]:
        stage = setup.resume(branch.key, tensors, spent)
        facts["accuracy"] = stage.quality().accuracy
        models = [stage.federation.model]
        for number in range(first, first + attack.rounds - 1):
            stage.federation.round(number)
            models.append(stage.federation.model)
        return np.stack(models)

    if transcript is None:
        models = observe()
    else:
        shape = attack.rounds, setup.fleet.parameters
        models = transcript.observed(MODELS, 0, b"", observe, shape=shape, dtype=np.float32)
    if transcript is not None and transcript.reads:
        facts = transcript.facts
        if not isinstance(facts.get("accuracy"), float):
            raise transcript.damaged(transcript.folder, ValueError("it has no accuracy"))

    def resume(trial: int, mods: tuple[Mod, ...]) -> Stage:
        return setup.resume(f"{branch.key}/{trial}", tensors, spent, mods=mods, trial=trial)

    victim = AttackedClient(
        *(setup, attack.seat, tuple(models), first, branch.key, attack.in_sum, resume, attack.rounds),
        observed=attack.observed,
        transcript=transcript,
    )
    outcome = attack.run(victim)
    if transcript is not None:
        transcript.complete(facts)
    observer = attack.recording if transcript is None else transcript.folder.name
    again = "" if observer == attack.recording else observer
    seconds = time.perf_counter() - began
    return {name: replace(outcome, accuracy=facts["accuracy"], seconds=seconds, scored_again=again)}
