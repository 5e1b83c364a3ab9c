"""Picks the record of an update out of a prior of candidates, by an attacker that knows all the rest.

Hayes, Mahloujifar and Balle 2023 ("Bounding training data reconstruction in DP-SGD"): the score of a
candidate is the inner product of the privatised update with what the candidate would have added. The
attacker computes these by itself, since it knows the model and the other records. Of candidates of unequal
length half the square is taken off, which makes the score the log-likelihood under Gaussian noise; for
those of equal length it changes nothing. No attacker with a uniform prior is right more often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def candidate_scores(release: Vector, candidates: Vector) -> Vector:
    """The score of each candidate, shape (candidates,), or of each release, (releases, candidates).

    Args:
        release: Privatised updates without their known part, shape (parameters,) or (releases, parameters).
        candidates: The clipped updates without noise, one for each candidate, shape (candidates, parameters).
    """
    return release @ candidates.T - (candidates**2).sum(axis=1) / 2


def pick(release: Vector, candidates: Vector) -> NDArray[np.int64]:
    """The number of the likeliest candidate; see `candidate_scores`."""
    return np.asarray(candidate_scores(release, candidates).argmax(axis=-1))
