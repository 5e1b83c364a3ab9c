"""One run that is attacked: trained, stored, and played on by each branch of its attacks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from fedprivacy.attacks.recording import Recording
from fedprivacy.attacks.transcript import Judgement, Sight
from fedprivacy.errors import InputError
from fedprivacy.plan import Plan
from fedprivacy.runs import Checkpoint, RunDirectory
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch, branches_of, seat_of
from fedprivacy.scenario.attack.sections import Passive
from scenarios import seats
from scenarios.arena import Arena, Tensors
from scenarios.judging import Judged, judge
from scenarios.spending import Spent, spend


@dataclass(frozen=True)
class Attacked:
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
        """What is played on it."""
        game = self.scenario.game
        return branches_of(self.scenario.attacks, game.members + game.nonmembers)

    def arena(self) -> Arena:
        """The run and its game."""
        return Arena(self.scenario, self.plan)

    def spend(self) -> list[Spent]:
        """Charges the trained run for its branches; for each what those before it have cost."""
        return spend(self.folder, self.branches, self.plan, self.scenario.warm_up)

    def work(self, branch: Branch) -> int:
        """How many times a client trains in a branch."""
        return branch.rounds * (1 if branch.attack.isolating else self.plan.population)

    @property
    def label(self) -> str:
        """The run in a few words, for progress."""
        privacy = self.scenario.privacy
        kept = f"epsilon {privacy.epsilon:g}, " if privacy.epsilon else ""
        return f"{kept}seed {self.scenario.seed}"


def train(run: Attacked) -> None:
    """Trains a run up to where the attack begins, and stores it."""
    run.folder.mkdir(parents=True, exist_ok=True)
    arena = run.arena()
    facts = {"run": arena.fleet.streams.run}
    checkpoint = Checkpoint(run.scenario.warm_up, arena.warm_up(), facts)
    RunDirectory(run.folder).save_checkpoint(checkpoint)


def stored_run(run: Attacked, arena: Arena) -> Tensors:
    """The trained run, as `Arena.warm_up` gave it.

    Raises:
        InputError: it is not there, or it is another run: other members, settings, data or rounds.
    """
    stored = RunDirectory(run.folder).load_checkpoint()
    if stored is None:
        raise InputError(
            f"{run.folder}: holds no trained run of seed {run.scenario.seed}. Play the scenario anew."
        )
    if stored.facts.get("run") != arena.fleet.streams.run or stored.rounds != run.scenario.warm_up:
        raise InputError(
            f"{run.folder}: another run than the scenario's: its members, training, privacy, data or warm-up "
            "differ. Only the attacks may be changed; else play the scenario anew."
        )
    return stored.tensors


def play(run: Attacked, branch: Branch, spent: Spent) -> dict[str, Judged]:
    """One branch of one run, in any process: what each of its attacks amounts to."""
    arena = run.arena()
    tensors = stored_run(run, arena)
    judgement = Judgement(arena.probe)
    began = time.perf_counter()
    if branch.active:
        outcome = seats.play(arena, branch, tensors, judgement.see, spent)
    else:
        outcome = _watched(run, arena, branch, tensors, judgement, spent)
    found = {}
    for name in branch.names:
        attack = run.scenario.attacks[name]
        rounds = attack.watched if isinstance(attack, Passive) else None
        after = outcome.after[max(outcome.after) if rounds is None else rounds[-1] + 1]
        try:
            found[name] = judge(
                judgement.features(rounds),
                arena.game,
                arena.probe,
                delta=run.scenario.privacy.delta or 0.0,
                ascended=torch.from_numpy(tensors["weights"].astype(np.float32)) if branch.active else None,
                accuracy=(outcome.before, after),
                seconds=(time.perf_counter() - began) / len(branch.names),
            )
        except InputError as error:
            raise InputError(f"attacks.{name}: {error}") from error
    return found


def _watched(
    run: Attacked, arena: Arena, branch: Branch, tensors: Tensors, judgement: Judgement, spent: Spent
) -> seats.Outcome:
    """What a passive seat sees, from its transcript if there is one of all these rounds; else it is made."""
    assert isinstance(branch.attack, Passive)
    seen = run.folder / "seen" / seat_of(branch.attack)
    for folder in sorted(seen.glob("*")):
        recording = Recording(folder)
        if recording.whole and recording.covers(branch.watched):
            for sight in recording.sights(branch.watched):
                judgement.see(sight)
            return seats.Outcome.of(recording.facts)
    recording = Recording(seen / str(branch.rounds))

    def see(sight: Sight) -> None:
        judgement.see(sight)
        if run.scenario.game.transcripts:
            recording.add(sight)

    outcome = seats.play(arena, branch, tensors, see, spent)
    if run.scenario.game.transcripts:
        recording.close(branch.watched, outcome.to_json())
    return outcome
