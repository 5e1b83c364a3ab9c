"""Clipping by layer: each layer's part of an update to its own share of the clipping norm.

McMahan, Ramage, Talwar and Zhang 2018 clip the part of layer l to C_l with sum C_l^2 = C^2, so that the whole
update is no longer than C. The shares depend on the model's shape alone, which is public. The update is
clipped as a whole afterwards, like any other, so sensitivity and ledger are those of flat clipping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Self

import torch
from torch import Tensor

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.options import LayerShares


@dataclass(frozen=True)
class LayerClipping:
    """The layers of an update and their shares of the clipping norm.

    Args:
        lengths: The number of parameters of each layer, in the order of the flat update.
        shares: C_l / C of each; their squares add up to 1.
    """

    lengths: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, parameters: Iterable[tuple[str, int]], how: LayerShares) -> Self:
        """The layers of a model; parameters of one module are one layer.

        Args:
            parameters: The name and the size of each trained parameter, in the order of the flat update.
            how: "equal" shares, or "by-size": proportional to the root of a layer's size.

        Raises:
            InputError: there is one layer only.
        """
        layers = groupby(parameters, key=lambda named: named[0].rpartition(".")[0])
        lengths = [sum(size for _, size in layer) for _, layer in layers]
        if len(lengths) < 2:
            raise InputError(
                "privacy.clipping_layers: the model trains one layer, which is clipped as a whole anyway. "
                "Remove it."
            )
        sizes = [1] * len(lengths) if how == "equal" else lengths
        return cls(tuple(lengths), tuple(math.sqrt(size / sum(sizes)) for size in sizes))

    def clip(self, updates: Tensor, clipping_norm: float) -> Tensor:
        """Bounds the norm of each layer's part of each update.

        Args:
            updates: One update a row, shape (clients, parameters), any float type.
            clipping_norm: C.

        Returns:
            The updates, float64, of the same shape. A part that is not finite stays so: the update counts as
            zero where it is clipped as a whole.
        """
        parts = []
        for part, share in zip(updates.split(self.lengths, dim=1), self.shares, strict=True):
            wide = part.to(torch.float64).contiguous()
            norms = torch.linalg.vector_norm(wide, dim=1)
            bound = torch.tensor(share * clipping_norm, dtype=torch.float64)
            parts.append(wide * (bound / torch.maximum(norms, bound))[:, None])
        return torch.cat(parts, dim=1)
