"""The features of records: the outputs of a frozen encoder, computed once for each record.

The encoder is the same in every round, so training its head on features equals training the whole model. The
features of a record are computed from that record alone: no other record, of whatever client, changes a bit
of them.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@torch.no_grad()
def encode(encoder: nn.Module | None, x: Tensor) -> Tensor:
    """The features of records, each by itself.

    Args:
        encoder: The frozen part in front of a model; None: the records are the features.
        x: Records, shape (records, *features).
    """
    if encoder is None or not len(x):
        return x
    return torch.cat([encoder(record) for record in x.split(1)])


class Features:
    """The features of all records, each computed when its client first trains.

    On the CPU they lie in memory that forked processes share, so that each is computed once for all of them.

    Args:
        encoder: The frozen part in front of the model, where the records are.
        x: All records, float32, shape (records, *features).
    """

    def __init__(self, encoder: nn.Module, x: Tensor) -> None:
        self._encoder, self._x = encoder, x
        example = encode(encoder, torch.zeros(1, *x.shape[1:], device=x.device))
        self.shape = tuple(example.shape[1:])
        if x.device.type == "cpu":
            numbers = len(x) * math.prod(self.shape)
            shared = np.frombuffer(mmap.mmap(-1, max(1, 4 * numbers)), np.float32, numbers)
            self._values = torch.from_numpy(shared).view(-1, *self.shape)
        else:
            self._values = x.new_empty(len(x), *self.shape)
        self._known = np.frombuffer(mmap.mmap(-1, max(1, len(x))), np.bool_, len(x))

    def of(self, records: Sequence[NDArray[np.int64]]) -> Tensor:
        """All features, of which those of these records are computed.

        Args:
            records: The record numbers of each client.

        Returns:
            float32, shape (all records, *shape), without a copy.
        """
        for rows in records:
            for row in rows[~self._known[rows]].tolist():
                self._values[row] = self._feature(row)
                self._known[row] = True
        return self._values

    def _feature(self, row: int) -> Tensor:
        try:
            return encode(self._encoder, self._x[row : row + 1])[0]
        except Exception:  # a record without features has no gradient: it counts as zero, and alone
            return self._x.new_full(self.shape, torch.nan)
