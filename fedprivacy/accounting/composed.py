"""The composition theorems side by side: the bound of each on the same k releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dp_accounting import dp_event as dp

from fedprivacy.accounting import composition as theorem
from fedprivacy.accounting.composition import (
    ROUNDING,
    check_delta,
    check_mu,
    check_release,
    check_whole,
    left_over,
)
from fedprivacy.accounting.epsilon import epsilon_pld, epsilon_rdp
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError

BASIC = "Dwork and Roth 2014, Theorem 3.16"
ADVANCED = "Dwork, Rothblum and Vadhan 2010"
OPTIMAL = "Kairouz, Oh and Viswanath 2015, Theorem 3.3"
LOSSES = "Koskela et al. 2020; Doroshenko et al. 2022 (dp_accounting)"
ZCDP = "Bun and Steinke 2016"
RENYI = "Mironov 2017; Canonne, Kamath and Steinke 2020"
EXACT = "Balle and Wang 2018; Dong, Roth and Su 2022"


@dataclass(frozen=True)
class Bound:
    """The joint bound of one theorem on all releases.

    Args:
        name: Of the theorem.
        epsilon: None where the theorem does not apply, or proves nothing.
        delta: Of the guarantee; at most the requested one.
        note: How delta was split, or why the theorem does not apply.
        source: The theorem.
    """

    name: str
    epsilon: float | None
    delta: float
    note: str
    source: str

    @property
    def applies(self) -> bool:
        """Whether the theorem applies here."""
        return self.epsilon is not None


def compositions(epsilon: float, delta: float, count: int, total_delta: float) -> list[Bound]:
    """Computes each theorem's bound on `count` releases of which only (epsilon, delta) is known.

    Args:
        epsilon: Of one release, from 1e-9 to 500.
        delta: Of one release, in [0, 1); 0 for pure epsilon-DP.
        count: The number of releases, from 1 to a million.
        total_delta: The delta of the whole, in (0, 1).

    Raises:
        InputError: A number is out of range.
    """
    check_release(epsilon, delta)
    check_whole("releases", count)
    check_delta(total_delta)
    spent = count * delta
    too_small = f"the deltas of the releases sum to {spent:.3g}, and leave nothing of {total_delta:g}"

    def of_basic() -> tuple[float, float, str]:
        if spent > total_delta:
            raise InputError(too_small)
        return count * epsilon, spent, ""

    def of_advanced() -> tuple[float, float, str]:
        slack = (total_delta - spent) - ROUNDING * total_delta if delta else total_delta
        if slack <= 0:
            raise InputError(too_small)
        split = f"delta' = {slack:.3g} for the theorem, the rest for the releases" if delta else ""
        return theorem.advanced(epsilon, delta, count, slack)[0], total_delta, split

    def of_optimal() -> tuple[float, float, str]:
        return theorem.optimal(epsilon, delta, count, total_delta), total_delta, ""

    def of_losses() -> tuple[float, float, str]:
        # The dominating pair of (epsilon, delta)-DP is the one of the optimal theorem.
        left = left_over(epsilon, delta, count, total_delta)
        event = dp.SelfComposedDpEvent(PureDpEvent(epsilon), count)
        return epsilon_pld(event, left, "replace-one"), total_delta, "numerically, on a grid that rounds up"

    def of_zcdp() -> tuple[float, float, str]:
        if delta:
            raise InputError("a release with a delta has no rho")
        return (
            theorem.zcdp_epsilon(count * epsilon * epsilon / 2, total_delta),
            total_delta,
            "rho = epsilon^2/2 each",
        )

    return [
        _bound("basic", BASIC, total_delta, of_basic),
        _bound("advanced", ADVANCED, total_delta, of_advanced),
        _bound("zCDP", ZCDP, total_delta, of_zcdp),
        _bound("PLD", LOSSES, total_delta, of_losses),
        _bound("optimal", OPTIMAL, total_delta, of_optimal),
        Bound("Gaussian", None, total_delta, "for Gaussian noise alone, of known noise multiplier", EXACT),
    ]


def gaussian_compositions(mu: float, count: int, total_delta: float) -> list[Bound]:
    """Computes each theorem's bound on `count` Gaussian releases of all data with equal noise.

    The theorems for (epsilon, delta)-DP see of each release its exact epsilon at its part of the total.

    Args:
        mu: Sensitivity / noise standard deviation of each release, above 0; see `Gaussian.mu`.
        count: The number of releases, from 1 to a million.
        total_delta: The delta of the whole, in (0, 1).

    Raises:
        InputError: A number is out of range.
    """
    check_mu(mu)
    check_whole("releases", count)
    check_delta(total_delta)
    # Stated at sensitivity 1: mu already includes the adjacency.
    event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(1 / mu), count)
    half = total_delta / 2 / count

    def once(delta: float) -> float:
        # A little less of delta, so that the sum of the parts is not above the whole.
        cost = gaussian_epsilon(delta * (1 - ROUNDING), mu)
        if not cost <= theorem.MAX_EPSILON:
            raise InputError(f"one release costs more than epsilon = {theorem.MAX_EPSILON:g}")
        return max(cost, theorem.MIN_EPSILON)

    def of_basic() -> tuple[float, float, str]:
        return count * once(total_delta / count), total_delta, f"delta/{count} for each release"

    def of_advanced() -> tuple[float, float, str]:
        return theorem.advanced(once(half), half, count, total_delta / 2)[0], total_delta, _HALVES

    def of_optimal() -> tuple[float, float, str]:
        return theorem.optimal(once(half), half, count, total_delta), total_delta, _HALVES

    def of_zcdp() -> tuple[float, float, str]:
        rho = count * mu * mu / 2
        return theorem.zcdp_epsilon(rho, total_delta), total_delta, f"rho = {rho:.4g} in all"

    def of_renyi() -> tuple[float, float, str]:
        return epsilon_rdp(event, total_delta, "add-remove"), total_delta, ""

    def of_losses() -> tuple[float, float, str]:
        cost = epsilon_pld(event, total_delta, "add-remove")
        return cost, total_delta, "numerically, on a grid that rounds up"

    def exact() -> tuple[float, float, str]:
        total = mu * math.sqrt(count)
        return gaussian_epsilon(total_delta, total), total_delta, f"exact; mu = {total:.4g} in all"

    return [
        _bound("basic", BASIC, total_delta, of_basic),
        _bound("advanced", ADVANCED, total_delta, of_advanced),
        _bound("optimal", OPTIMAL, total_delta, of_optimal),
        _bound("zCDP", ZCDP, total_delta, of_zcdp),
        _bound("RDP", RENYI, total_delta, of_renyi),
        _bound("PLD", LOSSES, total_delta, of_losses),
        _bound("Gaussian", EXACT, total_delta, exact),
    ]


_HALVES = "half of delta for the theorem, half for the releases"


def _bound(name: str, source: str, delta: float, account: Callable[[], tuple[float, float, str]]) -> Bound:
    try:
        epsilon, spent, note = account()
    except InputError as error:  # UnsupportedEvent too: why there is no answer
        return Bound(name, None, delta, str(error), source)
    if not math.isfinite(epsilon):
        return Bound(name, None, delta, "there is too little noise", source)
    return Bound(name, epsilon, spent, note, source)
