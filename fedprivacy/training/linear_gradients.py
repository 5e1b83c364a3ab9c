"""Gradients of single records in networks of linear layers, without ever forming one.

The gradient of a record by the weights of a linear layer is the outer product of the gradient at the layer's
output and its input (Goodfellow 2015, "Efficient per-example gradient computations"). Its norm,
and its product with any vector, follow from the two. Records may have dimensions (clients,
records), with weights that all clients share or with weights of each client's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.models.by_name import unflatten
from fedprivacy.models.losses import CROSS_ENTROPY, Loss

# What a chain may be made of: each treats every record by itself.
_LAYERS = (nn.Linear, nn.Flatten, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU)

# A factor of greater norm is taken for broken: products of two such stay far inside float32, and the other
# factor stays far above its least number, where rounding is coarse.
FACTOR_LIMIT = 1e16


@dataclass(frozen=True)
class LinearGradients:
    """The gradients of each record, as factors of outer products.

    Args:
        module: The network.
        inputs: By layer what went in, shape (..., records, inputs).
        backs: By layer the gradient of the record's loss by the output, shape (..., records, outputs).
    """

    module: nn.Sequential
    inputs: dict[str, Tensor]
    backs: dict[str, Tensor]

    def squares(self) -> Tensor:
        """The squared norm of each gradient, shape (..., records)."""
        return torch.stack(
            [
                back.square().sum(dim=-1) * (self.inputs[name].square().sum(dim=-1) + self._has_bias(name))
                for name, back in self.backs.items()
            ]
        ).sum(dim=0)

    def norms(self) -> Tensor:
        """The norm of each gradient, to bound it by: float64, shape (..., records).

        Neither tiny nor huge factors make it too small. Infinite where a factor is not finite or has a norm
        above `FACTOR_LIMIT`.
        """
        total = largest = np.zeros(())
        with np.errstate(over="ignore", invalid="ignore"):
            for name, back in self.backs.items():
                inner, outer = _lengths(self.inputs[name]), _lengths(back)
                total = total + outer * outer * (inner * inner + self._has_bias(name))
                largest = np.maximum(np.maximum(inner, outer), largest)
            norms = np.where(largest <= FACTOR_LIMIT, np.sqrt(total), np.inf)  # not so for NaN
        return torch.from_numpy(norms)

    def scaled(self, shares: Tensor) -> LinearGradients:
        """Each gradient times a number.

        Args:
            shares: Shape (..., records). One of 0 takes the record out, whatever its factors hold.
        """
        each, inputs = shares[..., None], self.inputs
        backs = {name: back * each for name, back in self.backs.items()}
        if not shares.numpy().all():  # 0 * NaN would be NaN
            left_out = each == 0
            inputs, backs = (
                {name: factor.masked_fill(left_out, 0.0) for name, factor in held.items()}
                for held in (inputs, backs)
            )
        return LinearGradients(self.module, inputs, backs)

    def total(self) -> dict[str, Tensor]:
        """The sum of all gradients over the records, float64, by parameter, shape (..., *shape of it)."""
        totals = {}
        for name, back in self.backs.items():
            multiply = torch.bmm if back.ndim == 3 else torch.matmul  # the latter takes a while to choose
            totals[f"{name}.weight"] = multiply(back.mT.double(), self.inputs[name].double())
            if self._has_bias(name):
                totals[f"{name}.bias"] = back.sum(dim=-2, dtype=torch.float64)
        return totals

    def products(self, vectors: Tensor) -> Tensor:
        """The product of each gradient with each vector; of records without leading dimensions.

        Args:
            vectors: Shape (vectors, parameters).

        Returns:
            Shape (records, vectors).
        """
        return torch.stack([self._product(vector) for vector in vectors], dim=1)

    def _product(self, vector: Tensor) -> Tensor:
        parts, products = unflatten(self.module, vector), torch.zeros(len(next(iter(self.inputs.values()))))
        for name, back in self.backs.items():
            products = products + ((back @ parts[f"{name}.weight"]) * self.inputs[name]).sum(dim=1)
            if self._has_bias(name):
                products = products + back @ parts[f"{name}.bias"]
        return products

    def _has_bias(self, name: str) -> bool:
        return getattr(self.module, name).bias is not None


def is_linear(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a module is a chain of linear layers with activations between them, and nothing more.

    No layer and no parameter may occur in it twice, and no class of one's own: its `forward` may do anything.
    """
    if not is_chain(module, _LAYERS):
        return False
    kinds = [type(layer) for layer in module if type(layer) in (nn.Linear, nn.Flatten)]
    # A linear layer before the flattening would see several rows of each record.
    return nn.Linear in kinds and nn.Flatten not in kinds[kinds.index(nn.Linear) :]


