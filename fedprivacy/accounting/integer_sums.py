"""Accounts for a sum of integer vectors with Skellam or discrete Gaussian noise, by Renyi divergences.

A client adds to the sum an integer vector v of d coordinates with ||v||_2^2 <= L, so that ||v||_1 is at most
D1 = min(sqrt(d L), L), since |v_i| <= v_i^2. Under zero-out adjacency the sum moves by v, and its noise
stays: the client whose update is zeroed still adds its share. Under replace-one it moves by 2 sqrt(L) and
2 D1 at most. Under add-remove a client that leaves takes its share of the noise along, so that the two sums
have different noise: nothing is proved.

*Skellam* noise of variance mu in each coordinate, at integer orders a (Agarwal, Kairouz and Liu 2021,
Theorem 3.5 and Corollary 3.6), for a move of norms D2 and D1:

    a D2^2/(2 mu) + min(((2a - 1) D2^2 + 6 D1)/(4 mu^2), 3 D1/(2 mu))

*A sum of n discrete Gaussians*, each of parameter sigma^2 >= 1/4. Its mass differs from that of one discrete
Gaussian of parameter n sigma^2 by a factor of e^(t/2) at most, either way, with

    t = 10 (sum over k < n of e^(-2 pi^2 sigma^2 k/(k + 1)))

(Kairouz, Liu and Steinke 2021). One discrete Gaussian costs what a Gaussian does: a D2^2/(2 n
sigma^2). So the divergence of order a is at most the smaller of

    a D2^2/(2 n sigma^2) + d (t/2) (2a - 1)/(a - 1)
    a/2 (D2^2/(n sigma^2) + 2 t D1/(sqrt(n) sigma) + t^2 d)

The first puts the factor into both masses. The second is theirs: coordinate by coordinate the
factor is (t/2)-DP, hence (t/2)^2/2-concentrated, and roots of concentrated costs add up.
"""

from __future__ import annotations

import math

import attr
import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.errors import UnsupportedEvent

MOST_SQUARED_NORM = 2**63
LEAST_SHARE = 0.25  # sigma^2 of a discrete Gaussian whose sum has a bound
_TERMS = 1000  # of tau that are added up


@attr.s(frozen=True, slots=True, auto_attribs=True)
class SkellamDpEvent(dp.DpEvent):
    """A sum of integer vectors with Skellam noise; in the units of the integers.

    Args:
        variance: mu, the variance of the honest clients' noise in each coordinate.
        squared_norm: L, the most that the squared L2 norm of a client's vector is.
        dimension: d, the number of coordinates.
    """

    variance: float
    squared_norm: int
    dimension: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class DiscreteGaussianSumDpEvent(dp.DpEvent):
    """A sum of integer vectors with several discrete Gaussian noises; in the units of the integers.

    Args:
        variance: sigma^2, the parameter of one share of noise in each coordinate.
        shares: n, how many independent shares honest clients add.
        squared_norm: L, the most that the squared L2 norm of a client's vector is.
        dimension: d, the number of coordinates.
    """

    variance: float
    shares: int
    squared_norm: int
    dimension: int


IntegerSumDpEvent = SkellamDpEvent | DiscreteGaussianSumDpEvent
INTEGER_SUMS = (SkellamDpEvent, DiscreteGaussianSumDpEvent)


def integer_sum_rdp(event: IntegerSumDpEvent, orders: ArrayLike, adjacency: str) -> NDArray[np.float64]:
    """Bounds the Renyi divergences of one release; infinity at orders that prove nothing.

    Args:
        event: The release.
        orders: The orders, above 1.
        adjacency: "replace-one" or "zero-out".

    Raises:
        UnsupportedEvent: The adjacency is add-remove.
    """
    if adjacency == "add-remove":
        raise UnsupportedEvent(ADD_REMOVE)
    if event.squared_norm == 0:  # nothing moves; under add-remove the noise does
        return np.zeros_like(np.asarray(orders, dtype=np.float64))
    moved = 2 if adjacency == "replace-one" else 1
    l2 = moved * math.sqrt(event.squared_norm)
    l1 = moved * min(math.sqrt(event.dimension * event.squared_norm), event.squared_norm)
    alphas = np.asarray(orders, dtype=np.float64)
    if isinstance(event, SkellamDpEvent):
        return _skellam(alphas, event.variance, l2, l1)
    return _discrete_gaussians(alphas, event, l2, l1)


def _skellam(orders: NDArray[np.float64], mu: float, l2: float, l1: float) -> NDArray[np.float64]:
    surcharge = np.minimum(((2 * orders - 1) * l2**2 + 6 * l1) / (4 * mu**2), 3 * l1 / (2 * mu))
    # The theorem is proved for integer orders alone.
    return np.where(orders == np.floor(orders), orders * l2**2 / (2 * mu) + surcharge, np.inf)


def _discrete_gaussians(
    orders: NDArray[np.float64], event: DiscreteGaussianSumDpEvent, l2: float, l1: float
) -> NDArray[np.float64]:
    if event.variance < LEAST_SHARE:
        return np.full_like(orders, np.inf)
    total = event.shares * event.variance
    t, d = tau(event.variance, event.shares), event.dimension
    both = orders * l2**2 / (2 * total) + d * (t / 2) * (2 * orders - 1) / (orders - 1)
    roots = orders / 2 * (l2**2 / total + 2 * t * l1 / math.sqrt(total) + t**2 * d)
    return np.minimum(both, roots)


def tau(variance: float, shares: int) -> float:
    """Returns the term t by which a sum of discrete Gaussians differs from a single one.

    Beyond 1,000 shares it is an upper bound, so that its cost does not grow with their number.

    Args:
        variance: sigma^2 of each.
        shares: n, their number.
    """
    k = np.arange(1, min(shares, _TERMS + 1))
    total = float(np.sum(np.exp(-2 * math.pi**2 * variance * k / (k + 1))))
    # Terms fall: each of the others is at most the first that is left out.
    left = max(0, shares - 1 - _TERMS)
    total += left * math.exp(-2 * math.pi**2 * variance * (_TERMS + 1) / (_TERMS + 2))
    return 10 * total


ADD_REMOVE = (
    "Noise in shares has no account under add-remove: a client that leaves takes its share of the noise "
    "along. Use zero-out or replace-one adjacency."
)
SAMPLED = (
    "Noise in shares is not amplified by sampling: a client that is drawn brings its noise along. "
    "Account for the release without sampling."
)
