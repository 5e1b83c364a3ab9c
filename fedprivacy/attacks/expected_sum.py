"""The sum that an attacker expects of the clients that it does not attack, from clients of its own.

A sum of n clients has the victim's update once and n - 1 others, whose mean grows with n while the victim's
part does not. An attacker that knows the model trains clients of its own on records that nobody owns, and
takes their mean off.
"""

from __future__ import annotations

import torch
from torch import Tensor


def expected_sum(references: Tensor, clients: int) -> Tensor:
    """The expected sum of some clients' updates, float32, shape (parameters,).

    The mean of few references has an error that a sum would multiply. It is shrunk towards zero by the part
    of its squared length that is not error (James and Stein 1961), so that useless references do no harm.

    Args:
        references: Updates of clients whose records are drawn as theirs are, shape (references, parameters).
        clients: How many clients the sum is of.

    >>> expected_sum(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), 3)
    tensor([6., 3.])
    >>> expected_sum(torch.tensor([[2.0], [-2.0]]), 3)
    tensor([0.])
    """
    exact = references.double()
    mean = exact.mean(dim=0)
    error = float((exact.var(dim=0).sum() / len(exact)) if len(exact) > 1 else 0.0)
    length = float(mean.square().sum())
    factor = max(0.0, 1.0 - error / length) if length > 0.0 else 0.0
    return torch.mul(mean, clients * factor).float()
