"""Signals of a model about a record: loss, gradient, and an update's alignment with that gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedprivacy.models.by_name import unflatten
from fedprivacy.models.partial_training import trained_size
from fedprivacy.training.linear_gradients import is_linear, linear_gradients

Vector = NDArray[np.float64]
_NUMBERS = 2**24  # of gradients in memory at once


class Probe:
    """Asks a model about records.

    Args:
        module: The model; of its own weights the frozen ones alone are read.
        x: The records, float32, shape (records, *features).
        y: Their labels, int64, shape (records,).
    """

    def __init__(self, module: nn.Module, x: Tensor, y: Tensor) -> None:
        self.module, self.x, self.y = module, x, y
        self.parameters = trained_size(module)

    def at(self, places: NDArray[np.int64]) -> Probe:
        """The same model, restricted to some of the records."""
        rows = torch.from_numpy(places)
        return Probe(self.module, self.x[rows], self.y[rows])

    def losses(self, weights: Tensor) -> Tensor:
        """The cross-entropy of each record, shape (records,)."""
        with torch.no_grad():
            logits = functional_call(self.module, unflatten(self.module, weights), self.x)
            return nn.functional.cross_entropy(logits, self.y, reduction="none")

    def mean_gradient(self, weights: Tensor, below: float | None = None) -> tuple[Tensor, Tensor]:
        """The gradient of the mean loss, shape (parameters,), and the losses.

        Args:
            weights: Where, shape (parameters,).
            below: Only records with a smaller loss count; None: all.
        """
        point = weights.clone().requires_grad_(True)
        logits = functional_call(self.module, unflatten(self.module, point), self.x)
        losses = nn.functional.cross_entropy(logits, self.y, reduction="none")
        counted = losses if below is None else losses[losses.detach() < below]
        if not len(counted):
            return torch.zeros_like(weights), losses.detach()
        [gradient] = torch.autograd.grad(counted.mean(), point)
        return gradient, losses.detach()

    def gradients(self, weights: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Each record's own gradient, in blocks: which records, and shape (records of it, parameters)."""

        def loss(flat: Tensor, record: Tensor, label: Tensor) -> Tensor:
            logits = functional_call(self.module, unflatten(self.module, flat), record[None])
            return nn.functional.cross_entropy(logits, label[None])

        each = vmap(grad(loss), in_dims=(None, 0, 0))
        rows = max(1, _NUMBERS // self.parameters)
        for start in range(0, len(self.y), rows):
            part = slice(start, min(start + rows, len(self.y)))
            yield part, each(weights, self.x[part], self.y[part])

    def alignment(self, weights: Tensor, updates: Tensor) -> tuple[Vector, Vector]:
        """The alignment of updates with the descent direction of each record's gradient.

        Args:
            weights: Where the gradients are taken, shape (parameters,).
            updates: Shape (updates, parameters).

        Returns:
            The cosine of each update with minus each record's gradient, shape (records, updates), 0 where
            either is 0; and the norms of the gradients, shape (records,).
        """
        if is_linear(self.module):
            factors = linear_gradients(self.module, unflatten(self.module, weights), self.x, self.y)
            products, norms = factors.products(updates), factors.squares().sqrt()
        else:
            blocks = [(g @ updates.T, g.norm(dim=1)) for _, g in self.gradients(weights)]
            products, norms = (torch.cat(parts) for parts in zip(*blocks, strict=True))
        lengths = norms[:, None] * updates.norm(dim=1)[None, :]
        cosines = torch.where(lengths > 0, -products / lengths.clamp_min(1e-30), 0.0)
        return cosines.double().numpy(), norms.double().numpy()
