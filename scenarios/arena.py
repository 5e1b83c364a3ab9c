"""One attacked run: trained up to where the attack begins, and then continued under each adversary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from flwr.clientapp.typing import Mod
from flwr.serverapp import Grid
from numpy.typing import NDArray

from clients.adversary import Participant
from clients.app import make_app
from clients.fleet import Fleet
from fedprivacy.accounting.ledger import Ledger
from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.game import Game, Ids, draw_game
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Judgement
from fedprivacy.data.population import Population, population
from fedprivacy.models import Evaluation, evaluate
from fedprivacy.plan import Plan
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.seeds import Streams
from scenarios.engines.embedded import EmbeddedGrid
from server.adversary import Climber, Interposed, Isolator, Listener
from server.app import federation_of
from server.hosts import find_hosts
from server.strategy import Federation

Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Outcome:
    """What an attack has gathered.

    Args:
        judgement: The features of the targets; none of those that the victim's refusals cost.
        rounds: How many rounds it took.
        before: The attacked model on held-out records before the attack.
        after: And after it.
    """

    judgement: Judgement
    rounds: int
    before: Evaluation
    after: Evaluation


class Arena:
    """A run with a membership game, trained through the real apps up to where attacks begin.

    Args:
        scenario: The attack scenario, with the seed of this run.
        plan: Its plan, where it has been calibrated before.
        people: Replaces the data that the scenario names; as many clients.

    Raises:
        InputError: the game cannot be drawn.
    """

    def __init__(
        self, scenario: AttackScenario, plan: Plan | None = None, people: Population | None = None
    ) -> None:
        torch.set_num_threads(1)
        settings = scenario.game
        self.scenario = scenario
        self.game: Game = draw_game(
            people or population(scenario.data),
            settings.victim,
            settings.members,
            settings.nonmembers,
            scenario.seed,
        )
        self.fleet = Fleet.of(scenario, self.game.people, plan)
        rows = torch.from_numpy(self.game.targets)
        self.probe = Probe(self.fleet.module, self.fleet.x[rows], self.fleet.y[rows])

    def warm_up(self) -> Tensors:
        """Trains up to where attacks begin.

        Returns:
            The state there, of the server and of the nodes.
        """
        grid = self._grid(self.fleet)
        federation, _ = self._federation(grid)
        for number in range(self.scenario.warm_up):
            federation.round(number)
        return {**federation.state(), **grid.node_states()}

    def _grid(self, fleet: Fleet, mods: tuple[Mod, ...] = ()) -> EmbeddedGrid:
        return EmbeddedGrid(make_app(fleet, mods), [{"partition-id": 0, "num-partitions": 1}])

    def _federation(self, grid: Grid) -> tuple[Federation, Callable[[], Evaluation]]:
        ledger = Ledger(self.fleet.plan)
        federation, module = federation_of(grid, self.scenario, ledger, self.game.people, self.fleet.model)
        held_out = self.game.people.held_out("test")
        return federation, lambda: evaluate(module, federation.model, *held_out)

    def attack(self, name: str, tensors: Tensors) -> Outcome:
        """Plays one attack of the scenario from where the warm-up ended (`warm_up`)."""
        attack = self.scenario.attacks[name]
        if attack.seat == "participant":
            return self._participant(attack, tensors)
        play = self._isolated if attack.isolating else self._server
        return play(attack, tensors)

    def _turns(self, attack: Any) -> list[Ids | None]:
        """The targets of each round, in a random order; for a passive attack None: all are judged."""
        if attack.kind == "passive":
            return [None] * attack.rounds
        order = Streams(self.scenario.seed).stream("attack/order").permutation(len(self.game.targets))
        size = attack.targets_per_round
        return [order[start : start + size] for start in range(0, len(order), size)]

    def _restored(
        self,
        attack: Any,
        tensors: Tensors,
        wrap: Callable[[EmbeddedGrid], Grid] = lambda grid: grid,
        mods: tuple[Mod, ...] = (),
    ) -> tuple[EmbeddedGrid, Federation, Callable[[], Evaluation]]:
        # Two attacks on one run ask different things in the same rounds: answers with the same noise would
        # give it away to whoever holds both.
        streams = replace(
            self.fleet.streams, run=f"{self.fleet.streams.run}/{attack.model_dump_json(exclude_none=True)}"
        )
        grid = self._grid(replace(self.fleet, streams=streams), mods)
        grid.restore_node_states(tensors)
        federation, quality = self._federation(wrap(grid))
        federation.restore(tensors)
        federation.streams = streams
        return grid, federation, quality

    def _server(self, attack: Any, tensors: Tensors) -> Outcome:
        judgement, ascent = Judgement(self.probe), ascent_of(attack)
        listener = Listener(self.game.victim, judgement.see)
        if ascent is not None:
            listener = Climber(self.game.victim, judgement.see, probe=self.probe, ascent=ascent)
        _, federation, quality = self._restored(attack, tensors, lambda grid: Interposed(grid, listener))
        before, turns = quality(), self._turns(attack)
        for number, targets in enumerate(turns, self.scenario.warm_up):
            listener.targets = targets
            federation.round(number)
            listener.close()
        return Outcome(judgement, len(turns), before, quality())

    def _isolated(self, attack: Any, tensors: Tensors) -> Outcome:
        judgement, hosts = Judgement(self.probe), self.scenario.federation.hosts
        grid, federation, quality = self._restored(attack, tensors)
        host, weights = self.game.victim % hosts, torch.from_numpy(federation.model)
        node = find_hosts(grid, hosts)[host]
        isolator = Isolator(grid, node, host, self.fleet.plan, self.game.victim, weights)
        turns = self._turns(attack)
        for number, targets in enumerate(turns, self.scenario.warm_up):
            aim = None if targets is None else self.probe.at(targets)
            sight = isolator.ask(number, aim, ascent_of(attack))
            if sight is not None:
                judgement.see(replace(sight, targets=targets))
        return Outcome(judgement, len(turns), quality(), quality())

    def _participant(self, attack: Any, tensors: Tensors) -> Outcome:
        judgement, run = Judgement(self.probe), self.scenario
        clients = self.fleet.plan.population
        attacker = attack.attacker if attack.attacker is not None else int(self.game.victim == 0)
        share = run.server.learning_rate / self.fleet.plan.sampler.expected_cohort(clients)
        mod = Participant(attacker, share, judgement.see, probe=self.probe)
        if attack.kind == "active-gradient-ascent":
            mod.ascent, mod.boost = ascent_of(attack), float(attack.boost or clients)
        _, federation, quality = self._restored(attack, tensors, mods=(mod,))
        before, number = quality(), self.scenario.warm_up
        for targets in self._turns(attack):
            if targets is not None:
                mod.climbing = targets
                federation.round(number)
                mod.climbing, number = None, number + 1
            _, total = federation.round(number)
            if total.refused:  # all have answered as often, so that the victim has refused too
                mod.forget()
            mod.watched, number = targets, number + 1
        federation.round(number)  # which shows what the last one has made of the model
        return Outcome(judgement, number + 1 - self.scenario.warm_up, before, quality())


def ascent_of(attack: Any) -> Ascent | None:
    """How an attack of a scenario raises the loss; None if it does not."""
    if attack.kind == "passive":
        return None
    return Ascent(None if attack.raw else attack.level, attack.step, attack.tries)
