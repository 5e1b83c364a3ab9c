"""The Renyi divergence of Gaussian noise on samples of fixed size, drawn without replacement.

Wang, Balle and Kasiviswanathan 2019, Theorem 27, for one record replaced: what `RdpAccountant` of
dp_accounting computes, but for all orders at once, since a calibration asks for dozens of curves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Numbers = NDArray[np.float64]

# Of a difference of order k, relative to 2^k times the largest number in it: what cancellation leaves of
# rounding. It is added, so that where nothing but rounding is left the simpler bound counts.
_ROUNDING = 1e-13
_EXACT = 256  # the largest order whose bound is taken by differences; beyond, by the simpler bound


def fixed_size_rdp(rate: float, noise: float, orders: Numbers) -> Numbers:
    """The Renyi divergence at each order.

    Args:
        rate: The share of all records that is sampled, in (0, 1).
        noise: Noise standard deviation / what replacing one record changes.
        orders: Above 1; between whole orders the cumulants are interpolated (their Corollary 10).
    """
    below, above = np.floor(orders).astype(int), np.ceil(orders).astype(int)
    simple, exact = _log_terms(rate, noise, int(above.max()))
    cumulants = {
        order: _log_sum(exact if order <= _EXACT else simple, order) for order in {*below, *above} - {1}
    }
    cumulants[1] = 0.0
    low = np.array([cumulants[order] for order in below])
    high = np.array([cumulants[order] for order in above])
    return (low + (orders - below) * (high - low)) / (orders - 1)


def _log_terms(rate: float, noise: float, largest: int) -> tuple[Numbers, Numbers]:
    """The terms of degrees 2 to `largest` without binomial coefficients, by both bounds, in logarithms."""
    degrees = np.arange(2, largest + 1)
    moments = degrees * (degrees - 1) / (2 * noise * noise)  # log E[ratio^degree]
    powers = degrees * np.log(rate)
    second = np.log(4) + moments[0] + np.log1p(-np.exp(-moments[0]))
    simple = np.log(2) + moments
    simple[0] = min(second, simple[0])
    exact = simple[: _EXACT - 1].copy()
    differences = _log_differences(noise, min(largest, _EXACT))
    pairs = degrees[1 : len(exact)]
    paired = differences[2 * (pairs // 2) - 1] + differences[2 * ((pairs + 1) // 2) - 1]
    exact[1:] = np.minimum(exact[1:], np.log(4) + paired / 2)
    return simple + powers, exact + powers[: len(exact)]


def _log_sum(terms: Numbers, order: int) -> float:
    degrees = np.arange(2, order + 1)
    choices = gammaln(order + 1) - gammaln(degrees + 1) - gammaln(order - degrees + 1)
    return float(np.logaddexp(0.0, logsumexp(terms[: order - 1] + choices)))


def _log_differences(noise: float, largest: int) -> Numbers:
    """log |D^k f(0)| for k from 1, rounded up, where f(x) = E[ratio^x] and D is the forward difference."""
    points = np.arange(largest + 3)
    moments = values = points * (points - 1) / (2 * noise * noise)
    signs = np.ones(largest + 3, dtype=bool)
    found = np.empty(largest + 2)
    for k in range(largest + 2):
        values, signs = _difference(values, signs)
        found[k] = values[0]
    lost = np.log(_ROUNDING) + points[1:] * np.log(2) + moments[1:]
    return np.logaddexp(found, lost)


def _difference(values: Numbers, signs: NDArray[np.bool_]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Next minus this, of numbers given by the logarithms of their sizes and by their signs."""
    this, following = values[:-1], values[1:]
    larger, smaller = np.maximum(this, following), np.minimum(this, following)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(larger == smaller, -np.inf, larger + np.log(1 - np.exp(smaller - larger)))
    same = signs[:-1] == signs[1:]
    found = np.where(same, apart, np.logaddexp(this, following))
    grows = (following >= this) == signs[1:]
    return found, np.where(same, grows, signs[1:])
