"""Between a client's training and its reply: clip, and under local trust randomise.

Nothing that a client's data touched passes this file unclipped.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.mechanisms.clipping import add_in_order, clip
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan import Plan
from fedprivacy.seeds import Streams

Ids = NDArray[np.int64]


def privatise(
    updates: Tensor, clients: Ids, plan: Plan, streams: Streams, *, round: int, observe: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What a node replies for the clients that trained.

    Args:
        updates: Raw updates, shape (clients, parameters); with unit "example" private already.
        clients: Their ids, sorted, shape (clients,).
        plan: The clients' own plan.
        streams: The run's random streams; each client draws from its own.
        round: The round, which keys the draws.
        observe: "sum" for the sum of the updates, "each" for all of them.

    Returns:
        The sum, float64, shape (parameters,), or the stack, shape (clients, parameters); and which
        updates were zeroed because they were not finite. A zeroed client's noise is drawn all the same.
    """
    # Of records, gradients were clipped, and under local trust noised, before they were summed.
    bounded, broken = clip(updates, plan.clipping_norm if plan.unit == "client" else None)
    randomiser = plan.randomiser
    if randomiser and plan.noise_draw == "client":
        for row, client in enumerate(clients):
            stream = streams.noise("local", round=round, member=int(client))
            bounded[row] = torch.from_numpy(randomiser.randomise(bounded[row].numpy(), stream))
    if observe == "each":
        return bounded.numpy(), broken.numpy()
    total = add_in_order(bounded).numpy()
    if isinstance(randomiser, Gaussian) and plan.noise_draw == "sum" and len(clients):
        # One draw with the distribution of the sum of everybody's draws; the first id keys it,
        # since a client stands in one chunk of a round only.
        stream = streams.noise("local-sum", round=round, member=int(clients[0]))
        total += randomiser.draw(len(total), stream, shares=len(clients))
    return total, broken.numpy()
