"""Gradients of single records in networks of linear layers, without ever forming one.

The gradient of a record by the weights of a linear layer is the outer product of what came back to the
layer's output and what went in (Goodfellow 2015, "Efficient per-example gradient computations"). Its norm,
and its product with any vector, follow from the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor, nn

from fedprivacy.models import unflatten

# What a chain may be made of: each treats every record by itself.
_LAYERS = (nn.Linear, nn.Flatten, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU)


@dataclass(frozen=True)
class LinearGradients:
    """The gradients of each record, as factors of outer products.

    Args:
        module: The network.
        inputs: By layer what went in, shape (records, inputs).
        backs: By layer the gradient of the record's loss by the output, shape (records, outputs).
    """

    module: nn.Sequential
    inputs: dict[str, Tensor]
    backs: dict[str, Tensor]

    def squares(self) -> Tensor:
        """The squared norm of each gradient, shape (records,)."""
        return torch.stack(
            [
                back.square().sum(dim=1) * (self.inputs[name].square().sum(dim=1) + self._has_bias(name))
                for name, back in self.backs.items()
            ]
        ).sum(dim=0)

    def total(self) -> dict[str, Tensor]:
        """The sum of all gradients, by parameter."""
        found = {}
        for name, back in self.backs.items():
            found[f"{name}.weight"] = back.T @ self.inputs[name]
            if self._has_bias(name):
                found[f"{name}.bias"] = back.sum(dim=0)
        return found

    def products(self, vectors: Tensor) -> Tensor:
        """The product of each gradient with each vector.

        Args:
            vectors: Shape (vectors, parameters).

        Returns:
            Shape (records, vectors).
        """
        return torch.stack([self._product(vector) for vector in vectors], dim=1)

    def _product(self, vector: Tensor) -> Tensor:
        parts, found = unflatten(self.module, vector), torch.zeros(len(next(iter(self.inputs.values()))))
        for name, back in self.backs.items():
            found = found + ((back @ parts[f"{name}.weight"]) * self.inputs[name]).sum(dim=1)
            if self._has_bias(name):
                found = found + back @ parts[f"{name}.bias"]
        return found

    def _has_bias(self, name: str) -> bool:
        return getattr(self.module, name).bias is not None


def is_linear(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a module is a chain of linear layers with activations between them, and nothing more.

    No layer and no parameter may stand in it twice, and no class of one's own: its `forward` may do anything.
    """
    if type(module) is not nn.Sequential or any(type(layer) not in _LAYERS for layer in module):
        return False
    weights = [p for layer in module if isinstance(layer, nn.Linear) for p in (layer.weight, layer.bias)]
    own = [id(p) for p in weights if p is not None]
    return len(own) == len(set(own)) and set(own) == {id(p) for p in module.parameters()}


def linear_gradients(
    module: nn.Sequential, weights: Mapping[str, Tensor], x: Tensor, y: Tensor, shares: Tensor | None = None
) -> LinearGradients:
    """The gradients of the cross-entropy of each record, by one pass forward and one back.

    Args:
        module: A chain of linear layers (`is_linear`); its own weights are not read.
        weights: By parameter; not differentiated.
        x: The records, shape (records, *features).
        y: Their labels, shape (records,).
        shares: By what each record's gradient is multiplied, shape (records,); None: 1.
    """
    flowing = x
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    for name, layer in module.named_children():
        if isinstance(layer, nn.Linear):
            inputs[name] = flowing.detach()
            flowing = nn.functional.linear(flowing, weights[f"{name}.weight"], weights.get(f"{name}.bias"))
            if not flowing.requires_grad:
                flowing.requires_grad_(True)
            outputs[name] = flowing
        else:
            flowing = layer(flowing)
    losses = nn.functional.cross_entropy(flowing, y, reduction="none")
    each = torch.ones_like(losses) if shares is None else shares
    backs = torch.autograd.grad(losses, list(outputs.values()), each)
    return LinearGradients(module, inputs, dict(zip(outputs, backs, strict=True)))
