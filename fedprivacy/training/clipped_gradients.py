"""Sums of clipped gradients of single records, to which DP-SGD adds noise (Abadi et al. 2016).

Logistic regression is clipped in closed form, chains of linear layers by the factors of their gradients,
chains with convolutions by one ordinary pass and formed gradients of the convolutions, any other module by
`vmap` of its gradient. Each method computes a gradient's norm from the same numbers that it sums, so one
record adds at most C. A computation has the same shape whether a record counts or not, so the gradients of
others keep their rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedprivacy.models.by_name import unflatten
from fedprivacy.models.losses import CROSS_ENTROPY, CrossEntropy, Loss
from fedprivacy.training.chain_gradients import chain_sums, is_convolutional
from fedprivacy.training.clipping_factors import blocks, shares_of, weighted_total
from fedprivacy.training.linear_gradients import is_linear, linear_gradients
from fedprivacy.training.logistic_gradients import is_logistic, logistic_sums

Place = TypeVar("Place")
Gradient = TypeVar("Gradient")

_NUMBERS = 2**24  # of formed gradients in memory at once: 64 MB

# The method of each module, chosen once; a module must not change its structure afterwards.
_WAYS: WeakKeyDictionary[nn.Module, Callable[..., tuple[Tensor, Tensor]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ClippedSums:
    """The sum of each client's clipped gradients.

    Args:
        sums: float64, shape (clients, parameters), in the order of `fedprivacy.models.by_name.flat_weights`.
        zeroed: How many used records count as zero, since their gradient was not finite, or longer than
            1e18, or made the module raise; int64, shape (clients,). It depends on the data: operator-only.
    """

    sums: Tensor
    zeroed: Tensor


def clipped_sums(
    module: nn.Module,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss = CROSS_ENTROPY,
) -> ClippedSums:
    """For each client the sum over its used records of gradient * min(1, C/|gradient|).

    One norm over all parameters together (flat clipping). What one record adds to a sum is at most
    C (1 - 8e-7), which leaves room for the rounding of float64 sums of up to 40,000 records. What it changes
    in the rounding of other records' gradients is not bounded.

    Args:
        module: To (batch, outputs), each record by itself; its trained weights are not read.
        weights: float32, shape (parameters,) where all clients share them, or (clients, parameters).
        x: Records, float32, shape (clients, batch, *features).
        y: Labels, int64, shape (clients, batch), or targets, float32, shape (clients, batch, outputs).
        used: Which records count, bool, shape (clients, batch). Others are padding, whatever they hold.
        clipping_norm: C, the L2 bound of the gradient of one record's loss; None clips nothing, but
            gradients that are not finite count as zero still.
        loss: The loss of a record.
    """
    if np.count_nonzero(used.numpy()) < used.numel():
        x, y = _blank(x, ~used), _blank(y, ~used)
    if not used.numel():
        return ClippedSums(
            torch.zeros(len(y), weights.shape[-1], dtype=torch.float64),
            torch.zeros(len(y), dtype=torch.int64),
        )
    try:
        return ClippedSums(*_sums(module, weights, x, y, used, clipping_norm, loss))
    except Exception:
        # One record that makes the module raise must not take the others' gradients with it: that would be a
        # change of more than one record's share.
        return _without_raising(module, weights, x, y, used, clipping_norm, loss)


def _sums(
    module: nn.Module,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss,
) -> tuple[Tensor, Tensor]:
    way = _WAYS.get(module)
    if way is None:
        way = _WAYS[module] = _way_of(module)
    return way(module, weights, x, y, used, clipping_norm, loss)


def _way_of(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    if is_logistic(module):
        return _logistic
    if is_linear(module):
        return _factored
    return chain_sums if is_convolutional(module) else _formed


def _logistic(
    module: nn.Sequential,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss,
) -> tuple[Tensor, Tensor]:
    """The sums of one linear layer: of classes in closed form."""
    if isinstance(loss, CrossEntropy):
        return logistic_sums(module, weights, x, y, used, clipping_norm)
    return _factored(module, weights, x, y, used, clipping_norm, loss)


@torch.enable_grad()
def _factored(
    module: nn.Sequential,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss = CROSS_ENTROPY,
) -> tuple[Tensor, Tensor]:
    """The sums of a chain of linear layers, by the factors of the gradients."""
    parameters = unflatten(module, weights)
    factors = linear_gradients(module, parameters, x, y, loss=loss)
    shares, zeroed = shares_of(factors.norms(), used, clipping_norm)
    total = factors.scaled(shares).total()
    return torch.cat([total[name].flatten(1) for name in parameters], dim=1), zeroed


@torch.enable_grad()
def _formed(
    module: nn.Module,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss = CROSS_ENTROPY,
) -> tuple[Tensor, Tensor]:
    """The sums of any module: each record's gradient is formed, in blocks of bounded memory."""

    def loss_at(flat: Tensor, record: Tensor, target: Tensor) -> Tensor:
        outputs = functional_call(module, unflatten(module, flat), record[None])
        return loss.losses(outputs, target[None])[0]

    loss.check(y)
    per_client = weights.ndim == 2
    each = vmap(vmap(grad(loss_at), in_dims=(None, 0, 0)), in_dims=(0 if per_client else None, 0, 0))
    clients, parameters = len(y), weights.shape[-1]
    sums = torch.zeros(clients, parameters, dtype=torch.float64)
    zeroed = torch.zeros(clients, dtype=torch.int64)
    for some, part in blocks(clients, used.shape[1], _NUMBERS // parameters):
        gradients = each(weights[some] if per_client else weights, x[some, part], y[some, part])
        norms = torch.linalg.vector_norm(gradients, dim=-1, dtype=torch.float64)
        shares, broken = shares_of(norms, used[some, part], clipping_norm)
        sums[some] += weighted_total(gradients, shares)
        zeroed[some] += broken
    return sums, zeroed


def _without_raising(
    module: nn.Module,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    used: Tensor,
    clipping_norm: float | None,
    loss: Loss,
) -> ClippedSums:
    """The sums where something raised: each record that raises by itself counts as zero, and no other.

    The others are computed together once more, so that their rounding is what it is without those records;
    one by one only where that raises too.
    """
    size = weights.shape[-1]
    alone, zeroed = torch.zeros(len(y), size, dtype=torch.float64), torch.zeros(len(y), dtype=torch.int64)
    raising = used.clone()

    def gradient_at(place: tuple[int, int]) -> Tensor:
        client_weights = weights if weights.ndim == 1 else weights[place[0]]
        return _alone(module, client_weights, x[place], y[place], loss)

    for (client, record), gradient in by_themselves(map(tuple, used.nonzero().tolist()), gradient_at):
        raising[client, record] = False
        norm = torch.linalg.vector_norm(gradient, dtype=torch.float64)
        share, broken = shares_of(norm[None], torch.ones(1, dtype=torch.bool), clipping_norm)
        zeroed[client] += broken
        if share.item() > 0:
            alone[client] += share * gradient
    sums = ClippedSums(alone, zeroed)
    if raising.any():
        rest = used & ~raising
        try:
            x, y = _blank(x, raising), _blank(y, raising)
            sums = ClippedSums(*_sums(module, weights, x, y, rest, clipping_norm, loss))
        except Exception:
            pass  # nothing but one by one is left
    return ClippedSums(sums.sums, sums.zeroed + raising.sum(dim=1))


def by_themselves(
    places: Iterable[Place], gradient_at: Callable[[Place], Gradient]
) -> Iterator[tuple[Place, Gradient]]:
    """The gradient of each record by itself, without the records that raise.

    Args:
        places: The positions of the records.
        gradient_at: Computes the gradient of the record at a place.
    """
    for place in places:
        try:
            gradient = gradient_at(place)
        except Exception:
            continue
        yield place, gradient


@torch.enable_grad()
def _alone(module: nn.Module, weights: Tensor, record: Tensor, target: Tensor, loss: Loss) -> Tensor:
    """The gradient of one record, shape (parameters,), by plain autograd."""
    loss.check(target)
    flat = weights.detach().requires_grad_(True)
    outputs = functional_call(module, unflatten(module, flat), record[None])
    [gradient] = torch.autograd.grad(loss.losses(outputs, target[None]).sum(), flat)
    return gradient


def _blank(x: Tensor, places: Tensor) -> Tensor:
    """Records or targets with zeros in some places, bool, shape (clients, batch)."""
    return x.masked_fill(places.reshape(*places.shape, *(1,) * (x.ndim - 2)), 0)
