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
from fedprivacy.attacks.rounds_attack import RoundsAttack
from fedprivacy.attacks.transcript import Sight
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.attack.branches import Branch
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


def _attack(branch: Branch) -> RoundsAttack:
    """The attack of a branch that observes or changes messages."""
    assert isinstance(branch.attack, RoundsAttack)
    return branch.attack


def raise_of(setup: GameSetup, attack: RoundsAttack) -> Raise | None:
    """The way in which a scenario's attack raises losses; None for a passive one."""
    stream = Streams(setup.scenario.seed).stream("attack/trap-units")
    raising = attack.raising(setup.fleet.module, lambda: setup.fleet.people.held_out("test")[0], stream)
    # The account of the run covers what is not active.
    assert raising is None or attack.active, f"kind {attack.kind} raises losses and is not active"
    return raising


def _turns(setup: GameSetup, attack: RoundsAttack) -> list[Ids | None]:
    """The targets of each turn; None: all are judged."""
    order = Streams(setup.scenario.seed).stream("attack/order")
    return attack.turns(len(setup.game.targets), order)


def _server(setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds) -> Outcome:
    attack, victim = _attack(branch), setup.game.victim
    ascent = raise_of(setup, attack)
    listener = Listener(victim, see, scale=setup.scale)
    if ascent is not None:
        everybody = attack.addresses_all
        listener = Climber(
            victim, see, scale=setup.scale, probe=setup.probe, ascent=ascent, everybody=everybody
        )
    stage = setup.resume(branch.key, tensors, spent, lambda grid: Interposed(grid, listener))
    before, after = stage.quality().accuracy, {}
    turns = _turns(setup, attack)
    for turn, targets in enumerate(turns):
        listener.round, listener.targets = turn, targets
        stage.federation.round(setup.scenario.warm_up + turn)
        listener.close()
        if turn in branch.watched or turn == len(turns) - 1:
            after[turn + 1] = stage.quality().accuracy
    return Outcome(before, after)


def _sums(setup: GameSetup, branch: Branch, tensors: Tensors, see: See, spent: AttackRounds) -> Outcome:
    attack = _attack(branch)
    ascent = raise_of(setup, attack)
    observer = SumObserver(
        victim=setup.game.victim,
        see=see,
        references=ReferenceClients(setup).updates,
        ascent=ascent,
        probe=None if ascent is None else setup.probe,
        everybody=attack.addresses_all,
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
    turns = _turns(setup, attack)
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
    attack, victim, hosts = _attack(branch), setup.game.victim, setup.scenario.federation.hosts
    stage = setup.resume(branch.key, tensors, spent)
    host, weights = victim % hosts, torch.from_numpy(stage.federation.model)
    node = deal_hosts(stage.grid, hosts).nodes[host]
    isolator = Isolator(stage.grid, node, host, setup.fleet.plan, victim, weights, setup.scale)
    ascent, turns = raise_of(setup, attack), _turns(setup, attack)
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
    attack = _attack(branch)
    attacker = attack.attacker if attack.attacker is not None else int(setup.game.victim == 0)
    mod = Participant(attacker, 0.0, see, probe=setup.probe)
    stage = setup.resume(branch.key, tensors, spent, mods=(mod,), attacker=attacker)
    mod.share = setup.scenario.server.learning_rate / stage.federation.denominator
    mod.most = stage.federation.longest
    if isinstance(ascent := raise_of(setup, attack), Ascent):  # trap units would be averaged away
        mod.ascent, mod.boost = ascent, float(attack.multiplier or stage.federation.denominator)
    before, after, number = stage.quality().accuracy, {}, setup.scenario.warm_up
    for turn, targets in enumerate(_turns(setup, attack)):
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
