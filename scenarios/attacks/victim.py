"""A seat's access to the attacked client: its answers in worlds where it has other records."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from flwr.clientapp.typing import Mod
from numpy.typing import NDArray
from torch import nn

from clients.chunk_training import ChunkTrainer, client_chunks
from clients.poisoner import Poisoner, poisoned_fleet
from fedprivacy.attacks.poisoned_records import Poison
from fedprivacy.attacks.stored_trials import TrialRecording
from fedprivacy.attacks.trials import Records, Rows
from fedprivacy.data.groups import grouping
from fedprivacy.data.record_columns import feature
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.prediction import named_classes
from fedprivacy.scenario.data import FileData
from scenarios.attacks.dealt_clients import dealt_fleet
from scenarios.attacks.game_setup import GameSetup, Stage
from server.strategy import add_central_noise

Ids = NDArray[np.int64]
Models = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class AttackedClient:
    """The victim of a run, as `fedprivacy.attacks.trials.Victim` describes it.

    Worlds are clients of one fleet with the victim's plan, size and training. They train in calls as clients
    do, each with its own draws.

    Args:
        setup: The run and its game.
        seat: "server" for each update, "participant" for the sum of all with the server's noise.
        models: The model that clients are sent in each observed round, each of shape (parameters,).
        first: The number of the first observed round.
        key: The identity of the attack, which keys its noise.
        in_sum: Whether the server sees the sum of all clients alone, and knows no other client's answer.
        resume: Resumes the run at the first observed round for a repetition, by its number, with Flower mods
            around the clients; None before anything is trained.
        rounds: The number of observed rounds.
        observed: The key of the answers that are an attack's observations, not its own imitations.
        transcript: Holds or takes what is observed; None: it is not stored.
    """

    setup: GameSetup
    seat: str
    models: Models
    first: int
    key: str
    in_sum: bool = False
    resume: Callable[[int, tuple[Mod, ...]], Stage] | None = None
    rounds: int = 0
    observed: str = ""
    transcript: TrialRecording | None = None

    @property
    def weights(self) -> Models:
        """The model that clients are sent in each observed round, each of shape (parameters,)."""
        return self.models

    @property
    def size(self) -> int:
        """The number of the victim's records."""
        return int(self.setup.fleet.sizes[self.setup.game.victim])

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.setup.game.people.dataset.classes

    @property
    def count(self) -> int:
        """The number of all records."""
        return len(self.setup.game.people.dataset.y)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.setup.game.people.dataset.feature_names

    def pools(self) -> tuple[Ids, Ids]:
        """The victim's records with half of the public ones, and the other half."""
        partition, victim = self.setup.game.people.partition, self.setup.game.victim
        public = self.stream("trials/pools").permutation(partition.public)
        half = len(public) // 2
        return np.concatenate([partition.records(victim), public[:half]]), public[half:]

    @property
    def module(self) -> nn.Module:
        """The model."""
        return self.setup.fleet.module

    @property
    def local_steps(self) -> tuple[int, float]:
        """The steps of a client that trains on all its records at once, and their learning rate."""
        training = self.setup.fleet.training
        return training.batches.steps_in(self.size), training.learning_rate

    @property
    def is_noisy(self) -> bool:
        """Whether observations have noise that `answers` cannot leave out."""
        plan = self.setup.fleet.plan
        noise = plan.randomiser if self.seat == "server" else plan.central_noise
        return noise is not None and not isinstance(noise, Gaussian)

    def records(self, numbers: Ids) -> Records:
        """The records of these numbers, and their labels."""
        fleet = self.setup.fleet
        return fleet.x[numbers].cpu().numpy(), fleet.y[numbers].cpu().numpy()

    def with_records(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> AttackedClient:
        """The same victim in data with further records."""
        setup, people = copy.copy(self.setup), self.setup.game.people
        data = replace(
            people.dataset,
            x=np.concatenate([people.dataset.x, x]),
            y=np.concatenate([people.dataset.y, y]),
        )
        larger = replace(people, dataset=data)
        setup.game, setup.fleet = replace(setup.game, people=larger), replace(setup.fleet, people=larger)
        return replace(self, setup=setup)

    def sending(self, weights: NDArray[np.float32]) -> AttackedClient:
        """The same victim, sent this model in each observed round."""
        return replace(self, models=(weights,) * len(self.models))

    def groups(self, column: str | None) -> tuple[Ids, tuple[str, ...]]:
        """The group of each record, and the names of the groups.

        Raises:
            InputError: the data have no such column.
        """
        if column is None:
            return self.setup.game.people.dataset.y, tuple(map(str, range(self.classes)))
        data = self.setup.scenario.data
        values = feature(data.file, column, "train") if isinstance(data, FileData) else None
        if values is None:
            raise InputError(f"column = {column!r}: no feature of the records. Correct it.")
        groups = grouping(column, values)
        return groups.codes, groups.labels

    @property
    def deviation(self) -> float:
        """The standard deviation of the Gaussian noise on an observation over all rounds; else 0."""
        plan = self.setup.fleet.plan
        mechanism = plan.randomiser if self.seat == "server" else plan.central_noise
        of_a_round = mechanism.standard_deviation if isinstance(mechanism, Gaussian) else 0.0
        return self.setup.scale * of_a_round * math.sqrt(len(self.models))

    def answers(self, worlds: Sequence[Ids], key: str, *, first: int = 0, noisy: bool = True) -> Rows:
        """What the seat observes of the victim in each world, summed over the observed rounds."""
        if self.transcript is None or not noisy or key != self.observed:
            return self._seen(worlds, key, first, noisy)
        secret = b"|".join(np.asarray(world, np.int64).tobytes() for world in worlds)
        return self.transcript.observed(
            *(key, first, secret, lambda: self._seen(worlds, key, first, noisy=True)),
            shape=(len(worlds), self.setup.fleet.parameters),
            dtype=np.float64,
        )

    def _seen(self, worlds: Sequence[Ids], key: str, first: int, noisy: bool) -> Rows:
        # The agreed number of records, also of smaller worlds: rates and noise are by it.
        numbers = range(first, first + len(worlds))
        sizes = np.full(len(worlds), self.size)
        rows = self._answers(worlds, sizes, key, first=first, noisy=noisy)
        return rows + self._of_others(numbers, key) if self.in_sum else rows

    def _of_others(self, numbers: range, key: str) -> Rows:
        """The sum of all other clients' answers in worlds of these numbers, each time with fresh noise."""
        partition, victim = self.setup.game.people.partition, self.setup.game.victim
        worlds = [partition.records(client) for client in range(partition.clients) if client != victim]
        sizes = np.delete(self.setup.fleet.sizes, victim)
        total = self._answers(worlds, sizes, f"{key}/others", noisy=False).sum(axis=0)
        mechanism = self.setup.fleet.plan.randomiser
        if not isinstance(mechanism, Gaussian):
            return np.broadcast_to(total, (len(numbers), len(total)))
        streams = self.setup.fleet.streams.noises(f"attacks/{self.key}/{key}/others", numbers)
        shares = len(worlds) * len(self.models)
        noise = [mechanism.draw(len(total), stream, shares=shares) for stream in streams]
        return total + self.setup.scale * np.array(noise)

    def _answers(self, worlds: Sequence[Ids], sizes: Ids, key: str, *, first: int = 0, noisy: bool) -> Rows:
        setup, count = self.setup, len(worlds)
        # A world is the client of its number, by which noise and shuffles are keyed.
        streams = replace(setup.fleet.streams, run=f"{setup.fleet.streams.run}/{self.key}/{key}")
        fleet = dealt_fleet(setup.fleet, setup.game.people, worlds, sizes, streams, first=first)
        clients = np.arange(first, first + count)
        total = np.zeros((count, setup.fleet.parameters))
        for number, model in enumerate(self.models, start=self.first):
            request = TrainRequest(number, 0, 0, clients, model, fleet.plan, "each")
            trainer = ChunkTrainer(fleet, request)
            for chunk in client_chunks(fleet, clients, "each"):
                trained = trainer.trained(chunk)
                if noisy or not self.deviation:
                    part = trainer.privatised(chunk, trained)
                    total[part.clients - first] += part.private
                else:
                    bound = fleet.plan.clipping_norm if fleet.plan.unit == "client" else None
                    total[chunk - first] += clip(trained.updates.stack(), bound)[0].numpy()
            if self.seat == "participant" and (noisy or not self.deviation):
                for world, row in enumerate(total, start=first):
                    noise = replace(streams, run=f"{streams.run}/{world}")
                    row[:] = add_central_noise(row, fleet.plan, noise, number)
        return setup.scale * total

    def stream(self, purpose: str) -> np.random.Generator:
        """The random stream of a purpose, by the seed of the run."""
        return self.setup.fleet.streams.stream(purpose)

    @property
    def held_out(self) -> Records:
        """Held-out records, which no client trains on."""
        return self.setup.game.people.held_out("test")

    @property
    def brightest(self) -> float:
        """The largest value in held-out records."""
        return float(self.held_out[0].max(initial=0.0))

    def after_rounds(self, poison: Poison | None, trial: int) -> NDArray[np.float32]:
        """The model after the attacked rounds; honest and attacked ones of a trial have the same draws."""
        if self.transcript is None:
            return self._trained(poison, trial)
        key = "honest" if poison is None else "poisoned"
        make = partial(self._trained, poison, trial)
        secret, shape = repr(poison).encode(), (self.setup.fleet.parameters,)
        return self.transcript.observed(key, trial, secret, make, shape=shape, dtype=np.float32)

    def _trained(self, poison: Poison | None, trial: int) -> NDArray[np.float32]:
        assert self.resume is not None
        fleet, mod = replace(self.setup.fleet, streams=self.setup.streams_of(trial)), None
        if poison is not None:
            attackers = frozenset(range(poison.clients))
            mod = Poisoner(poisoned_fleet(fleet, poison.goal, attackers), attackers, passes=poison.passes)
        stage = self.resume(trial, () if mod is None else (mod,))
        federation, server = stage.federation, self.setup.scenario.server
        if mod is not None and poison is not None:
            # The sum of all boosted updates moves the model by the mean of those of the malicious clients.
            replaces = federation.denominator / server.learning_rate / poison.clients
            mod.boost = poison.boost or replaces
            mod.most = None if server.clips else federation.longest
        for number in range(self.first, self.first + self.rounds):
            federation.round(number)
        return federation.released

    def labels(self, weights: NDArray[np.float32], x: NDArray[np.float32]) -> NDArray[np.int64]:
        """The labels that a model gives records."""
        return named_classes(self.setup.fleet.module, weights, x)
