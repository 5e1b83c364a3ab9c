"""The statistics of the claims. Seeds are fixed, and each check raises a false alarm in one of 10^6 seeds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, stats

from fedprivacy.attacks.repeated_run_epsilon import threshold_bound
from fedprivacy.randomness.streams import Streams

FALSE_ALARM = 1e-6
ROUNDING = 1e-9  # of a privacy loss that is computed from probabilities

Numbers = NDArray[np.float64]


def stream(purpose: str, member: int = 0) -> np.random.Generator:
    """The random stream of one check."""
    return Streams(9).stream(purpose, member=member)


def fits(counts: NDArray[np.int64], probabilities: Numbers) -> None:
    """Counts of outputs are those of a finite distribution: chi-square, rare outputs taken together.

    Args:
        counts: How often each output was drawn, shape (outputs,).
        probabilities: Of each output, shape (outputs,).
    """
    assert math.isclose(probabilities.sum(), 1, rel_tol=1e-9)
    assert (counts[probabilities == 0] == 0).all(), "an output that cannot be"
    expected = probabilities * counts.sum()
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 10:  # too few for chi-square, even together
            pooled = stats.binomtest(int(counts[-1]), int(counts.sum()), expected[-1] / expected.sum())
            assert pooled.pvalue > FALSE_ALARM
            counts, expected = counts[:-1], expected[:-1] * counts[:-1].sum() / expected[:-1].sum()
    if len(counts) > 1:
        assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM


def follows(sample: Numbers, distribution: Callable[[Numbers], Numbers]) -> None:
    """A sample follows a continuous distribution function: Kolmogorov and Smirnov."""
    assert stats.kstest(sample, distribution).pvalue > FALSE_ALARM


def moments(sample: Numbers, mean: float, variance: float, bias: float = 0.0, slack: float = 0.0) -> None:
    """A sample has a mean and a variance, to within its own standard errors (and what is allowed besides).

    Args:
        sample: Independent numbers, shape (draws,).
        mean: The expected one.
        variance: The expected one.
        bias: How far the mean may be off besides.
        slack: How far the variance may be off besides, as a part of it.
    """
    bar = stats.norm.isf(FALSE_ALARM / 2)
    spread = math.sqrt(variance / len(sample))
    assert abs(sample.mean() - mean) < bar * spread + bias, "biased"
    squares = (sample - mean) ** 2
    error = squares.std() / math.sqrt(len(sample))
    assert abs(squares.mean() - variance) < bar * error + slack * variance, "another variance"


def loss(one: Numbers, other: Numbers, epsilon: float) -> None:
    """The likelihoods of finite outputs on two neighbours differ by a factor of e^epsilon at most.

    Args:
        one: The probability of each output on one of them, shape (outputs,).
        other: The same on the other.
        epsilon: The claimed one.
    """
    assert math.isclose(one.sum(), 1, rel_tol=1e-9)
    assert math.isclose(other.sum(), 1, rel_tol=1e-9)
    possible = (one > 0) | (other > 0)
    with np.errstate(divide="ignore"):
        assert np.abs(np.log(one[possible]) - np.log(other[possible])).max() <= epsilon + ROUNDING


def hockey_stick(
    one: Callable[[float], float],
    other: Callable[[float], float],
    epsilon: float,
    delta: float,
    support: tuple[float, float],
    kinks: tuple[float, ...] = (),
) -> None:
    """The hockey-stick divergence of two densities, either way, is at most delta at the claimed epsilon.

    Args:
        one: The density of the output on one neighbour.
        other: The same on the other.
        epsilon: The claimed one.
        delta: The claimed one.
        support: Where to integrate; what lies outside must not matter.
        kinks: Where a density is not smooth.
    """
    for p, q in ((one, other), (other, one)):
        value, _ = integrate.quad(
            lambda x, p=p, q=q: max(0.0, p(x) - math.exp(epsilon) * q(x)),
            *support,
            points=kinks or None,
            limit=1000,
        )
        assert value <= delta + ROUNDING, f"delta is {value:.3g} at epsilon {epsilon:.3g}"


def audit(present: Numbers, absent: Numbers, epsilon: float, delta: float, teeth: float) -> None:
    """What scores prove about epsilon does not exceed the claim; false-alarm rate 1e-3.

    Args:
        present: One score for each draw on one neighbour, shape (draws,).
        absent: The same on the other.
        epsilon: The claimed one.
        delta: The claimed one.
        teeth: Which part of the claim must be proved.
    """
    proved = threshold_bound(present, absent, delta, 0.999).epsilon
    assert proved <= epsilon, f"an epsilon of {proved:.3g} is proved, {epsilon:.3g} claimed"
    assert proved >= teeth * epsilon, f"the audit is blunt: {proved:.3g} of {epsilon:.3g}"
