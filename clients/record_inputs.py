"""The inputs of training: all records, or their features by a frozen encoder."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedprivacy.training.features import Features, shared_features, split


class RecordInputs:
    """The records of a fleet on its device, and their features, which fleets with these records share.

    Args:
        records: float32, shape (records, *features).
        module: The model.
        device: Where it is trained.
        agreed: The number of records that clients are agreed to have: it decides whether features fit memory.
    """

    def __init__(self, records: NDArray[np.float32], module: nn.Module, device: str, agreed: int) -> None:
        self._records, self._module, self._device, self._agreed = records, module, device, agreed

    def are_of(self, records: NDArray[np.float32], module: nn.Module, device: str) -> bool:
        """Whether these are the inputs of these very records and this very model."""
        return self._records is records and self._module is module and self._device == device

    @cached_property
    def x(self) -> torch.Tensor:
        """All records, on the CPU without a copy."""
        return torch.from_numpy(self._records).to(self._device)

    @cached_property
    def parts(self) -> tuple[nn.Module | None, nn.Module]:
        """The encoder, None without one, and the rest of the model, where the records are."""
        module = self._module if self._device == "cpu" else copy.deepcopy(self._module).to(self._device)
        return split(module, self._records.shape[1:], self._agreed)

    @cached_property
    def features(self) -> Features | None:
        """The features of all records, None where no frozen encoder is in front of the model."""
        encoder, _ = self.parts
        if encoder is None:
            return None
        return shared_features(encoder, self._records) if self._device == "cpu" else Features(encoder, self.x)

    def ready(self, clients: Sequence[NDArray[np.int64]]) -> torch.Tensor:
        """The inputs of all records, of which those of some clients are computed.

        Args:
            clients: The record numbers of each of these clients.
        """
        return self.x if self.features is None else self.features.of(clients)
