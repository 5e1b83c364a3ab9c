"""Accounts by Renyi differential privacy (dp_accounting), with an allowance for rounding."""

from __future__ import annotations

import logging
import math
from functools import lru_cache

import attr
import numpy as np
from dp_accounting import dp_event as dp
from dp_accounting.privacy_accountant import UnsupportedEventError
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS
from dp_accounting.rdp.rdp_privacy_accountant import _compute_rdp_repeat_and_select as best_of

from fedprivacy.accounting.events import RELATIONS, Composition, releases
from fedprivacy.accounting.fixed_size import fixed_size_rdp
from fedprivacy.accounting.gaussian import joint_noise
from fedprivacy.accounting.integer_sums import INTEGER_SUMS, integer_sum_rdp
from fedprivacy.accounting.pure_dp import basic_composition
from fedprivacy.accounting.replaced_sample import replaced_in_sample
from fedprivacy.errors import UnsupportedEvent

ORDERS = tuple(map(float, DEFAULT_RDP_ORDERS))  # those that every curve is computed at

# dp_accounting computes log E[e^...] near 0 by adding to 1. Terms below about 1e-16 per release are rounding
# errors of either sign, which are then divided by an order - 1 of at least 0.1.
_RDP_ERROR = 1e-14
_QUIET = logging.getLogger("absl")


def renyi_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    orders, curve = _renyi_curve(parts, adjacency)
    return float(compute_epsilon(orders, curve, delta)[0])


def renyi_epsilon_at(order: float, divergence: float, delta: float) -> float:
    """The epsilon at a delta of a Renyi divergence at one order, by the conversion of `renyi_epsilon`."""
    return float(compute_epsilon([order], [divergence], delta)[0])


def renyi_divergence(event: dp.DpEvent, order: float, adjacency: str) -> float:
    """A bound on the Renyi divergence of a release at one order; infinite where there is none.

    The divergence grows with the order, so a bound at a larger order is one too: sums of integer noise have
    none at orders between integers.

    Releases of pure epsilon-DP that no Renyi accountant knows count as randomised response of their epsilon,
    of which each is a function (Kairouz, Oh and Viswanath 2015).

    Args:
        event: The release; noise multipliers are noise standard deviation / C.
        order: One of `ORDERS`.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        UnsupportedEvent: no bound is known.
    """
    at, total = ORDERS.index(order), 0.0
    for leaf, count in releases(event, adjacency):
        if isinstance(leaf, dp.NonPrivateDpEvent):
            return math.inf
        if isinstance(leaf, dp.RandomizedResponseDpEvent) and adjacency != "replace-one":
            # dp_accounting's zero-out means an answer drawn uniformly, which no mechanism here does.
            raise UnsupportedEvent(f"No Renyi accounting for randomised response under {adjacency}.")
        try:
            total += float(_renyi_curve(((leaf, count),), adjacency)[1][at:].min())
        except UnsupportedEvent:
            total += count * _divergence_otherwise(leaf, order, adjacency)
    return total


def _divergence_otherwise(leaf: dp.DpEvent, order: float, adjacency: str) -> float:
    """The divergence of one release that has no curve."""
    if isinstance(leaf, dp.PoissonSampledDpEvent) and adjacency == "replace-one":
        noise = joint_noise(leaf.event)
        if noise is not None:
            return replaced_in_sample(leaf.sampling_probability, noise, order)
    try:
        return _pure_divergence(basic_composition(((leaf, 1),), 0.0, adjacency), order)
    except UnsupportedEvent:
        kind = type(leaf).__name__.removesuffix("DpEvent")
        raise UnsupportedEvent(f"No Renyi accounting for {kind} under {adjacency}.") from None


def _pure_divergence(epsilon: float, order: float) -> float:
    """The Renyi divergence of randomised response of an epsilon; at most this epsilon."""
    # With the probabilities e^epsilon/(1 + e^epsilon) and 1/(1 + e^epsilon) of the true answer.
    moment = np.logaddexp(order * epsilon, (1 - order) * epsilon) - np.logaddexp(0.0, epsilon)
    return float(min(epsilon, max(moment, 0.0) / (order - 1) + _RDP_ERROR * max(1.0, order * epsilon)))


@lru_cache(maxsize=64)
def _renyi_curve(parts: Composition, adjacency: str) -> tuple[np.ndarray, np.ndarray]:
    """Orders and their Renyi divergences; where an order proves nothing, infinity."""
    accountant = RdpAccountant(neighboring_relation=RELATIONS[adjacency])
    fixed = np.zeros(len(accountant.orders))
    for leaf, count in parts:
        if isinstance(leaf, dp.SampledWithoutReplacementDpEvent) and adjacency != "add-remove":
            noise = joint_noise(leaf.event)
            if noise is not None:
                rate = leaf.sample_size / leaf.source_dataset_size
                # Zeroing a record is a case of replacing it. Sampling gives a mixture, and by quasi-convexity
                # its divergence is at most that of the runs in which the record is always sampled.
                sensitivity = 2.0 if adjacency == "replace-one" else 1.0
                everybody = sensitivity**2 * np.asarray(accountant.orders) / (2 * noise**2)
                fixed += count * np.minimum(fixed_size_rdp(rate, noise, accountant.orders), everybody)
                continue
        if isinstance(leaf, dp.RepeatAndSelectDpEvent):
            # By Papernot and Steinke's theorems, from the cost of one try as computed *here*: with the
            # rounding allowance of each release, and with fixed-size cohorts as in a run.
            _, once = _renyi_curve(releases(leaf.event, adjacency), adjacency)
            with np.errstate(all="ignore"):
                fixed += count * np.asarray(best_of(accountant.orders, once, leaf.mean, leaf.shape))
            continue
        if isinstance(leaf, INTEGER_SUMS):
            fixed += count * integer_sum_rdp(leaf, accountant.orders, adjacency)
            continue
        quiet = _QUIET.disabled
        try:
            _QUIET.disabled = True  # an order that it cannot compute proves nothing, and is left out
            # RdpAccountant does not double the sensitivity of a replaced record: half the noise does it.
            with np.errstate(all="ignore"):  # infinities are right, and NaN is dealt with below
                accountant.compose(_half_noise(leaf) if adjacency == "replace-one" else leaf, count)
        except (UnsupportedEventError, ValueError) as error:  # the latter where a curve has no logarithm
            raise UnsupportedEvent(f"No Renyi accounting for {leaf} under {adjacency}.") from error
        finally:
            _QUIET.disabled = quiet
    # dp_accounting takes NaN at one order for an epsilon of 0: such an order proves nothing.
    slack = _RDP_ERROR * sum(count for _, count in parts)
    total = accountant.rdp + fixed
    curve = np.where(np.isnan(total), np.inf, np.maximum(total, 0.0) + slack)
    return np.asarray(accountant.orders), curve


def _half_noise(event: dp.DpEvent) -> dp.DpEvent:
    if isinstance(event, dp.GaussianDpEvent | dp.LaplaceDpEvent):
        return attr.evolve(event, noise_multiplier=event.noise_multiplier / 2)
    if isinstance(event, dp.ComposedDpEvent):
        return dp.ComposedDpEvent([_half_noise(part) for part in event.events])
    if hasattr(event, "event"):
        return attr.evolve(event, event=_half_noise(event.event))
    return event
