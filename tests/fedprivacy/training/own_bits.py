"""The bits of each of several clients, which no other client may change."""

from __future__ import annotations

import numpy as np

from fedprivacy.training.updates import Updates


def bits_of_each(updates: Updates) -> list[list[bytes]]:
    """Of each client its update, its norm, and what it adds to a sum, clipped to 1 and not clipped."""
    stack, norms = updates.stack().numpy(), updates.norms().numpy()
    bits = []
    for client in range(len(stack)):
        one = updates.only(np.array([client]))
        parts = [one.clipped_total(clipping_norm)[0].numpy() for clipping_norm in (1.0, None)]
        bits.append([values.tobytes() for values in (stack[client], norms[client], *parts)])
    return bits
