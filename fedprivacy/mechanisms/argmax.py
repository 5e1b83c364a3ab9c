"""The probability of each of k scores to be the largest after adding independent noise.

All take one set of scores less their maximum, shape (k,), none above 0, and give probabilities of that shape.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_FURTHEST = -700.0  # e^-700 is hardly a number any more: lower scores count as this
_SPREAD = 45.0  # noise beyond it has a probability below 1e-19
_BLOCK = 1_000_000  # numbers held at once
# Gauss-Legendre: between two kinks, and over a width of 1 at most, exact to 1e-12 or so.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def gumbel(below: Vector) -> Vector:
    """For Gumbel noise: proportional to e^score (the Gumbel-max trick); also for scores (..., k)."""
    weights = np.exp(below)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def exponential(below: Vector) -> Vector:
    """For exponential noise, which is permute-and-flip (Ding, Kifer, Steinke, Wang, Xiao and Zhang 2021).

    With p = e^score and v = e^-(largest noisy score) the chance is p_i int_0^1 prod_{j != i} (1 - p_j v) dv;
    McKenna and Sheldon 2020, Proposition 1, write the product out. Costs 500 operations a score.
    """
    chances = np.exp(below)
    # Halved again and again towards 0, since the product falls like e^(-v sum p).
    edges = np.concatenate([[0.0], 2.0 ** -np.arange(int(np.log2(len(below))) + 4, -1, -1)])

    def integrand(v: Vector) -> Vector:
        remaining = np.log1p(-chances * v[:, None])
        return np.asarray(np.exp(below + remaining.sum(axis=1, keepdims=True) - remaining))

    return _integral(integrand, edges, len(below))


def laplace(below: Vector) -> Vector:
    """For Laplace noise, by numerical integration over the value of the largest noisy score.

    Between two scores all densities are smooth, so that it costs some 16 k operations for each different one.
    """
    scores = np.maximum(below, _FURTHEST)
    grid = np.arange(scores.min() - _SPREAD, _SPREAD + np.log(len(scores)) + 1)
    edges = np.unique(np.concatenate([grid, scores]))

    def integrand(y: Vector) -> Vector:
        above = y[:, None] - scores
        half = np.exp(-np.abs(above)) / 2
        log_below = np.where(above < 0, above - np.log(2), np.log1p(-half))
        log_others = log_below.sum(axis=1, keepdims=True) - log_below
        return np.asarray(half * np.exp(log_others))

    return _integral(integrand, edges, len(scores))


def _integral(integrand: Callable[[Vector], Vector], edges: Vector, size: int) -> Vector:
    """The integral of a function of `size` values over [edges[0], edges[-1]], panel by panel."""
    half = np.diff(edges) / 2
    points = ((edges[:-1] + half)[:, None] + half[:, None] * _NODES).ravel()
    weights = (half[:, None] * _WEIGHTS).ravel()
    total = np.zeros(size)
    step = max(1, _BLOCK // size)
    for start in range(0, len(points), step):
        total += weights[start : start + step] @ integrand(points[start : start + step])
    return total
