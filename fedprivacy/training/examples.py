"""Stub."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedprivacy.models import unflatten


@dataclass(frozen=True)
class ClippedSums:
    sums: Tensor
    zeroed: Tensor


def clipped_sums(
    module: nn.Module, weights: Tensor, x: Tensor, y: Tensor, used: Tensor, clipping_norm: float | None
) -> ClippedSums:
    def loss(w, a, b):
        return nn.functional.cross_entropy(functional_call(module, unflatten(module, w), a[None]), b[None])

    per = vmap(vmap(grad(loss), in_dims=(None, 0, 0)), in_dims=(None if weights.ndim == 1 else 0, 0, 0))(
        weights, x, y
    )
    bad = ~torch.isfinite(per).all(-1)
    per = torch.where((bad | ~used)[..., None], 0.0, per)
    if clipping_norm is not None:
        per = per * (clipping_norm / per.norm(dim=-1).clamp_min(clipping_norm))[..., None]
    return ClippedSums(per.sum(1), (bad & used).sum(1))
