"""Clipped gradients of single records in chains of convolutions and linear layers.

One pass forward and one back give what went into each layer and what came back to its output, of all records
together. A linear layer's gradient stays in these two factors (`fedprivacy.training.linear_gradients`).
A convolution has many positions, its gradient is the sum of one outer product at each: it is formed, record
by record, as the product of the unfolded input with what came back. That takes the same multiplications
as the ordinary gradient of the batch, and then the clipped sum takes hardly any. Norms without formed
gradients ("ghost norms": Li et al. 2022, Bu et al. 2022) need them twice, and where
positions cancel each other their rounding may make a norm too small: the clipped gradient would be longer
than C. So they are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor, nn

from fedprivacy.models.by_name import ToImage, unflatten
from fedprivacy.models.losses import Loss
from fedprivacy.training.clipping_factors import blocks, shares_of, weighted_total
from fedprivacy.training.linear_gradients import (
    LinearGradients,
    backs_of,
    is_chain,
)
from fedprivacy.training.unfolding import channels_last, is_wide, unfolded

_POOLS = (nn.MaxPool2d, nn.AvgPool2d, nn.Flatten, ToImage)
_LAYERS = (nn.Linear, nn.Conv2d, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, *_POOLS)
_PASS = 256  # records in one pass forward and back
_NUMBERS = 2**24  # of formed gradients and unfolded inputs in memory at once: 64 MB


def is_convolutional(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a module is a chain of ordinary convolutions, pooling, linear layers and activations."""
    return is_chain(module, _LAYERS) and all(_ordinary(layer) for layer in module)


def _ordinary(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Conv2d):
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return not (isinstance(layer, nn.MaxPool2d) and layer.return_indices)


