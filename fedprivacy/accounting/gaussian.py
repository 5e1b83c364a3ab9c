"""The exact joint cost of unsampled Gaussian releases (Balle and Wang 2018)."""

from __future__ import annotations

import math

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from fedprivacy.accounting.events import Composition
from fedprivacy.errors import UnsupportedEvent


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta of a mu-Gaussian-DP mechanism at `epsilon`.

    Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13:

        delta = Phi(-s) - e^epsilon Phi(-t),    s = epsilon/mu - mu/2,   t = s + mu

    Args:
        epsilon: At least 0.
        mu: Sensitivity / noise standard deviation, at least 0; sqrt(sum of squares) over releases.
    """
    return math.exp(_log_gaussian_delta(epsilon, mu))


def gaussian_deltas(
    epsilon: float | NDArray[np.float64], mu: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """`gaussian_delta` at many epsilons or of many mu at once, to some 1e-15 of Phi(-s)."""
    epsilons, mus = np.broadcast_arrays(np.asarray(epsilon, np.float64), np.asarray(mu, np.float64))
    deltas = np.zeros(mus.shape)
    some = mus > epsilons * 1e-150
    ratio, half = epsilons[some] / mus[some], mus[some] / 2
    s, t = ratio - half, ratio + half
    root2 = math.sqrt(2)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # where the other form is taken
        bell = np.exp(-s * s / 2) / 2
        right = bell * (erfcx(s / root2) - erfcx(t / root2))
        left = ndtr(-s) - bell * erfcx(t / root2)
    deltas[some] = np.maximum(np.where(s > 0, right, left), 0.0)
    return deltas


def _log_gaussian_delta(epsilon: float, mu: float) -> float:
    if mu == math.inf:
        return 0.0
    if mu == 0 or epsilon / mu > 1e150:
        return -math.inf
    s, t = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    root2 = math.sqrt(2)
    # e^epsilon Phi(-t) = e^(-s^2/2) erfcx(t/sqrt 2) / 2 has no huge factor. The ratio of both terms:
    ratio = (
        float(erfcx(t / root2) / erfcx(s / root2))
        if s > 0
        else math.exp(math.log(erfcx(t / root2) / 2) - s * s / 2 - float(log_ndtr(-s)))
    )
    return float(log_ndtr(-s)) + math.log1p(-ratio) if ratio < 1 else -math.inf


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon of a mu-Gaussian-DP mechanism at `delta`, rounded up; see `gaussian_delta`.

    Args:
        delta: In (0, 1).
        mu: Sensitivity / noise standard deviation, at least 0.
    """
    log_delta = math.log(delta)
    if _log_gaussian_delta(0.0, mu) <= log_delta:
        return 0.0
    # delta(epsilon) <= Phi(-s) <= exp(-s^2/2)/2 gives a closed upper end.
    low, high = 0.0, mu * (mu / 2 + math.sqrt(-2 * log_delta))
    if not math.isfinite(high):
        return math.inf
    # Bisection to the last bit; the upper end is returned, so that rounding never understates the cost.
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if _log_gaussian_delta(middle, mu) <= log_delta else (middle, high)
    return high


def composed_gaussians(parts: Composition, delta: float, adjacency: str) -> float:
    if not all_gaussian(parts):
        raise UnsupportedEvent("Only unsampled Gaussian noise has an exact answer.")
    return gaussian_epsilon(delta, composed_mu(parts, adjacency))


def applications(event: dp.DpEvent) -> Composition:
    """The releases that a sample goes through, in the form that `events.releases` gives them."""
    each = event.events if isinstance(event, dp.ComposedDpEvent) else (event,)
    return tuple(
        (part.event, part.count) if isinstance(part, dp.SelfComposedDpEvent) else (part, 1) for part in each
    )


def joint_noise(event: dp.DpEvent) -> float | None:
    """The noise multiplier of the equivalent single Gaussian release; None if any part is not Gaussian."""
    parts = applications(event)
    return 1 / root_information(parts) if all_gaussian(parts) else None


def all_gaussian(parts: Composition) -> bool:
    return all(isinstance(leaf, dp.GaussianDpEvent) for leaf, _ in parts)


def composed_mu(parts: Composition, adjacency: str) -> float:
    return (2.0 if adjacency == "replace-one" else 1.0) * root_information(parts)


def as_if_unsampled(parts: Composition, delta: float, adjacency: str) -> float:
    """The exact epsilon if every sample had been everybody, which costs more (joint convexity).

    Not for a cohort of fixed size under add-remove, where a client takes another's place in the cohort.
    """

    def inner(leaf: dp.DpEvent) -> dp.DpEvent:
        if isinstance(leaf, dp.PoissonSampledDpEvent):
            return leaf.event
        if isinstance(leaf, dp.SampledWithoutReplacementDpEvent) and adjacency != "add-remove":
            return leaf.event
        return leaf

    return composed_gaussians(tuple((inner(leaf), count) for leaf, count in parts), delta, adjacency)


def root_information(parts: Composition) -> float:
    """1/z of the single Gaussian release equivalent to all of `parts`; 0 for none."""
    inverses = ((1 / leaf.noise_multiplier, count) for leaf, count in parts)
    return math.sqrt(sum(count * inverse * inverse for inverse, count in inverses))
