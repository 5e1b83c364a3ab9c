"""Accounts for pure epsilon-DP releases: exactly where possible, else by the sum of their epsilons."""

from __future__ import annotations

import math

from dp_accounting import dp_event as dp

from fedprivacy.accounting.events import Composition, releases
from fedprivacy.accounting.optimal_composition import PureDpEvent, composed_epsilon
from fedprivacy.accounting.shuffled_event import ShuffledDpEvent
from fedprivacy.errors import UnsupportedEvent


def optimal_composition(parts: Composition, delta: float, adjacency: str) -> float:
    if len(parts) == 1:
        match parts[0]:
            case PureDpEvent(epsilon=epsilon_0), count:
                return composed_epsilon(delta, epsilon_0, count)
            # Exact, since it is the mechanism to which the theorem reduces all others. The other answer has
            # probability p/2, so e^epsilon = (1 - p/2)/(p/2). PLDAccountant of dp_accounting 0.6.0 ignores
            # the count.
            case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=2), count if (
                0 < p < 1 and adjacency == "replace-one"
            ):
                return composed_epsilon(delta, math.log((2 - p) / p), count)
    raise UnsupportedEvent("Only answers of one and the same epsilon have an exact answer.")


def basic_composition(parts: Composition, delta: float, adjacency: str) -> float:
    """The sum of the epsilons at delta = 0, where each release has one; it holds at every delta."""
    # The noise parameters of dp_accounting are relative to one record's bound; replacing a record moves a sum
    # by up to twice that.
    sensitivity = 2.0 if adjacency == "replace-one" else 1.0
    total = 0.0
    for leaf, count in parts:
        match leaf:
            case PureDpEvent(epsilon=pure):
                total += count * pure
            case ShuffledDpEvent(local_epsilon=pure) if adjacency == "replace-one":
                total += count * pure  # whoever sees senders too sees more
            case dp.LaplaceDpEvent(noise_multiplier=b):
                total += count * sensitivity / b
            case dp.DiscreteLaplaceDpEvent(noise_parameter=a, sensitivity=s):
                total += count * sensitivity * s * a
            case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=k) if adjacency == "replace-one":
                total += count * math.log1p(k * (1 - p) / p)
            case dp.RepeatAndSelectDpEvent(event=inner):
                once = basic_composition(releases(inner, adjacency), delta, adjacency)
                total += count * _best_of(once, leaf.mean, leaf.shape)
            case _:
                raise UnsupportedEvent(
                    f"{type(leaf).__name__.removesuffix('DpEvent')} under {adjacency} has no epsilon at "
                    "delta = 0: choose a delta above 0."
                )
    return total


def _best_of(once: float, mean: float, shape: float) -> float:
    """The epsilon, at delta = 0, of the best of a random number of repetitions of `once` each.

    Truncated negative binomial, shape eta: (2 + eta) once (Papernot and Steinke 2022, Corollary 3), which is
    the 3 once of Liu and Talwar 2019 for the geometric law. Poisson: f'(q)/f'(q') = e^(mean (q - q')) of its
    generating function (their Lemma 7), and q - q' is at most tanh(once/2) where each is once-DP.
    """
    if shape == math.inf:
        return once + mean * math.tanh(once / 2)
    return (2 + shape) * once
