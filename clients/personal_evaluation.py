"""Measures the personal models of a simulation on each client's own held-out records.

Only a simulation can: on a federation each client keeps its model, and its records, to itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clients.chunk_training import Part, client_chunks
from clients.fleet import Fleet
from clients.personal_state import PersonalStates
from clients.personal_training import PersonalTrainer
from clients.worker_pool import WorkerPool
from fedprivacy.documents.quality import PersonalAccuracies
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.prediction import named_classes
from fedprivacy.population.held_out import owners_of_test
from fedprivacy.scenario.sections import Data
from fedprivacy.training.features import on_features

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class PersonalTest(PersonalTrainer):
    """Counts the test records that the personal model of each client names rightly.

    Args:
        owners: The client of each test record, shape (test records,).
    """

    owners: Ids = field(kw_only=True)

    def personal_part(self, clients: Ids) -> Part:
        """The number of each client, float64, shape (clients,)."""
        fleet, data = self.fleet, self.fleet.people.dataset
        assert fleet.personal is not None
        task, rows = self.task_beside(clients)
        models, hits = fleet.personal.models(task, rows, self.beside), np.zeros(len(clients))
        for place, client in enumerate(clients.tolist()):
            records = self.owners == client
            head, x = on_features(fleet.module, torch.from_numpy(data.x_test[records]))
            hits[place] = (named_classes(head, models[place], x.numpy()) == data.y_test[records]).sum()
        return Part(hits, clients, 0, {})


def evaluate_personal(
    fleet: Fleet, states: PersonalStates, model: NDArray[np.float32], options: Data, pool: WorkerPool
) -> dict[str, Any] | None:
    """`PersonalAccuracies`, as JSON; None where no test record is of a client.

    Args:
        fleet: All clients of the run.
        states: What they keep.
        model: The final model that all of them share, shape (parameters,).
        options: The scenario's section `data`.
        pool: Who trains and tests the models. A client that raises, hangs or kills its process there counts
            with the shared model.
    """
    personal, data = fleet.personal, fleet.people.dataset
    owners = owners_of_test(options, fleet.people)
    if personal is None or owners is None:
        return None
    head, x = on_features(fleet.module, torch.from_numpy(data.x_test))
    right_of_shared = named_classes(head, personal.common(model), x.numpy()) == data.y_test
    clients = np.unique(owners[owners >= 0])
    request = TrainRequest(
        round=fleet.plan.rounds,
        host=0,
        chunk=0,
        clients=clients,
        weights=model,
        plan=fleet.plan,
        observe="each",
        clipping_norm=None,
    )
    counts = np.bincount(owners[owners >= 0], minlength=fleet.plan.population)[clients]
    shared = np.bincount(owners[owners >= 0], right_of_shared[owners >= 0], fleet.plan.population)[clients]
    hits, failed = shared.copy(), 0
    pieces = client_chunks(fleet, clients, "each", beside=True)
    for part in pool.train(fleet, request, pieces, states, partial(PersonalTest, owners=owners)):
        failed += len(part.failures)  # their reasons stay here: one may have values of a record
        hits[np.searchsorted(clients, part.clients)] = part.private
    tenth = math.ceil(len(clients) / 10)
    figures: dict[str, float] = {}
    for name, rightly_named in (("", hits), ("shared_", shared)):
        accuracies = np.sort(rightly_named / counts)
        figures[f"{name}mean"] = float(accuracies.mean())
        figures[f"{name}worst"] = float(accuracies[:tenth].mean())
    return PersonalAccuracies.new(
        mode=personal.name,
        clients=len(clients),
        failed=failed,
        records=int(counts.sum()),
        worst_clients=tenth,
        **figures,
    ).to_json()
