"""Composition theorems and group privacy: the joint cost of several releases or several people.

All hold for releases that are chosen one after another, each knowing the earlier answers (adaptive
composition). Each is an upper bound, so the least of them is as true as the others:
`accounting.composed` sets them side by side. A run is accounted for by `accounting.epsilon`.
"""

from __future__ import annotations

import math

from fedprivacy.accounting.events import MAX_NOISE, MIN_NOISE
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.accounting.optimal_composition import composed_epsilon
from fedprivacy.errors import InputError

POST_PROCESSING = (
    "Whatever is computed from a private release alone, without the data, is as private as the release: "
    "post-processing costs nothing (Dwork and Roth 2014, Proposition 2.1)."
)
ROUNDING = 1e-15  # relative, in the difference of two deltas
MAX_RELEASES = 10**6
MIN_EPSILON, MAX_EPSILON = 1e-9, 500.0  # e^epsilon is a number up to some 700


def group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Group privacy: the guarantee of a release when the records of `size` people change at once.

    (size epsilon, size e^((size - 1) epsilon) delta): Dwork and Roth 2014, Theorem 2.2, and the lectures.
    For Gaussian noise `gaussian_group` promises more, at a delta that does not grow.

    Args:
        epsilon: Of one release for one person, above 0.
        delta: In [0, 1).
        size: People in the group, at least 1.

    Returns:
        The epsilon and the delta of the group; a delta of 1 promises nothing.

    >>> group(0.5, 0.0, 4)
    (2.0, 0.0)
    """
    check_release(epsilon, delta)
    check_whole("a group", size)
    if delta == 0:
        return size * epsilon, 0.0
    log_delta = math.log(size) + (size - 1) * epsilon + math.log(delta)
    return size * epsilon, math.exp(min(0.0, log_delta))


def gaussian_group(mu: float, delta: float, size: int) -> float:
    """Epsilon of Gaussian noise for a group, at the same delta and exactly.

    `size` changed records move the sum `size` times as far: mu-Gaussian-DP becomes size mu (Dong, Roth and
    Su 2022, Theorem 2.14, tight for Gaussian noise).

    Args:
        mu: Sensitivity / noise standard deviation for one person, above 0; see `Gaussian.mu`.
        delta: In (0, 1).
        size: People in the group, at least 1.

    Raises:
        InputError: A number is out of range.
    """
    check_mu(mu)
    check_whole("a group", size)
    check_delta(delta)
    return gaussian_epsilon(delta, size * mu)


def basic(epsilon: float, delta: float, count: int) -> tuple[float, float]:
    """(k epsilon, k delta): epsilons and deltas add up.

    >>> basic(0.1, 0.0, 100)
    (10.0, 0.0)
    """
    check_release(epsilon, delta)
    check_whole("releases", count)
    return count * epsilon, min(1.0, count * delta)


def advanced(epsilon: float, delta: float, count: int, slack: float) -> tuple[float, float]:
    """The advanced composition theorem, in the lectures' form.

        (epsilon sqrt(2 k ln(1/delta')) + k epsilon (e^epsilon - 1),  k delta + delta')

    Dwork, Rothblum and Vadhan 2010. It pays for small epsilon: beyond it may exceed k epsilon.

    Args:
        epsilon: Of one release.
        delta: Of one release, in [0, 1).
        count: k, the number of releases.
        slack: delta', the part of the total that the theorem itself spends, in (0, 1).

    >>> round(advanced(0.1, 0.0, 100, 1e-5)[0], 2)
    5.85
    """
    check_release(epsilon, delta)
    check_whole("releases", count)
    check_delta(slack)
    total = epsilon * math.sqrt(-2 * count * math.log(slack)) + count * epsilon * math.expm1(epsilon)
    return total, min(1.0, count * delta + slack)


def optimal(epsilon: float, delta: float, count: int, total_delta: float) -> float:
    """The least epsilon of any k releases of which only (epsilon, delta) is known, at a total delta.

    Kairouz, Oh and Viswanath 2015, Theorem 3.3: whatever is (epsilon, delta)-DP gives all away with
    probability delta and answers by randomised response else, so that the total is
    1 - (1 - delta)^k (1 - delta~), with delta~ of k answers of randomised response.

    Args:
        epsilon: Of one release.
        delta: Of one release, in [0, 1).
        count: k, the number of releases.
        total_delta: Of all releases together, in (0, 1).

    Raises:
        InputError: The deltas of the releases leave nothing of the total, or a number is out of range.

    >>> round(optimal(0.1, 0.0, 100, 1e-5), 2)
    4.31
    """
    return composed_epsilon(left_over(epsilon, delta, count, total_delta), epsilon, count)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP at delta: rho + 2 sqrt(rho ln(1/delta)), Bun and Steinke 2016, Proposition 1.3.

    Args:
        rho: At least 0; those of several releases add up (Lemma 1.7). Gaussian noise has mu^2/2, a release
            that is epsilon-DP has epsilon^2/2 (Propositions 1.6 and 1.4).
        delta: In (0, 1).
    """
    check_delta(delta)
    return rho + 2 * math.sqrt(-rho * math.log(delta))


def left_over(epsilon: float, delta: float, count: int, total_delta: float) -> float:
    """delta~ with 1 - (1 - delta)^k (1 - delta~) = total_delta, rounded down; see `optimal`.

    Raises:
        InputError: Nothing is left, or a number is out of range.
    """
    check_release(epsilon, delta)
    check_whole("releases", count)
    check_delta(total_delta)
    if delta == 0:
        return total_delta
    log_remaining = math.log1p(-total_delta) - count * math.log1p(-delta)  # ln(1 - delta~)
    left = -math.expm1(min(log_remaining, 0.0)) - ROUNDING * total_delta
    if left <= 0:
        raise InputError(
            f"the deltas of the releases make {-math.expm1(count * math.log1p(-delta)):.3g} together, "
            f"and leave nothing of {total_delta:g}"
        )
    return left


def check_release(epsilon: float, delta: float) -> None:
    """Raises InputError: epsilon or delta of a release is out of range."""
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise InputError(f"epsilon = {epsilon}: must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}.")
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta}: must be at least 0 and below 1.")


def check_delta(delta: float) -> None:
    """Raises InputError: the delta of a guarantee is out of range."""
    if not 0 < delta < 1:
        raise InputError(f"delta = {delta}: must lie between 0 and 1.")


def check_whole(what: str, count: int) -> None:
    """Raises InputError: a number of releases or people is out of range."""
    if not 1 <= count <= MAX_RELEASES:
        raise InputError(f"{what} = {count}: must be a whole number from 1 to {MAX_RELEASES}.")


def check_mu(mu: float) -> None:
    """Raises InputError: mu of Gaussian noise is out of range."""
    if not 1 / MAX_NOISE <= mu <= 1 / MIN_NOISE:
        raise InputError(
            f"mu = {mu}: the noise must be from {MIN_NOISE:g} to {MAX_NOISE:g} times the sensitivity."
        )
