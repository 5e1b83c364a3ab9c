"""Accounts for Gaussian noise on cohorts of fixed size, drawn uniformly without replacement.

H(alpha; P, Q) is the hockey-stick divergence, which is delta at epsilon = log alpha; as a function of alpha
it is called a curve. q is cohort / population. A is the release about a cohort with the client, B the same
with its record changed, and R the release about a cohort without it, so that the neighbours are
D = (1 - q) R + q A and D' = (1 - q) R + q B. By advanced joint convexity (Balle, Barthe and Gaboardi 2018,
Theorem 2), for alpha >= 1 with alpha' = 1 + (alpha - 1)/q and beta = alpha/alpha',

    H(alpha; D, D') = q H(alpha'; A, (1 - beta) R + beta B)
                   <= q ((1 - beta) H(alpha'; A, R) + beta H(alpha'; A, B)),

    H(alpha; D, D') = 1 - alpha + alpha H(1/alpha; D', D)    for alpha < 1.

A cohort without the client has another in its place: replace the client by one drawn from those left out, and
a cohort with it becomes a cohort without it, uniformly drawn. So A and R are mixtures over pairs of cohorts
that differ in one client, and hockey sticks are jointly convex. With G(alpha; d) the curve of Gaussian noise
between sums at distance d:

- *replace-one*: the client's record, the changed one and that of another are at most 2C apart, and both
  directions have the curve q G(alpha'; 2C). It is that of (1 - q) Q + q P and Q for alpha >= 1, and of P and
  (1 - q) P + q Q below (Zhu, Dong and Wang 2022, Theorem 11), and is attained where R = B.
- *zero-out*: A and R are 2C apart at most, but A and B are C apart, and so are B and R. With the client's
  record in D the curve is q ((1 - beta) G(alpha'; 2C) + beta G(alpha'; C)), with it zeroed q G(alpha'; C).
- *add-remove* has no curve here: population and rate would differ between neighbours, and both are public.

Each curve, with both its branches, belongs to one pair that dominates a round, and pairs compose, also where
later rounds depend on earlier ones (their Theorem 10). To compose either branch alone and take the larger
result claims too little (Lebeda et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedprivacy.accounting.gaussian import gaussian_deltas

if TYPE_CHECKING:
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

Numbers = NDArray[np.float64]
Curve = Callable[[Numbers], Numbers]  # epsilons, at least 0 -> delta

_TAIL = 8.5  # standard deviations of the noise, beyond which a loss counts as infinite: 1e-17
_ROUNDING = 1e-15  # added to each delta: against 50 digits they are right to 4e-16


def largest_loss(rate: float, noise: float) -> float:
    """The privacy loss of a round that is followed, replacing one record; larger ones count as infinite.

    Args:
        rate: The share of the population in a cohort, in (0, 1).
        noise: Noise standard deviation / clipping norm C.
    """
    mu = 2 / noise
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + mu * mu / 2 + _TAIL * mu))


def fixed_size_loss(rate: float, noise: float, adjacency: str, step: float) -> pld.PrivacyLossDistribution:
    """The pessimistic privacy loss distribution of one round.

    Args:
        rate: The share of the population in a cohort, in (0, 1).
        noise: Noise standard deviation / clipping norm C.
        adjacency: "replace-one" or "zero-out".
        step: The grid of the losses.
    """

    from dp_accounting.pld import privacy_loss_distribution as pld

    def near(epsilons: Numbers) -> Numbers:
        return rate * gaussian_deltas(_inner(epsilons, rate), 1 / noise)

    def far(epsilons: Numbers) -> Numbers:
        return rate * gaussian_deltas(_inner(epsilons, rate), 2 / noise)

    def mixed(epsilons: Numbers) -> Numbers:
        others = (rate - 1) * np.expm1(-epsilons)  # 1 - beta is the share of this in the sum with q
        return (others * far(epsilons) + rate * near(epsilons)) / (others + rate)

    points = math.ceil(largest_loss(rate, noise) / step)
    if adjacency == "replace-one":
        return pld.PrivacyLossDistribution(_distribution(far, far, step, points))
    return pld.PrivacyLossDistribution(
        _distribution(mixed, near, step, points), _distribution(near, mixed, step, points)
    )


def _inner(epsilons: Numbers, rate: float) -> Numbers:
    """log(1 + (e^epsilon - 1)/q), without a difference of near numbers and without a huge one."""
    small = np.log1p(np.expm1(np.minimum(epsilons, 1.0)) / rate)
    large = epsilons - math.log(rate) + np.log1p((rate - 1) * np.exp(-epsilons))
    return np.where(epsilons < 1, small, large)


def _distribution(above: Curve, swapped: Curve, step: float, points: int) -> pld_pmf.PLDPmf:
    """Connects dots of a curve, which stays above the true one (Doroshenko et al. 2022).

    Where dots are not convex for rounding, dp_accounting raises a negative probability to 0, which raises
    the curve.

    Args:
        above: The curve for alpha >= 1.
        swapped: That of the same neighbours in the other order, from which the part below 1 follows.
        step: The grid of the losses, on which 0 lies, where the curve has a corner.
        points: On either side of 0.
    """
    from dp_accounting.pld import pld_pmf

    grid = (np.arange(points + 1) * step).astype(np.float64)
    below = -grid[:0:-1]
    left = -np.expm1(below) + np.exp(below) * swapped(-below)
    deltas = np.clip(np.concatenate([left, above(grid)]) + _ROUNDING, 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        step, -points, points, np.minimum.accumulate(deltas)
    )


# --- Renyi divergence, which private selection needs ------------------------------------------------

_PANEL, _NODES = 0.5, 16  # standard deviations; of Gauss and Legendre in each
_BEYOND = 40.0  # standard deviations above the largest mode of an integrand
_FOLLOWED = 8.0  # mu: with less noise the rounds are accounted for as if all clients participated
_QUADRATURE = 1e-9  # relative


def fixed_size_rdp(rate: float, noise: float, orders: Numbers) -> Numbers:
    """The Renyi divergence at each order of the pair that dominates a round under replace-one.

    With r = 1 - q + q e^x for the loss x of the Gaussian pair P and Q, it is at order a

        log(1 + E_Q[(r^a - 1)(1 - r^(1 - a)); x > 0]) / (a - 1).

    Args:
        rate: The share of the population in a cohort, in (0, 1).
        noise: Noise standard deviation / clipping norm C.
        orders: Above 1.
    """
    mu = 2 / noise
    # By quasi-convexity at most the divergence of runs in which the client always participates.
    everybody = orders * mu * mu / 2
    if mu > _FOLLOWED:
        return everybody
    sampled = np.array([_excess(rate, mu, float(order)) for order in orders]) / (orders - 1)
    return np.minimum(sampled, everybody)


def _excess(rate: float, mu: float, order: float) -> float:
    """(a - 1) times the divergence, by quadrature over t = x/mu from 0."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    panels = np.arange(math.ceil((order * mu + _BEYOND) / _PANEL))
    t = ((panels[:, None] + (nodes + 1) / 2) * _PANEL).ravel()
    log_weights = np.log(np.tile(weights, len(panels)) * _PANEL / 2 / math.sqrt(2 * math.pi))
    x = mu * t
    log_r = np.where(
        x < 1,
        np.log1p(rate * np.expm1(np.minimum(x, 1.0))),
        np.logaddexp(math.log1p(-rate), math.log(rate) + x),
    )
    rises = order * log_r + np.log(-np.expm1(-order * log_r))
    falls = np.log(-np.expm1((1 - order) * log_r))
    log_terms = log_weights + rises + falls - (t + mu / 2) ** 2 / 2
    return float(np.logaddexp(0.0, np.logaddexp.reduce(log_terms) + _QUADRATURE))
