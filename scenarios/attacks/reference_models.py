"""An outsider's reference models on a run, shared by the runs for which they are the same.

They depend on what the outsider knows (the records and labels of the pool, the held-out records, the model
and its training), on its settings and on the seed. Neither trust nor noise nor the memberships of the game
enters them, so that arms which train alike have the same ones at every epsilon, to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.attacks.game import Ids
from fedprivacy.attacks.released.attack import Method, Released
from fedprivacy.attacks.released.battery import Battery
from fedprivacy.attacks.released.exposure import Exposure, exposure, in_turn
from fedprivacy.attacks.released.lira import Variance, lira
from fedprivacy.attacks.released.references import Recipe, train_references
from fedprivacy.attacks.released.signals import Signals
from fedprivacy.data.groups import Grouping
from fedprivacy.population.groups import training_groups
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.training import ShuffledTraining
from fedprivacy.training.task import LocalTraining
from scenarios.attacks.game_setup import GameSetup

FPR = 0.01  # of the threshold above which a record is called a member; a tenth where there are few records
# Attacks that can score one reference with the help of the others, which measures exposure; for each its
# kind of variance, and whether it works offline.
EXPOSING: dict[str, tuple[Variance, bool]] = {
    "lira": ("per-record", False),
    "lira-global": ("global", False),
    "lira-offline": ("per-record", True),
}
_SHARED = 2**28  # bytes of records, references and their signals that a process keeps for the next run


@dataclass(frozen=True)
class ReferenceModels:
    """The attacks with their reference models.

    Args:
        battery: The attacks, on the references.
        pool: The number of each of the pool's records among those of the data.
        groups: The groups of the data's records.
    """

    battery: Battery
    pool: Ids
    groups: Sequence[Grouping]
    _exposures: dict[str, Exposure] = field(default_factory=dict)

    def exposure(self, method: str) -> Exposure:
        """The exposure of the pool's records under a method of `EXPOSING`."""
        if method not in self._exposures:
            self._exposures[method] = self._exposure(*EXPOSING[method])
        return self._exposures[method]

    def _exposure(self, variance: Variance, offline: bool) -> Exposure:
        def score(target: Signals, references: Signals, members: NDArray[np.bool_]) -> Signals:
            return lira(target, references, members, variance=variance, offline=offline)

        members, labels = self.battery.references.members, self.battery.y.cpu().numpy()
        least = (~members).sum(axis=1).min()
        fpr = FPR if least >= np.ceil(1 / FPR) - 1 else 10 * FPR
        signals = self.battery.reference_confidences[0]
        of_pool = [replace(group, codes=group.codes[self.pool]) for group in self.groups]
        return exposure(in_turn(score, signals, members), members, labels, fpr, signals, of_pool)

    @property
    def size(self) -> int:
        """The bytes of records, references and their signals."""
        battery, models = self.battery, len(self.battery.references)
        tensors = (battery.x, battery.y, *battery.population, battery.references.weights)
        signals = 8 * models * (len(battery.y) + len(battery.population[1]))
        return sum(tensor.nbytes for tensor in tensors) + battery.references.members.nbytes + signals


_latest: dict[Hashable, ReferenceModels] = {}  # at most one: the runs of one seed follow each other


def reference_models(setup: GameSetup, attack: Released, methods: set[str], rounds: int) -> ReferenceModels:
    """The reference models of a run, trained unless those of the last run are the same.

    Args:
        setup: The run.
        attack: The settings of its attacks on the released model.
        methods: The methods of these attacks.
        rounds: That the run was trained for.

    Raises:
        InputError: the references diverge, or are too few.
    """
    scenario, people = setup.scenario, setup.game.people
    pool = np.sort(np.concatenate([people.partition.order, people.partition.public]))
    rows = torch.from_numpy(pool)
    x, y = setup.fleet.x[rows], setup.fleet.y[rows]
    others = tuple(torch.from_numpy(part).to(x.device) for part in people.held_out("test"))
    training = training_of(scenario, attack, float(setup.fleet.sizes.mean()), rounds)
    settings = (attack.references, attack.gamma, attack.offline_a, *sorted(methods))
    key = (
        *(scenario.model, training, setup.fleet.streams.seed, settings),
        *(scenario.data, repr(scenario.evaluation), x.device, _digest(x, y, *others)),
    )
    if (shared := _latest.get(key)) is not None:
        return shared
    _latest.clear()  # before the next ones take memory
    # Streams without the run: what an outsider draws cannot depend on the noise of the run.
    streams = Streams(setup.fleet.streams.seed)
    battery = Battery(
        setup.fleet.module,
        x,
        y,
        (others[0], others[1]),
        train_references(Recipe(setup.fleet.model.build, training), x, y, streams, attack.references),
        streams,
        [method for method in get_args(Method) if method in methods],
        attack.gamma,
        attack.offline_a,
    )
    models = ReferenceModels(battery, pool, training_groups(scenario.data, scenario.evaluation))
    if models.size <= _SHARED:
        _latest[key] = models
    return models


def _digest(*tensors: Tensor) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        digest.update(str((tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).data)
    return digest.digest()


def training_of(scenario: AttackScenario, attack: Released, records: float, rounds: int) -> LocalTraining:
    """The training settings of a reference model: those of the run, in one place.

    A round in which each of K clients takes one step on B records, and which averages them, is one step on
    K B records. So a reference takes steps on as many, and goes through its records as often as clients do.

    Args:
        scenario: The run.
        attack: What it asks for instead.
        records: Of the mean client.
        rounds: That the run was trained for.
    """
    options, clients = scenario.training, scenario.population
    if isinstance(options, ShuffledTraining):
        size = records if options.batch_size == "all" else float(options.batch_size)
        passes = float(options.epochs)
    else:
        rate = getattr(options, "rate", None)
        size = records * rate if rate else float(options.batch_size or records)
        passes = options.steps * size / records
    batches = ShuffledBatches(
        attack.epochs or max(1, round(passes * rounds)),
        attack.batch_size or max(1, round(size * clients)),
    )
    return LocalTraining(batches, options.learning_rate, options.momentum, options.weight_decay)
