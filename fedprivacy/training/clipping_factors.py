"""Clipping factors of records' gradients, which bound each norm by C (Abadi et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

# A longer gradient counts as not finite: sums of such gradients would overflow float32.
NORM_LIMIT = 1e18
# Clipped gradients are this much shorter than C, so that they stay below C after rounding.
_HAIR = 1e-6


def shares_of(norms: Tensor, used: Tensor, clipping_norm: float | None) -> tuple[Tensor, Tensor]:
    """The factor of each record's gradient: min(1, C/norm), and 0 where it does not count.

    Args:
        norms: The gradients' norms, float64, shape (..., records).
        used: Which records count, bool, shape (..., records).
        clipping_norm: C; None clips nothing.

    Returns:
        The shares, float32, shape (..., records), and how many of the used records have a gradient that is
        not finite, or longer than `NORM_LIMIT`, and so the share 0: int64, shape (...,).
    """
    # One number a record: numpy's calls take a fraction of torch's.
    lengths, wanted = norms.numpy(), used.numpy()
    # A record without a usable gradient counts as zero and not as absent: the denominator is fixed, so
    # nothing else in the sum depends on it.
    counted = wanted & (lengths <= NORM_LIMIT)  # false for NaN
    if clipping_norm is None:
        shares = counted.astype(np.float32)
    else:
        bound, shares = clipping_norm * (1 - _HAIR), np.zeros(lengths.shape, dtype=np.float32)
        np.divide(bound, np.maximum(lengths, bound), out=shares, where=counted, casting="same_kind")
    zeroed = np.add.reduce(wanted != counted, axis=-1, dtype=np.int64)
    return torch.from_numpy(shares), torch.from_numpy(np.asarray(zeroed))


def weighted_total(gradients: Tensor, shares: Tensor) -> Tensor:
    """The sum of gradients times their shares, float64, shape (clients, parameters).

    Args:
        gradients: Shape (clients, records, parameters); written to.
        shares: Shape (clients, records). One of 0 takes the record out, whatever its gradient holds.
    """
    left_out = shares == 0
    if left_out.any():  # 0 * NaN would be NaN
        gradients[left_out] = 0.0
    return torch.bmm(shares[:, None].double(), gradients.double())[:, 0]


def blocks(clients: int, records: int, rows: int) -> Iterator[tuple[slice, slice]]:
    """Cuts clients' records into blocks of at most `rows`: of several whole clients, or of a part of one."""
    together, each = max(1, rows // records), min(records, max(1, rows))
    for client in range(0, clients, together):
        for record in range(0, records, each):
            yield slice(client, client + together), slice(record, record + each)
