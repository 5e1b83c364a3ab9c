"""An attacker's own clients, whose updates show what to expect of clients that it does not see.

They train as the run's clients do, clipping included and noise left out, on records that no client owns: the
test records, which a server has to evaluate its model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from clients.chunk_training import ChunkTrainer, client_chunks, joined
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams
from scenarios.attacks.dealt_clients import dealt_fleet
from scenarios.attacks.game_setup import GameSetup


class ReferenceClients:
    """Trains clients on records that nobody owns, as many records each as a client has on average.

    Args:
        setup: The attacked run.

    Raises:
        InputError: there are fewer than two such records.
    """

    def __init__(self, setup: GameSetup) -> None:
        fleet = setup.fleet
        self._fleet, self._scale = fleet, setup.scale
        others = np.delete(fleet.sizes, setup.game.victim)
        self._records = max(1, round(float(others.mean()))) if len(others) else int(fleet.sizes.mean())
        x, y = fleet.people.held_out("test")
        if len(y) < 2:
            raise InputError(
                f"data: an attack on sums trains clients of its own on test records, of which there are "
                f"{len(y)}. Set data.test_records to some times the records of a client."
            )
        dataset = replace(fleet.people.dataset, x=x, y=y)
        self._people = Population(dataset, Partition(np.arange(0), np.zeros(1, np.int64), np.arange(0)))
        self._order = Streams(setup.scenario.seed).stream("attack/references").permutation(len(y))
        self._round = 0

    def updates(self, weights: Tensor, most: int) -> Tensor:
        """The updates of reference clients from some weights, float32, shape (clients, parameters).

        Args:
            weights: Where they begin, shape (parameters,).
            most: The most clients; fewer where there are too few records for them.
        """
        count = int(np.clip(len(self._order) // self._records, 2, most))
        dealt = np.array_split(self._order[: max(2, count * self._records)], count)
        streams = replace(self._fleet.streams, run=f"{self._fleet.streams.run}/references")
        plan, sizes = without_noise(self._fleet.plan, count), np.array(list(map(len, dealt)))
        fleet = dealt_fleet(self._fleet, self._people, dealt, sizes, streams, plan=plan)
        clients, number = np.arange(count), self._round
        request = TrainRequest(number, 0, 0, clients, weights.numpy(), fleet.plan, "each")
        trainer = ChunkTrainer(fleet, request)
        cut = client_chunks(fleet, clients, "each")
        part = joined([trainer.train(chunk) for chunk in cut], "each")
        self._round += 1
        return torch.from_numpy(self._scale * part.private).float()


def without_noise(plan: Plan, population: int) -> Plan:
    """A plan whose clients clip as the given plan's do, and add no noise.

    Under central trust clients add none as it is.
    """
    if plan.trust in ("none", "central"):
        return replace(plan, population=population)
    norm = plan.clipping_norm
    assert norm is not None
    return replace(
        plan,
        trust="none",
        mechanism=ClipOnly(norm),
        population=population,
        delta=None,
        max_participations=None,
        noise_draw=None,
    )
