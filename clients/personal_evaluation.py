"""Measures the personal models of a simulation on each client's own held-out records.

Only a simulation can: on a federation each client keeps its model, and its records, to itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clients.chunk_training import ChunkTrainer, client_chunks
from clients.fleet import Fleet
from clients.personal_state import PersonalStates
from fedprivacy.documents.quality import PersonalAccuracies
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.by_name import unflatten
from fedprivacy.models.prediction import named_classes
from fedprivacy.population.held_out import owners_of_test
from fedprivacy.scenario.sections import Data
from fedprivacy.training.features import on_features


def evaluate_personal(
    fleet: Fleet, states: PersonalStates, model: NDArray[np.float32], options: Data
) -> dict[str, Any] | None:
    """`PersonalAccuracies`, as JSON; None where no test record is of a client.

    Args:
        fleet: All clients of the run.
        states: What they keep.
        model: The final model that all of them share, shape (parameters,).
        options: The scenario's section `data`.
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
    trainer, right = ChunkTrainer(fleet, request, states=states), np.zeros(len(owners), np.bool_)
    for piece in client_chunks(fleet, clients, "each"):
        for client, weights in zip(piece.tolist(), trainer.personal_models(piece), strict=True):
            records = np.flatnonzero(owners == client)
            parameters = unflatten(head, torch.from_numpy(weights))
            with torch.no_grad():
                logits = torch.func.functional_call(head, parameters, x[torch.from_numpy(records)])
            right[records] = logits.argmax(dim=1).numpy() == data.y_test[records]
    counts = np.bincount(owners[owners >= 0], minlength=fleet.plan.population)[clients]
    tenth = math.ceil(len(clients) / 10)
    figures: dict[str, float] = {}
    for name, named_rightly in (("", right), ("shared_", right_of_shared)):
        hits = np.bincount(owners[owners >= 0], named_rightly[owners >= 0], fleet.plan.population)[clients]
        accuracies = np.sort(hits / counts)
        figures[f"{name}mean"] = float(accuracies.mean())
        figures[f"{name}worst"] = float(accuracies[:tenth].mean())
    return PersonalAccuracies.new(
        mode=personal.name,
        clients=len(clients),
        records=int(counts.sum()),
        worst_clients=tenth,
        **figures,
    ).to_json()
