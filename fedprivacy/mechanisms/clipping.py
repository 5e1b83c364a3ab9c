"""Flat L2 clipping of client updates: the step that bounds what one client can change."""

from __future__ import annotations

import torch
from torch import Tensor


def clip(updates: Tensor, clipping_norm: float | None) -> tuple[Tensor, Tensor]:
    """Bounds the L2 norm of each update; an update that is not finite becomes zero.

    Clipping is done in float64, so that the bound holds up to one float64 rounding and the noise
    that is added later is not swallowed.

    Args:
        updates: One update a row, shape (clients, parameters), any float type.
        clipping_norm: The bound C, or None to clip nothing (then only non-finite rows are zeroed).

    Returns:
        The clipped updates, float64, shape (clients, parameters), and the mask of the rows that
        were zeroed because they held NaN or infinite numbers, shape (clients,).
    """
    broken = ~torch.isfinite(updates).all(dim=1)
    bounded = updates.to(torch.float64)
    if broken.any():
        bounded = torch.where(broken[:, None], torch.zeros((), dtype=torch.float64), bounded)
    if clipping_norm is not None:
        # A finite float32 row cannot overflow a float64 norm; clamp_min keeps zero updates zero.
        norms = torch.linalg.vector_norm(bounded, dim=1)
        scales = clipping_norm / norms.clamp_min(clipping_norm)
        bounded = bounded * scales[:, None]
    return bounded, broken


def shares_of_norms(norms: Tensor, clipping_norm: float | None) -> tuple[Tensor, Tensor]:
    """What each update is multiplied by, so that its L2 norm is C at most: min(1, C/norm).

    Args:
        norms: The norms, float64, shape (clients,).
        clipping_norm: The bound C, or None to clip nothing.

    Returns:
        The shares, float64, 0 where a norm is not finite; and where that is, shape (clients,).
    """
    broken = ~torch.isfinite(norms)
    bound = torch.inf if clipping_norm is None else clipping_norm
    shares = torch.where(norms > bound, bound / norms, 1.0)
    return shares.masked_fill(broken, 0.0), broken


def add_in_order(updates: Tensor) -> Tensor:
    """The sum of a chunk's updates, float64, shape (parameters,).

    One function for the node that replies with a sum of formed updates and for the server that got each of
    them, so that both find the same bits.
    """
    return updates.sum(dim=0)
