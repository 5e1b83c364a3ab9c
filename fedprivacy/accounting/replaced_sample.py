"""The Renyi divergence of Gaussian noise on a Poisson sample, of which one record is replaced.

The dominating pair is that of the privacy loss distribution: (1 - q) N(0, z^2) + q N(1, z^2), and the same
with N(-1, z^2), in units of the clipping norm. A dominating pair bounds every f-divergence, and so the Renyi
divergence of every order (Zhu, Dong and Wang 2022). It has no closed form here.
"""

from __future__ import annotations

import math

import numpy as np

_TAIL = 40.0  # standard deviations: beyond them lies e^-800
_ERROR = 1e-13  # of sums of logarithms, relative
_LEAST_NOISE = 0.05  # below it sampling saves nothing worth an integral


def replaced_in_sample(rate: float, noise: float, order: float) -> float:
    """Bounds the Renyi divergence of one release.

    Args:
        rate: The sampling probability q, in (0, 1].
        noise: Noise standard deviation / clipping norm.
        order: Above 1.
    """
    # By joint quasi-convexity it is at most that of the sample in which the record always is.
    everybody = 2 * order / noise**2
    if noise < _LEAST_NOISE or rate == 1:
        return everybody
    # The trapezoidal rule is exact up to e^(-2 pi d/h) for an integrand that is analytic in a strip of
    # half-width d around the axis. Here d = pi z^2: the nearest zero of a mixture.
    step = min(noise / 10, math.pi * noise**2 / 8)
    # Both tails are Gaussian, with means between -order and order.
    end = order + 1 + _TAIL * noise
    x = np.arange(-end, end + step, step)
    above, below = (
        np.logaddexp(math.log1p(-rate), math.log(rate) + (sign * 2 * x - 1) / (2 * noise**2))
        for sign in (1, -1)
    )
    terms = below + order * (above - below) - (x / noise) ** 2 / 2
    largest = float(terms.max())
    moment = largest + math.log(
        float(np.exp(terms - largest).sum()) * step / (noise * math.sqrt(2 * math.pi))
    )
    slack = _ERROR * (1 + abs(moment))
    return min(everybody, (max(moment, 0.0) + slack) / (order - 1))
