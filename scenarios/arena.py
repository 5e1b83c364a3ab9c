"""One attacked run: trained up to where the attack begins, and then continued under each adversary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from fedprivacy.data.population import population
from fedprivacy.models import Evaluation, evaluate
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
        judgement: The features of the targets.
        lost: How many targets the victim's refusals cost.
        rounds: How many rounds it took.
        before: The attacked model on held-out records before the attack.
        after: And after it.
    """

    judgement: Judgement
    lost: int
    rounds: int
    before: Evaluation
    after: Evaluation


class Arena:
    """A run with a membership game, trained through the real apps up to where attacks begin.

    Args:
        scenario: The attack scenario, with the seed of this run.
        tensors: The state at that point, where it was trained before; None: it is trained now.
    """

    def __init__(self, scenario: AttackScenario, tensors: Tensors | None = None) -> None:
        torch.set_num_threads(1)
        run, settings = scenario.run, scenario.game
        self.scenario = scenario
        self.game: Game = draw_game(
            population(run.data), settings.victim, settings.members, settings.nonmembers, run.seed
        )
        self.fleet = Fleet.of(run, self.game.people)
        rows = torch.from_numpy(self.game.targets)
        self.probe = Probe(self.fleet.module, self.fleet.x[rows], self.fleet.y[rows])
        self.tensors = self._warm_up() if tensors is None else tensors

    def _warm_up(self) -> Tensors:
        grid = self._grid()
        federation, _ = self._federation(grid)
        for number in range(self.scenario.warm_up):
            federation.round(number)
        return {**federation.state(), **grid.node_states()}

    def _grid(self, mods: tuple[Mod, ...] = ()) -> EmbeddedGrid:
        return EmbeddedGrid(make_app(self.fleet, mods), [{"partition-id": 0, "num-partitions": 1}])

    def _federation(self, grid: Grid) -> tuple[Federation, Callable[[], Evaluation]]:
        ledger = Ledger(self.fleet.plan)
        federation, module = federation_of(
            grid, self.scenario.run, ledger, self.game.people, self.fleet.model
        )
        held_out = self.game.people.held_out("test")
        return federation, lambda: evaluate(module, federation.model, *held_out)

    def attack(self, name: str) -> Outcome:
        """Plays one attack of the scenario from the state where the warm-up ended."""
        attack = self.scenario.attacks[name]
        judgement = Judgement(self.probe)
        climb = attack.kind == "active-gradient-ascent"
        parts = list(self._parts(attack.targets_per_round)) if climb else []
        if attack.seat == "participant":
            return self._participant(attack, judgement, parts)
        return self._server(attack, judgement, parts)

    def _parts(self, size: int) -> Iterator[Ids]:
        """The targets in a random order, so many at a time."""
        order = Streams(self.scenario.run.seed).stream("attack/order").permutation(len(self.game.targets))
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def _restored(
        self, wrap: Callable[[EmbeddedGrid], Grid], mods: tuple[Mod, ...] = ()
    ) -> tuple[EmbeddedGrid, Federation, Callable[[], Evaluation]]:
        grid = self._grid(mods)
        grid.restore_node_states(self.tensors)
        federation, quality = self._federation(wrap(grid))
        federation.restore(self.tensors)
        return grid, federation, quality

    def _server(self, attack: Any, judgement: Judgement, parts: list[Ids]) -> Outcome:
        victim, begin = self.game.victim, self.scenario.warm_up
        listener = Listener(victim, judgement.see)
        if parts:
            listener = Climber(victim, judgement.see, probe=self.probe, ascent=ascent_of(attack))
        grid, federation, quality = self._restored(lambda grid: Interposed(grid, listener))
        before, lost, number = quality(), 0, begin
        if attack.isolating:
            host = victim % self.scenario.run.federation.hosts
            node = find_hosts(grid, self.scenario.run.federation.hosts)[host]
            weights = torch.from_numpy(federation.model)
            isolator = Isolator(grid, node, host, self.fleet.plan, victim, weights)
            for part in parts or [None] * attack.rounds:
                raised = None
                if part is not None:
                    probe, how = self.probe.at(part), ascent_of(attack)
                    raised = lambda weights, probe=probe, how=how: how.climb(probe, weights)  # noqa: E731
                sight = isolator.ask(number, raised)
                number += 1
                if sight is None:
                    lost += len(self.game.targets) if part is None else len(part)
                else:
                    judgement.see(replace(sight, targets=part))
            return Outcome(judgement, lost, number - begin, before, quality())
        for part in parts or [None] * attack.rounds:
            if part is not None:
                listener.targets = part
            federation.round(number)
            number += 1
            if not listener.close(part):
                lost += 0 if part is None else len(part)
        return Outcome(judgement, lost, number - begin, before, quality())

    def _participant(self, attack: Any, judgement: Judgement, parts: list[Ids]) -> Outcome:
        victim, begin = self.game.victim, self.scenario.warm_up
        run, clients = self.scenario.run, self.fleet.plan.population
        attacker = attack.attacker if attack.attacker is not None else int(victim == 0)
        share = run.server.learning_rate / self.fleet.plan.sampler.expected_cohort(clients)
        boost = clients if not parts or attack.boost is None else attack.boost
        mod = Participant(attacker, share, float(boost), judgement.see, probe=self.probe)
        if parts:
            mod.ascent = ascent_of(attack)
        grid, federation, quality = self._restored(lambda grid: grid, (mod,))
        before, number = quality(), begin
        for part in parts:
            mod.climbing = part
            federation.round(number)
            mod.climbing = None
            federation.round(number + 1)
            number += 2
            mod.watched = part
        for _ in range(1 if parts else attack.rounds + 1):
            federation.round(number)
            number += 1
        return Outcome(judgement, 0, number - begin, before, quality())


def ascent_of(attack: Any) -> Ascent:
    """How an attack of a scenario raises the loss."""
    return Ascent(None if attack.raw else attack.level, attack.step, attack.tries)
