"""The design effect of records that come in clients: their error over that of independent ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t


def design_effect(right: NDArray[np.bool_], sizes: NDArray[np.int64]) -> float:
    """Variance of an accuracy over drawn clients, over that of independent records; at least 1.

    It is widened for few clients, by the quantile of Student's t over the normal one (Kish 1965).

    Args:
        right: Whether each record is named rightly, client by client, shape (records,).
        sizes: The records of each client, shape (clients,).
    """
    sizes = sizes[sizes > 0]
    clients, mean = len(sizes), float(right.mean())
    independent = mean * (1 - mean) / len(right)
    if clients < 2 or sizes.max() == 1 or independent == 0:
        return 1.0
    sums = np.add.reduceat(right - mean, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
    variance = clients / (clients - 1) * float(np.sum(sums**2)) / len(right) ** 2
    few = float(t.ppf(0.975, clients - 1) / norm.ppf(0.975)) ** 2
    return max(1.0, few * variance / independent)
