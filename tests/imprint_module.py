"""The malicious architecture that a node refuses: an imprint in front of any model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.attacks.reconstruction.analytic import FirstLayer, Vector
from fedprivacy.models.by_name import flat_weights


class ImprintModule(nn.Module):
    """An imprint in front of any model, which gets an even picture instead.

    Args:
        rest: The model of the scenario.
        features: The shape of a record.
        edges: The lower edges of the bins.
    """

    def __init__(self, rest: nn.Module, features: Sequence[int], edges: Vector) -> None:
        super().__init__()
        pixels, bins = math.prod(features), len(edges)
        self.features = tuple(features)
        self.imprint = nn.Linear(pixels, bins)
        self.spread = nn.Linear(bins, pixels)
        self.rest = rest
        nn.init.constant_(self.imprint.weight, 1.0 / pixels)
        nn.init.constant_(self.spread.weight, 1.0 / bins)
        nn.init.zeros_(self.spread.bias)
        with torch.no_grad():
            self.imprint.bias.copy_(torch.from_numpy(-edges))

    @property
    def layer(self) -> FirstLayer:
        """The imprint."""
        return FirstLayer(self.imprint.out_features, self.imprint.in_features)

    @property
    def weights(self) -> NDArray[np.float32]:
        """The weights that a server would send, shape (parameters,)."""
        return flat_weights(self)

    def forward(self, records: Tensor) -> Tensor:
        passed = torch.relu(self.imprint(records.flatten(1)))
        return self.rest(self.spread(passed).reshape(-1, *self.features))
