"""One attacked run: trained up to the start of the attacks, and continued for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from flwr.clientapp.typing import Mod
from flwr.serverapp import Grid
from numpy.typing import NDArray

from clients.app import charge, make_app
from clients.fleet import Fleet
from clients.joint_training import JointTraining
from fedprivacy.attacks.game import Game, draw_game, game_without_targets
from fedprivacy.attacks.signals import Probe
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.io.processes import use_one_thread
from fedprivacy.models.evaluation import Evaluation, evaluate
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import Population, population
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.training.early_stopping import has_stopped
from fedprivacy.training.features import on_features
from scenarios.attacks.chunks_apart import chunks_apart
from scenarios.attacks.participation_budget import NOTHING, AttackRounds
from scenarios.engines.embedded import EmbeddedGrid
from server.app import federation_of
from server.secure_sum import secured
from server.strategy import Federation

Tensors = dict[str, NDArray[Any]]
WARM_UP_CHUNK = 1024  # clients in one message of the warm-up, or more if the scenario has more
ROUNDS_TRAINED = "warm-up/played"  # key of the number of rounds of a warm-up, shape (1,)


@dataclass(frozen=True)
class Stage:
    """A run at the end of its warm-up, from which branches continue.

    Args:
        grid: The way to the nodes.
        federation: The honest server.
        quality: Measures the global model on held-out records.
    """

    grid: EmbeddedGrid
    federation: Federation
    quality: Callable[[], Evaluation]


def rounds_trained(tensors: Tensors, scenario: AttackScenario) -> int:
    """The number of rounds that a run was trained for (`GameSetup.warm_up`)."""
    return int(tensors[ROUNDS_TRAINED][0]) if ROUNDS_TRAINED in tensors else scenario.warm_up


class GameSetup:
    """A run with a membership game, trained through the real apps up to the attacks.

    Args:
        scenario: The attack scenario, with the seed of this run.
        plan: Its plan, if already calibrated.
        people: Replaces the data that the scenario names; as many clients.

    Raises:
        InputError: the game cannot be drawn, or test records belong to clients, or may.
    """

    def __init__(
        self, scenario: AttackScenario, plan: Plan | None = None, people: Population | None = None
    ) -> None:
        use_one_thread()
        settings = scenario.game
        self.scenario = scenario
        dealt = people or population(scenario.data)
        _refuse_tested_clients(dealt)
        self.game: Game = (
            draw_game(dealt, settings.victim, settings.members, settings.nonmembers, scenario.seed)
            if scenario.membership_attacks
            else game_without_targets(dealt, settings.victim)
        )
        # The sizes before the coins: rates and denominators that followed the coins would reveal memberships.
        self.fleet = Fleet.of(scenario, self.game.people, plan, sizes=dealt.partition.sizes)
        rows = torch.from_numpy(self.game.targets)
        head, features = on_features(self.fleet.module, self.fleet.x[rows].cpu())
        self.probe = Probe(head, features, self.fleet.y[rows].cpu())

    def warm_up(self) -> Tensors:
        """Trains up to the start of the attacks, or until early stopping ends training.

        Returns:
            The state of the server and of the nodes, and the number of rounds.
        """
        # No attack observes the warm-up, so that its clients need no messages of their own.
        grid, measured = self._grid(replace(self.fleet, alone=False)), self.scenario.evaluation
        federation, quality = self._federation(secured(grid, self.fleet.plan), measured.on)
        federation.chunk_size = max(federation.chunk_size, WARM_UP_CHUNK)
        patience = self.scenario.server.patience
        losses: list[float] = []
        for number in range(self.scenario.warm_up):
            federation.round(number)
            if patience is not None and (number + 1) % measured.every == 0:
                losses.append(quality().loss)
                if has_stopped(losses, patience):
                    break
        trained = number + 1 if self.scenario.warm_up else 0
        return {**federation.state(), **grid.node_states(), ROUNDS_TRAINED: np.array([trained])}

    @property
    def scale(self) -> float:
        """The factor from the victim's answers to steps of weights; not 1 for sums of gradients."""
        plan, sizes = self.fleet.plan, self.fleet.sizes
        if plan.trust != "central" or plan.batches is None:
            return 1.0
        return self.fleet.training.learning_rate / plan.batches.mean_size(int(sizes[self.game.victim]))

    def accuracies(self, weights: NDArray[np.float32]) -> tuple[float, float]:
        """The accuracy of a model on all records that clients trained on, and on held-out ones."""
        people, module = self.game.people, self.fleet.module
        order = people.partition.order
        train = evaluate(module, weights, people.dataset.x[order], people.dataset.y[order])
        return train.accuracy, evaluate(module, weights, *people.held_out("test")).accuracy

    @property
    def _everybody(self) -> bool:
        """Whether all clients take part in each round."""
        return isinstance(self.fleet.plan.sampler, AllSampling) and not self.fleet.dropout

    def _grid(self, fleet: Fleet, mods: tuple[Mod, ...] = (), apart: int | None = None) -> EmbeddedGrid:
        # Where cohorts are drawn, most of a joint training would be of clients that nobody asks.
        apart = self.game.victim if apart is None else apart
        joint = JointTraining(apart, self.fleet.alone) if self._everybody else None
        return EmbeddedGrid(make_app(fleet, mods, joint), [{"partition-id": 0, "num-partitions": 1}])

    def _federation(self, grid: Grid, on: str = "test") -> tuple[Federation, Callable[[], Evaluation]]:
        ledger = Ledger(self.fleet.plan, sizes=self.fleet.sizes)
        federation, module = federation_of(grid, self.scenario, ledger, self.game.people, self.fleet.model)
        held_out = self.game.people.held_out(on)
        return federation, lambda: evaluate(module, federation.released, *held_out)

    def streams_of(self, trial: int, streams: Streams | None = None) -> Streams:
        """The streams of a repetition, by which cohorts, batches and noise are drawn anew.

        Args:
            trial: Which repetition.
            streams: Those of the branch; None: the run's.
        """
        streams = streams or self.fleet.streams
        return replace(streams, seed=int(streams.stream("attack/trial", member=trial).integers(2**63)))

    def resume(
        self,
        key: str,
        tensors: Tensors,
        spent: AttackRounds = NOTHING,
        wrap: Callable[[Grid], Grid] = lambda grid: grid,
        mods: tuple[Mod, ...] = (),
        trial: int | None = None,
        attacker: int | None = None,
    ) -> Stage:
        """Restores the run at the end of its warm-up, for one branch.

        Args:
            key: The identity of the branch. Two branches send different models in the same rounds: with equal
                noise, an observer of both could subtract the answers. The noise is therefore keyed by
                everything that the requests depend on: this key, the game, and the refusals so far.
            tensors: The state from `warm_up`.
            spent: The cost of the other branches.
            wrap: Puts an adversary into the server's seat, where secure sums show sums alone.
            mods: Flower mods around the clients: an adversary in a participant's seat.
            trial: Which repetition of its rounds, with cohorts and batches of its own too; None: the run's.
            attacker: The participant around whose client a mod is. No message to the others is observed then,
                so that they are sent one together where a round's model stays the same but for the order in
                which updates are added up.
        """
        game = self.scenario.game
        identity = (key, game.members, game.nonmembers, self.scenario.warm_up, spent.everybody, spent.victim)
        streams = replace(self.fleet.streams, run="/".join(map(str, (self.fleet.streams.run, *identity))))
        if trial is not None:
            streams = self.streams_of(trial, streams)
        fleet = replace(self.fleet, streams=streams)
        sums = fleet.plan.noise_draw != "sum" and self.scenario.federation.observe == "sum"
        apart = attacker if fleet.alone and sums and self._everybody else None
        grid = self._grid(replace(fleet, alone=fleet.alone and apart is None), mods, attacker)
        grid.restore_node_states(tensors)
        answers = np.full(fleet.plan.population, spent.everybody, dtype=np.int32)
        answers[self.game.victim] += spent.victim
        for state in grid.states.values():
            charge(state, fleet, answers)
        federation, quality = self._federation(wrap(secured(grid, fleet.plan)))
        federation.restore(tensors)
        federation.streams = streams
        if apart is not None:
            federation.chunk_size = fleet.plan.population
            federation.cut = partial(chunks_apart, apart=apart)
        return Stage(grid, federation, quality)


def _refuse_tested_clients(people: Population) -> None:
    """Refuses test records of clients: all may see the accuracies of a game, which have no noise.

    Raises:
        InputError: test records belong to clients, or may.
    """
    if people.test_owned:
        raise InputError(
            "data.path: test records belong to clients, or may, and the accuracies of attacked models depend "
            "on them without any noise. Take test records of other users, whom user_test names."
        )
