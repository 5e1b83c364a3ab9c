"""Runs one branch of an attacked run: the attackers' seats, and the requests of each round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from clients.adversary import Participant
from clients.app import answers_given
from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.game import Ids
from fedprivacy.attacks.transcript import Sight
from fedprivacy.attacks.trap_units import STEEPNESS, TrapUnits
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.attack.branches import Branch
from fedprivacy.scenario.attack.sections import Ascent as AscentSettings
from fedprivacy.scenario.attack.sections import Attack, Passive
from scenarios.attacks.game_setup import GameSetup, Tensors
from scenarios.attacks.participation_budget import NOTHING, AttackRounds
from scenarios.attacks.reference_clients import ReferenceClients
from server.adversary import Climber, Interposed, Isolator, Listener, Raise, SumObserver, places_of
from server.hosts import deal_hosts
from server.sampling import draw_cohort
from server.strategy import Federation

MOST_DRAWN = 10_000  # cohorts drawn for one with the victim
See = Callable[[Sight], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a branch.

    Args:
        before: The accuracy of the attacked model on held-out records before the branch.
        after: The same after each observed round of it, and after the last, by the number of rounds.
    """

    before: float
    after: Mapping[int, float]

    @classmethod
    def of(cls, facts: Mapping[str, Any], watched: Iterable[int]) -> Outcome:
        """Reads an object that `to_json` wrote.

        Raises:
            ValueError: it lacks one of the observed rounds.
        """
        after = {int(rounds): float(value) for rounds, value in facts["after"].items()}
        if not {number + 1 for number in watched} <= after.keys():
            raise ValueError("the accuracy after a round is missing")
        return cls(float(facts["before"]), after)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"before": self.before, "after": {str(rounds): value for rounds, value in self.after.items()}}


def attack_from_seat(
    setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds = NOTHING
) -> Outcome:
    """Runs a branch from the end of the warm-up.

    Args:
        setup: The run and its game.
        branch: The branch to run.
        tensors: The state from `GameSetup.warm_up`.
        see: Receives each observation; for passive attacks those of the watched rounds.
        spent: The cost of the other branches.
    """
    seat = _isolated if branch.attack.isolating else _participant
    if branch.attack.seat == "server" and not branch.attack.isolating:
        seat = _sums if branch.attack.in_sum else _server
    watched = set(branch.watched)

    def watch(sight: Sight) -> None:
        if branch.active or sight.round in watched:
            see(sight)

    return seat(setup, branch, tensors, watch, spent)


def raise_of(setup: GameSetup, attack: Attack) -> Raise | None:
    """The way in which a scenario's attack raises losses; None for a passive one."""
    if isinstance(attack, AscentSettings) and attack.trap_units is not None:
        references, _ = setup.fleet.people.held_out("test")
        return TrapUnits(
            setup.fleet.module,
            references,
            Streams(setup.scenario.seed).stream("attack/trap-units"),
            units=attack.trap_units,
            level=attack.level,
            steepness=attack.steepness or STEEPNESS,
        )
    return ascent_of(attack)


def ascent_of(attack: Attack) -> Ascent | None:
    """The gradient steps of a scenario's attack; None for a passive one."""
    if not isinstance(attack, AscentSettings):
        return None
    return Ascent(None if attack.raw else attack.level, attack.step, attack.tries)


def _turns(setup: GameSetup, branch: Branch) -> list[Ids | None]:
    """The targets of each round, in a random order; for a passive attack None: all are judged."""
    attack = branch.attack
    if isinstance(attack, Passive):
        return [None] * (attack.watched[-1] + 1)
    assert isinstance(attack, AscentSettings)
    order = Streams(setup.scenario.seed).stream("attack/order").permutation(len(setup.game.targets))
    size = attack.targets_per_round
    return [order[start : start + size] for start in range(0, len(order), size)]


def _server(setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds) -> Outcome:
    victim, ascent = setup.game.victim, raise_of(setup, branch.attack)
    listener = Listener(victim, see, scale=setup.scale)
    if ascent is not None:
        everybody = isinstance(branch.attack, AscentSettings) and branch.attack.everybody
        listener = Climber(
            victim, see, scale=setup.scale, probe=setup.probe, ascent=ascent, everybody=everybody
        )
    stage = setup.resume(branch.key, tensors, spent, lambda grid: Interposed(grid, listener))
    before, after = stage.quality().accuracy, {}
    turns = _turns(setup, branch)
    for turn, targets in enumerate(turns):
        listener.round, listener.targets = turn, targets
        stage.federation.round(setup.scenario.warm_up + turn)
        listener.close()
        if turn in branch.watched or turn == len(turns) - 1:
            after[turn + 1] = stage.quality().accuracy
    return Outcome(before, after)


