"""Runs an attack in trials: observes the models of its rounds, and lets the kind attack."""

from __future__ import annotations

import time
from dataclasses import replace

from flwr.clientapp.typing import Mod

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
    setup: GameSetup, branch: Branch, tensors: Tensors, spent: AttackRounds
) -> dict[str, Outcome]:
    """The outcome of the branch's attack, by its name.

    Args:
        setup: The run.
        branch: An attack in trials.
        tensors: The state from `GameSetup.warm_up`.
        spent: The cost of the other branches.

    Raises:
        InputError: clients have no noise left for its rounds.
    """
    [name], attack, plan = branch.names, branch.attack, setup.fleet.plan
    assert isinstance(attack, TrialAttack)
    answered = setup.scenario.warm_up + spent.everybody + spent.victim
    if plan.distrusts_server and answered + attack.rounds > plan.answers:
        # Clients count their answers themselves, and worlds are no clients of the run.
        raise InputError(
            f"attacks.{name}: clients answer {plan.answers} times, {answered} of which are spent. Observe at "
            "most as many rounds as are left, or train anew."
        )
    began = time.perf_counter()
    stage = setup.resume(branch.key, tensors, spent)
    accuracy, first = stage.quality().accuracy, rounds_trained(tensors, setup.scenario)
    models = [stage.federation.model]
    for number in range(first, first + attack.rounds - 1):
        stage.federation.round(number)
        models.append(stage.federation.model)

    def resume(trial: int, mods: tuple[Mod, ...]) -> Stage:
        return setup.resume(f"{branch.key}/{trial}", tensors, spent, mods=mods, trial=trial)

    victim = AttackedClient(
        setup, attack.seat, tuple(models), first, branch.key, attack.in_sum, resume, attack.rounds
    )
    outcome = attack.run(victim)
    return {name: replace(outcome, accuracy=accuracy, seconds=time.perf_counter() - began)}
