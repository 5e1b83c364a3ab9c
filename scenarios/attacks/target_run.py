"""One attacked run: trained, stored, and continued by each branch of its attacks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedprivacy.attacks.rounds_attack import RoundsAttack
from fedprivacy.attacks.stored_observations import Recording, digest
from fedprivacy.attacks.stored_trials import MOST_BYTES, TrialRecording
from fedprivacy.attacks.transcript import Judgement, Sight
from fedprivacy.attacks.trials import TrialAttack
from fedprivacy.errors import InputError
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch, branches_of
from scenarios.attacks import attacker_seats
from scenarios.attacks.game_setup import GameSetup, Tensors
from scenarios.attacks.participation_budget import NOTHING, AttackRounds, charged_keys, spend
from scenarios.attacks.released_model import attack_released_model
from scenarios.attacks.scoring import score_attack, to_json
from scenarios.attacks.trial_runs import attack_in_trials

SEEN = "seen"  # the folder of a run that holds its transcripts


@dataclass(frozen=True)
class TargetRun:
    """One run that is attacked.

    Args:
        scenario: The scenario with its seed, and one privacy.
        variant: Which of the scenario's variants it is.
        folder: Where the trained run lies.
        plan: Its plan.
    """

    scenario: AttackScenario
    variant: int
    folder: Path
    plan: Plan

    @cached_property
    def branches(self) -> list[Branch]:
        """The branches of its attacks."""
        game = self.scenario.game
        return branches_of(self.scenario.attacks, game.members + game.nonmembers)

    def setup(self) -> GameSetup:
        """The run and its game."""
        return GameSetup(self.scenario, self.plan)

    def spend(self) -> list[tuple[Branch, AttackRounds]]:
        """Charges the trained run for its branches; each with what those before it have cost.

        A stored transcript needs no new requests, and an attack on the trained model sends none.
        """
        new = [branch for branch in self.branches if not branch.silent and self.transcript(branch) is None]
        costs = iter(spend(self.folder, new, self.plan, self.scenario.warm_up))
        return [(branch, next(costs) if branch in new else NOTHING) for branch in self.branches]

    def transcript(self, branch: Branch) -> Recording | None:
        """The transcript of a branch that changes no messages, if it is stored."""
        if branch.attack.view is None:
            return None
        folders = sorted((self.folder / SEEN / branch.attack.view).glob("*"))
        stored: Iterable[Recording] = map(Recording, folders)
        if isinstance(branch.attack, TrialAttack):
            # One that was charged has trials of its own; another takes those that were charged first, so that
            # its result depends neither on other attacks nor on an order of names.
            charged = [digest(key.encode()) for key in charged_keys(self.folder)]
            its_name = branch.attack.recording
            names = [its_name] if its_name in charged else charged
            folders = [self.folder / SEEN / branch.attack.view / name for name in names]
            stored = (TrialRecording(folder, reads=True) for folder in folders)
        return next(
            (
                branch_stored
                for branch_stored in stored
                if branch_stored.whole and branch_stored.covers(branch.watched)
            ),
            None,
        )

    def facts(self, setup: GameSetup) -> dict[str, Any]:
        """The facts that identify the trained run.

        Args:
            setup: Its `setup`.
        """
        game = self.scenario.game
        return {"run": setup.fleet.streams.run, "members": game.members, "nonmembers": game.nonmembers}

    def work(self, branch: Branch) -> int:
        """The number of client trainings in a branch; a reference model counts as the run."""
        plan = self.plan
        return branch.attack.trainings(
            branch.rounds, plan.population, plan.most_in_a_sum, self.scenario.warm_up
        )

    @property
    def label(self) -> str:
        """The run in a few words, for progress."""
        bare = self.plan.mechanism is None and not self.scenario.arm
        prefix = "" if bare else f"{self.scenario.label}, "
        return f"{prefix}seed {self.scenario.seed}"


def train(run: TargetRun) -> None:
    """Trains a run up to where the attack begins, and stores it.

    Its account was opened before (`open_account`), so that training it again does not empty it.
    """
    setup = run.setup()
    checkpoint = Checkpoint(run.scenario.warm_up, setup.warm_up(), run.facts(setup))
    RunDirectory(run.folder).save_checkpoint(checkpoint)


def is_trained(run: TargetRun) -> bool:
    """Whether the trained run is there, and whole."""
    try:
        stored_run(run)
    except InputError:
        return False
    return True


def stored_run(run: TargetRun, setup: GameSetup | None = None) -> Tensors:
    """The trained run, as `GameSetup.warm_up` gave it.

    Args:
        run: The run.
        setup: Its setup, where it has been made.

    Raises:
        InputError: it is not there, or it is another run: other members, settings, data or rounds.
    """
    stored = RunDirectory(run.folder).load_checkpoint()
    if stored is None:
        raise InputError(
            f"{run.folder}: holds no trained run of seed {run.scenario.seed}. Play the scenario anew."
        )
    if stored.facts != run.facts(setup or run.setup()) or stored.rounds != run.scenario.warm_up:
        raise InputError(
            f"{run.folder}: another run than the scenario's: its members, training, privacy, data or warm-up "
            "differ. Only the attacks may be changed; else play the scenario anew."
        )
    weights = stored.tensors.get("weights")
    if weights is None or weights.ndim != 1:
        raise InputError(
            f"{run.folder}: its checkpoint is damaged: it holds no weights. Play the scenario anew."
        )
    return stored.tensors


def run_branch(run: TargetRun, branch: Branch, spent: AttackRounds) -> dict[str, Any]:
    """Runs one branch on one run, in any process; the results of its attacks as JSON (`scoring.to_json`)."""
    setup = run.setup()
    tensors = stored_run(run, setup)
    if isinstance(branch.attack, TrialAttack):
        transcript = _of_trials(run, setup, branch, branch.attack)
        return to_json(attack_in_trials(setup, branch, tensors, spent, transcript))
    if branch.silent:
        return to_json(attack_released_model(run.scenario, setup, branch, tensors))
    judgement = Judgement(setup.probe)
    began = time.perf_counter()
    outcome = _seen(run, setup, branch, tensors, judgement, spent)
    results_by_attack = {}
    for name in branch.names:
        attack = run.scenario.attacks[name]
        assert isinstance(attack, RoundsAttack)
        rounds = attack.watched
        after = outcome.after[rounds[-1] + 1 if rounds else max(outcome.after)]
        try:
            results_by_attack[name] = score_attack(
                attack.features(judgement),
                setup.game,
                setup.probe,
                delta=run.scenario.privacy.delta or 0.0,
                ascended=torch.from_numpy(tensors["weights"].astype(np.float32)) if branch.active else None,
                observed=[number for number in rounds if number in judgement.passes],
                accuracy=(outcome.before, after),
                seconds=(time.perf_counter() - began) / len(branch.names),
            )
        except InputError as error:
            raise InputError(f"attacks.{name}: {error}") from error
    return to_json(results_by_attack)


def _of_trials(
    run: TargetRun, setup: GameSetup, branch: Branch, attack: TrialAttack
) -> TrialRecording | None:
    """The transcript of an attack in trials, stored or to be written; None: the scenario wants none."""
    stored = run.transcript(branch)
    if isinstance(stored, TrialRecording) or not run.scenario.game.transcripts:
        return stored if isinstance(stored, TrialRecording) else None
    size = (8 * attack.trials + 4 * attack.rounds) * setup.fleet.parameters  # with the models of its rounds
    return TrialRecording(run.folder / SEEN / attack.view / attack.recording, stores=size <= MOST_BYTES)


def _seen(
    run: TargetRun,
    setup: GameSetup,
    branch: Branch,
    tensors: Tensors,
    judgement: Judgement,
    spent: AttackRounds,
) -> attacker_seats.Outcome:
    """Shows a branch to the scoring: from its transcript if one exists, else by running it."""
    stored = run.transcript(branch)
    if stored is not None:
        for sight in stored.sights(branch.watched, len(tensors["weights"])):
            judgement.see(sight)
        try:
            return attacker_seats.Outcome.of(stored.facts, branch.watched)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise stored.damaged(stored.folder, error) from error
    view = branch.attack.view
    if view is None or not run.scenario.game.transcripts:
        return attacker_seats.attack_from_seat(setup, branch, tensors, judgement.see, spent)
    recording = Recording(run.folder / SEEN / view / str(branch.rounds))

    def see(sight: Sight) -> None:
        judgement.see(sight)
        recording.add(sight)

    outcome = attacker_seats.attack_from_seat(setup, branch, tensors, see, spent)
    recording.close(branch.watched, outcome.to_json())
    return outcome