def _sums(setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds) -> Outcome:
    attack, ascent = branch.attack, raise_of(setup, branch.attack)
    observer = SumObserver(
        victim=setup.game.victim,
        see=see,
        references=ReferenceClients(setup).updates,
        ascent=ascent,
        probe=None if ascent is None else setup.probe,
        everybody=isinstance(attack, AscentSettings) and attack.everybody,
        scale=setup.scale,
    )
    stage = setup.resume(branch.key, tensors, spent, lambda grid: Interposed(grid, observer))
    if _sums_alike(setup) and (ascent is None or observer.everybody):
        stage.federation.chunk_size = setup.fleet.plan.population
    # A resumed server knows from the warm-up who has answered how often, and requests nobody in vain.
    if (given := answers_given(stage.grid.states, setup.fleet)) is not None:
        stage.federation.ledger.participations = given
    before, after = stage.quality().accuracy, {}
    number: int | None = setup.scenario.warm_up
    turns = _turns(setup, branch)
    for turn, targets in enumerate(turns):
        observer.round, observer.targets = turn, targets
        number = None if number is None else _next_with(stage.federation, setup.game.victim, number)
        if number is not None:
            _, total = stage.federation.round(number)
            observer.close(total)
            number += 1
        if turn in branch.watched or turn == len(turns) - 1:
            after[turn + 1] = stage.quality().accuracy
    return Outcome(before, after)


def _sums_alike(setup: GameSetup) -> bool:
    """Whether one message for all clients gives the sum of a message for each, to the last bit.

    It does where clients train and privatise one by one, a node adds their updates up in the order in which
    the server would, and no draw of noise serves a whole message.
    """
    plan, federation = setup.fleet.plan, setup.scenario.federation
    in_order = federation.hosts == 1 and federation.observe == "sum"
    return setup.fleet.alone and in_order and plan.noise_draw != "sum"


def _next_with(federation: Federation, victim: int, number: int) -> int | None:
    """The first round from a number on whose cohort has the victim; None if it has no answer left.

    A server chooses which rounds it runs, and a sum without the victim shows nothing of it: an attack takes
    the rounds with the victim alone. The guarantees that hold here rest on no secret cohort
    (`scenario.attack.rules`).

    Raises:
        InputError: the victim is drawn too rarely.
    """
    eligible = federation.ledger.eligible()
    if eligible is not None and victim not in eligible:
        return None
    for later in range(number, number + MOST_DRAWN):
        if victim in draw_cohort(federation.plan, federation.ledger, federation.streams, later):
            return later
    raise InputError(
        f"game.victim = {victim}: is in none of {MOST_DRAWN:,} cohorts. Set a larger cohort or rate in "
        "[sampling]."
    )


def _isolated(setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds) -> Outcome:
    victim, hosts = setup.game.victim, setup.scenario.federation.hosts
    stage = setup.resume(branch.key, tensors, spent)
    host, weights = victim % hosts, torch.from_numpy(stage.federation.model)
    node = deal_hosts(stage.grid, hosts).nodes[host]
    isolator = Isolator(stage.grid, node, host, setup.fleet.plan, victim, weights, setup.scale)
    ascent, turns = raise_of(setup, branch.attack), _turns(setup, branch)
    for turn, targets in enumerate(turns):
        aim = None if targets is None else setup.probe.at(targets)
        sight = isolator.ask(setup.scenario.warm_up + turn, aim, ascent)
        if sight is not None:
            see(replace(sight, targets=targets, round=turn, places=places_of(ascent, targets)))
    before = stage.quality().accuracy  # the attack does not change the global model
    return Outcome(before, {turn + 1: before for turn in (*branch.watched, len(turns) - 1)})


def _participant(
    setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds
) -> Outcome:
    attack = branch.attack
    assert isinstance(attack, Passive | AscentSettings)
    attacker = attack.attacker if attack.attacker is not None else int(setup.game.victim == 0)
    mod = Participant(attacker, 0.0, see, probe=setup.probe)
    stage = setup.resume(branch.key, tensors, spent, mods=(mod,), attacker=attacker)
    mod.share = setup.scenario.server.learning_rate / stage.federation.denominator
    mod.most = stage.federation.longest
    if isinstance(attack, AscentSettings):
        mod.ascent, mod.boost = ascent_of(attack), float(attack.boost or stage.federation.denominator)
    before, after, number = stage.quality().accuracy, {}, setup.scenario.warm_up
    for turn, targets in enumerate(_turns(setup, branch)):
        if targets is not None:
            mod.climbing = targets
            stage.federation.round(number)
            mod.climbing, number = None, number + 1
        _, total = stage.federation.round(number)
        if total.refused:  # all clients have equal counts, so the victim has refused too
            mod.forget()
        mod.round, mod.watched, number = turn, targets, number + 1
        if turn in branch.watched:
            after[number - setup.scenario.warm_up] = stage.quality().accuracy
    stage.federation.round(number)  # shows the effect of the last round on the model
    after[number + 1 - setup.scenario.warm_up] = stage.quality().accuracy
    return Outcome(before, after)