def is_chain(module: nn.Module, kinds: Collection[type[nn.Module]]) -> TypeGuard[nn.Sequential]:
    """Whether a module is a chain of layers of these kinds, each of them and each parameter once.

    Records are not flattened together, and every parameter is a trained `weight` or `bias` of a layer.
    """
    if type(module) is not nn.Sequential:
        return False
    layers = list(module)
    if any(type(layer) not in kinds for layer in layers) or len(set(layers)) < len(layers):
        return False
    if any(getattr(layer, "inplace", False) for layer in layers):  # it would write over what went in
        return False
    if any(type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) != (1, -1) for layer in layers):
        return False
    weighted = [layer for layer in layers if isinstance(layer, nn.Linear | nn.Conv2d)]
    every = list(module.parameters())
    if not all(p.requires_grad for p in every):
        return False
    parameters = [id(p) for layer in weighted for p in (layer.weight, layer.bias) if p is not None]
    return len(parameters) == len(set(parameters)) and set(parameters) == set(map(id, every))


def linear_gradients(
    module: nn.Sequential,
    weights: Mapping[str, Tensor],
    x: Tensor,
    y: Tensor,
    shares: Tensor | None = None,
    loss: Loss = CROSS_ENTROPY,
) -> LinearGradients:
    """The gradients of the loss of each record, by one pass forward and one back.

    Args:
        module: A chain of linear layers (`is_linear`); its trained weights are not read.
        weights: By parameter; not differentiated. Shared by all records, or each with a dimension of clients
            in front, where the records have one.
        x: The records, shape (records, *features) or (clients, records, *features).
        y: Their labels, shape (records,) or (clients, records), or targets with one dimension more.
        shares: By what each record's gradient is multiplied, shape (records,) or (clients, records); None: 1.
        loss: The loss of a record.
    """
    leading = y.shape[: y.ndim - loss.target_dimensions]
    targets, last = y.reshape(-1, *y.shape[len(leading) :]), module[-1]
    flowing = x.reshape(len(targets), *x.shape[len(leading) :])
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    for name, layer in module.named_children():
        if type(layer) is nn.Linear:
            width = flowing.shape[-1]
            inputs[name] = (flowing.detach() if outputs else flowing).view(*leading, width)
            weight, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
            if weight.ndim == 2:
                flowing = nn.functional.linear(flowing, weight, bias)
            else:
                product = flowing.view(*leading, width) @ weight.mT
                flowing = (product if bias is None else product + bias[:, None]).flatten(0, 1)
            if not (flowing.requires_grad or layer is last):
                flowing.requires_grad_(True)
            outputs[name] = flowing
        else:
            flowing = layer(flowing)
    back = loss.gradient(flowing, targets, None if shares is None else shares.flatten())
    backs = backs_of(flowing, outputs, back)
    return LinearGradients(module, inputs, {name: b.view(*leading, b.shape[-1]) for name, b in backs.items()})


def backs_of(logits: Tensor, outputs: Mapping[str, Tensor], back: Tensor) -> dict[str, Tensor]:
    """The gradient at each layer's output, from the logits' gradient `back`, by layer."""
    if len(outputs) == 1 and next(iter(outputs.values())) is logits:
        return dict.fromkeys(outputs, back)
    gradients = torch.autograd.grad(logits, list(outputs.values()), back)
    return dict(zip(outputs, gradients, strict=True))


def _lengths(factor: Tensor) -> NDArray[np.float64]:
    """The norms of the rows. One number a record: numpy's calls take a fraction of torch's."""
    return torch.linalg.vector_norm(factor, dim=-1, dtype=torch.float64).numpy()