@torch.enable_grad()
def chain_sums(
    module: nn.Sequential,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss,
) -> tuple[Tensor, Tensor]:
    """The clipped sums of clients whose model is such a chain, and how many records counted as zero.

    Arguments and results as in `fedprivacy.training.clipped_gradients.clipped_sums`.
    """
    clients, records = used.shape
    sums = torch.zeros(clients, weights.shape[-1], dtype=torch.float64)
    zeroed = torch.zeros(clients, dtype=torch.int64)
    # Clients with weights of their own are passed one by one: grouped convolutions take as long at 10 records
    # each, and a quarter longer at 64.
    rows = _PASS if weights.ndim == 1 else min(_PASS, records)
    for some, part in blocks(clients, records, rows):
        client_weights = weights if weights.ndim == 1 else weights[some.start]
        passed = _passed(module, unflatten(module, client_weights), x[some, part], y[some, part], loss)
        cut = max(1, _NUMBERS // passed.numbers())
        for inner, slot in blocks(*passed.shape, cut):
            of = slice(some.start + inner.start, min(some.start + inner.stop, some.stop))
            at = slice(part.start + slot.start, min(part.start + slot.stop, part.stop))
            total, broken = passed.at(inner, slot).clipped(used[of, at], clipping_norm)
            sums[of] += total
            zeroed[of] += broken
    return sums, zeroed


@dataclass(frozen=True)
class _Passed:
    """The intermediate results of one forward and backward pass over records.

    Args:
        module: The chain.
        shape: (clients, records).
        inputs: By layer what went in, shape (clients, records, *shape of it).
        backs: By layer what came back to its output, shape (clients, records, *shape of it).
    """

    module: nn.Sequential
    shape: tuple[int, int]
    inputs: dict[str, Tensor]
    backs: dict[str, Tensor]

    def at(self, clients: slice, records: slice) -> _Passed:
        """Some of the records."""
        inputs, backs = (
            {name: value[clients, records] for name, value in held.items()}
            for held in (self.inputs, self.backs)
        )
        first = next(iter(backs.values()))
        return _Passed(self.module, (first.shape[0], first.shape[1]), inputs, backs)

    def numbers(self) -> int:
        """The count of numbers in one record's formed gradient."""
        count = 1
        for name, back in self.backs.items():
            layer = self._layer(name)
            if self._formed(name):
                fan_in = layer.weight[0].numel()
                outputs = layer.weight.shape[0]
                count += (fan_in + outputs) * (back[0, 0].numel() // outputs) + layer.weight.numel()
        return count

    def clipped(self, used: Tensor, clipping_norm: float | None) -> tuple[Tensor, Tensor]:
        """The sum of each client's clipped gradients, shape (clients, parameters), and its broken records."""
        formed = {name: self._gradients(name) for name in self.backs if self._formed(name)}
        factors = {name: back for name, back in self.backs.items() if name not in formed}
        outer = LinearGradients(self.module, {name: self.inputs[name] for name in factors}, factors)
        parts = [part for each in formed.values() for part in each]
        norms = [torch.linalg.vector_norm(part, dim=-1, dtype=torch.float64) for part in parts]
        norms += [outer.norms()] if factors else []
        shares, broken = shares_of(torch.linalg.vector_norm(torch.stack(norms), dim=0), used, clipping_norm)
        totals = outer.scaled(shares).total()
        for name, each in formed.items():
            weight, *bias = (weighted_total(part, shares) for part in each)
            totals[f"{name}.weight"] = self._ordered(name, weight)
            totals |= {f"{name}.bias": total for total in bias}
        total = torch.cat([totals[name].flatten(1) for name, _ in self.module.named_parameters()], dim=1)
        return total, broken

    def _layer(self, name: str) -> nn.Linear | nn.Conv2d:
        layer = getattr(self.module, name)
        assert isinstance(layer, nn.Linear | nn.Conv2d)
        return layer

    def _formed(self, name: str) -> bool:
        """Whether a layer has several positions, so that its gradients are formed."""
        return isinstance(self._layer(name), nn.Conv2d) or self.backs[name].ndim > 3

    def _gradients(self, name: str) -> list[Tensor]:
        """Each record's gradient by a layer's weight, and bias, each of shape (clients, records, numbers).

        The numbers of a weight have an order of their own (`_ordered`).
        """
        layer = self._layer(name)
        inputs, back = (held[name].flatten(0, 1) for held in (self.inputs, self.backs))
        if isinstance(layer, nn.Linear):
            back = back.flatten(1, -2)
            weight = torch.bmm(back.mT, inputs.flatten(1, -2))
        else:
            back = back.movedim(1, -1).flatten(1, 2)
            columns = unfolded(layer, inputs[:, None])
            weight = torch.bmm(back.mT, columns) if is_wide(layer) else torch.bmm(columns, back)
        gradients = [weight] if layer.bias is None else [weight, back.sum(dim=1)]
        return [part.flatten(1).unflatten(0, self.shape) for part in gradients]

    def _ordered(self, name: str, totals: Tensor) -> Tensor:
        """Sums of such gradients by a layer's weight, shape (clients, numbers), in the weight's order."""
        layer = self._layer(name)
        if isinstance(layer, nn.Linear):
            return totals
        outputs, channels, *kernel = layer.weight.shape
        if is_wide(layer):
            return totals.view(-1, outputs, *kernel, channels).movedim(-1, 2)
        return totals.view(-1, channels, *kernel, outputs).movedim(-1, 1)


def _passed(
    module: nn.Sequential, weights: Mapping[str, Tensor], x: Tensor, y: Tensor, loss: Loss
) -> _Passed:
    flowing, shape = x.flatten(0, 1), (y.shape[0], y.shape[1])
    inputs: dict[str, Tensor] = {}
    outputs: dict[str, Tensor] = {}
    for name, layer in module.named_children():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            inputs[name] = flowing.detach().unflatten(0, shape)
            weight, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
            if isinstance(layer, nn.Linear):
                flowing = nn.functional.linear(flowing, weight, bias)
            else:
                flowing = nn.functional.conv2d(
                    channels_last(flowing),
                    channels_last(weight),
                    bias,
                    layer.stride,
                    layer.padding,
                    layer.dilation,
                )
                flowing = channels_last(flowing)
            if not flowing.requires_grad:
                flowing.requires_grad_(True)
            outputs[name] = flowing
        else:
            flowing = layer(flowing)
    back = loss.gradient(flowing.detach(), y.flatten(0, 1))
    backs = backs_of(flowing, outputs, back)
    apart = {name: part.unflatten(0, shape) for name, part in backs.items()}
    return _Passed(module, shape, inputs, apart)
