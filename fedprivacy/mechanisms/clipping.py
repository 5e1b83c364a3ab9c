"""Flat L2 clipping of client updates: the step that bounds what one client can change."""

from __future__ import annotations

import math

import torch
from torch import Tensor

ROUNDING = 2.0**-53  # of one operation in float64, relative
_PART, _PARTS = 2.0**-30, 2.0**-8  # of C, that rounding may change: one client's part in a sum, and all parts
_LEVELS = 2.0**14  # twice the additions that one client's part goes through, but for compensated ones
_MOST = 2**31


def bounds_of_a_sum(
    clipping_norm: float | None, clients: int, weight: float = 1.0
) -> tuple[float | None, float]:
    """Bounds what a client adds to a float64 sum, so that rounding stays within its sensitivity.

    Write S for the exact sum of the clipped updates u_j of n clients, each of norm C (1 - s) at most, and
    F for the computed sum, in any order and by any kernel. With u = 2^-53:

    - Each call multiplies and adds the parts of its clients. The error of client j's part is at most
      e_j = (terms + 8) u a_j, with `terms` the longest sum that the call makes, and a_j the sum of
      the absolute products that the part consists of (Higham 2002, section 3.1). A client is clipped until
      e_j <= p C with p = min(2^-30, 2^-8 / n): a decision that depends on this client alone.
    - On five levels at most 2^10 vectors are added up plainly: formed updates of a call, what `Joined` has of
      several calls, clients that are trained one by one, and a block of calls on a node and of messages on
      the server. Each addition rounds by at most u times what it adds up, so that a level errs by at most
      2^10 u for each client, relative to C (1 + 2^-20).
    - Node and server add up blocks with compensation: 2 u + 2 (n u)^2 for each client
      (`fedprivacy.mechanisms.summation`).

    So |F - S| <= n (p + (5 * 2^10 + 4) u (1 + 2^-20) + 4 (n u)^2 (1 + 2^-20)) C =: B. For neighbours of
    which one update is replaced |F - F'| <= 2 C (1 - s) + 2 B, and where one comes or goes
    |F - F'| <= C (1 - s) + 2 B. With s = n (2 p + 2^14 u + 10 (n u)^2) both are within 2 C and C, since
    2 B <= s C. It is below 2^-6 for up to 2^31 clients, which no scenario exceeds.

    A client with a weight w <= 1 adds w times its clipped update and has the sensitivity w C. B holds for
    all, since a weighted part is no longer and is rounded once more, for which 2^14 u leaves room. So the s
    of this client is that above divided by w, whatever weights others have.

    Args:
        clipping_norm: C, or None without clipping and without a guarantee.
        clients: n, the most that a sum may hold by the plan.
        weight: The factor of this client's clipped update, in (0, 1].

    Returns:
        The norm C (1 - s) that updates are clipped to, and the error p C that the part of one may have.

    Raises:
        ValueError: if there are more than 2^31 clients, or so many that rounding exceeds a weighted part.
    """
    if clipping_norm is None:
        return None, math.inf
    if clients > _MOST:
        raise ValueError(f"the rounding of a sum of {clients} clients is bounded for up to {_MOST}")
    part = min(_PART, _PARTS / max(1, clients))
    slack = clients * (2.0 * part + _LEVELS * ROUNDING + 10.0 * (clients * ROUNDING) ** 2) / weight
    if slack >= 0.5:
        raise ValueError(
            f"rounding in a sum of {clients} clients is no smaller than a part of weight {weight:g}"
        )
    return clipping_norm * (1.0 - slack), clipping_norm * part


def clip(updates: Tensor, clipping_norm: float | Tensor | None) -> tuple[Tensor, Tensor]:
    """Bounds the L2 norm of each update; an update that is not finite becomes zero.

    Clips in float64, so that the bound holds up to one float64 rounding, and later noise is not lost to
    rounding.

    Args:
        updates: One update a row, shape (clients, parameters), any float type.
        clipping_norm: The bound C, or one of each row, float64, shape (clients,); None clips nothing (then
            only non-finite rows are zeroed).

    Returns:
        The clipped updates, float64, shape (clients, parameters), and the mask of the rows that
        were zeroed because they held NaN or infinite numbers, shape (clients,).
    """
    # A norm of NaN is not above C: it would pass a comparison unclipped and spoil the whole sum.
    broken = ~torch.isfinite(updates).all(dim=1)
    bounded = updates.to(torch.float64)
    if broken.any():
        bounded = torch.where(broken[:, None], torch.zeros((), dtype=torch.float64), bounded)
    if clipping_norm is not None:
        # A finite float32 row cannot overflow a float64 norm; clamp_min keeps zero updates zero.
        # The computed norm may be below the true one by the rounding of its additions; the factor makes it an
        # upper bound, so that no row is longer than C afterwards.
        norms = torch.linalg.vector_norm(bounded, dim=1) * (1.0 + (updates.shape[1] + 8) * ROUNDING)
        bounds = torch.as_tensor(clipping_norm, dtype=torch.float64)
        scales = bounds / torch.maximum(norms, bounds)
        bounded = bounded * scales[:, None]
    return bounded, broken


def shares_of_norms(
    norms: Tensor, clipping_norm: float | None, errors: Tensor | None = None, most: float = math.inf
) -> tuple[Tensor, Tensor]:
    """The factor that bounds each update's L2 norm by C: min(1, C/norm).

    Args:
        norms: The norms, float64, shape (clients,).
        clipping_norm: The bound C, or None to clip nothing.
        errors: A bound on each update's rounding error in a sum, float64, shape (clients,), or None.
        most: The allowed rounding error: a client with a larger one is clipped harder.

    Returns:
        The shares, float64, 0 where a norm is not finite; and where that is, shape (clients,).
    """
    broken = ~torch.isfinite(norms)
    bound = torch.inf if clipping_norm is None else clipping_norm
    shares = torch.where(norms > bound, bound / norms, 1.0)
    if errors is not None:
        # Clipping harder costs accuracy for one client; leaving its rounding unbounded would cost privacy.
        broken |= ~torch.isfinite(errors)
        shares = torch.where(shares * errors > most, most / errors, shares)
    return shares.masked_fill(broken, 0.0), broken
