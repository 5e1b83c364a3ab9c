"""Accounts by privacy loss distributions (dp_accounting), with an allowance for rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import attr
import numpy as np
from dp_accounting import dp_event as dp
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.privacy_accountant import NeighboringRelation

from fedprivacy.accounting.encoded_updates import (
    FFT_ERROR,
    EncodedStudentDpEvent,
    encoded_loss,
    gaussian_like,
)
from fedprivacy.accounting.events import RELATIONS, Composition
from fedprivacy.accounting.fixed_size import fixed_size_loss, largest_loss
from fedprivacy.accounting.gaussian import joint_noise, root_information
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import UnsupportedEvent

# Below it, differences of deltas are rounding errors; above it, epsilon is in the tens of thousands.
_FINEST, _COARSEST = 1e-7, 1.0
# From e^-700 on probabilities are 0 in floating point, and dp_accounting's Laplace then has a mass above 1.
_LARGEST_PURE = 500.0


def loss_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    merged = _merged(parts)
    slack = FFT_ERROR * (100 + sum(count for _, count in merged))
    if slack > delta / 2:
        raise UnsupportedEvent(f"delta = {delta:g} is too small for a privacy loss distribution.")
    total = _composed_loss(merged, adjacency)
    with np.errstate(over="ignore"):
        answer = float(total.get_epsilon_for_delta(delta - slack))
    if math.isfinite(answer):
        return answer
    # For an epsilon just above 700, e^-epsilon underflows.
    if total.get_delta_for_epsilon(750.0) <= delta - slack:
        return 750.0
    raise UnsupportedEvent("There is too little noise for a privacy loss distribution.")


def _merged(parts: Composition) -> Composition:
    """The same releases, with all unsampled Gaussian ones merged into the equivalent single one."""
    # Gaussian releases compose in closed form, so merging them avoids the grid's rounding in each of them.
    gaussians = tuple(part for part in parts if isinstance(part[0], dp.GaussianDpEvent))
    others = tuple(part for part in parts if not isinstance(part[0], dp.GaussianDpEvent))
    if not gaussians:
        return others
    return (*others, (dp.GaussianDpEvent(1 / root_information(gaussians)), 1))


@lru_cache(maxsize=4)  # a curve evaluates many deltas in a row; a distribution may have a million numbers
def _composed_loss(parts: Composition, adjacency: str) -> pld.PrivacyLossDistribution:
    step = _discretization([(_loss_scale(leaf, adjacency), count) for leaf, count in parts])
    if step > _COARSEST:
        raise UnsupportedEvent("There is too little noise for a privacy loss distribution.")
    total = pld.identity(step)
    for leaf, count in parts:
        # Composed here, leaf by leaf: PLDAccountant counts a repeated randomized response only once.
        total = total.compose(_repeated(_loss_distribution(leaf, adjacency, step), count))
    return total


_BLOCK = 100_000  # releases


def _repeated(loss: pld.PrivacyLossDistribution, count: int) -> pld.PrivacyLossDistribution:
    """`loss` composed `count` times; in blocks, since dp_accounting's window grows with the count."""
    blocks, rest = divmod(count, _BLOCK)
    if blocks == 0:
        return loss.self_compose(count)
    whole = _repeated(loss.self_compose(_BLOCK), blocks)
    return whole.compose(loss.self_compose(rest)) if rest else whole


def _loss_distribution(leaf: dp.DpEvent, adjacency: str, step: float) -> pld.PrivacyLossDistribution:
    """The pessimistic privacy loss distribution of one release."""
    relation = RELATIONS[adjacency]
    replaced = adjacency == "replace-one"
    match leaf:
        case dp.GaussianDpEvent(noise_multiplier=z):
            return pld.from_gaussian_mechanism(
                z, value_discretization_interval=step, neighboring_relation=relation
            )
        case dp.PoissonSampledDpEvent(sampling_probability=q, event=dp.GaussianDpEvent(noise_multiplier=z)):
            return pld.from_gaussian_mechanism(
                z, value_discretization_interval=step, sampling_prob=q, neighboring_relation=relation
            )
        case dp.SampledWithoutReplacementDpEvent() if (scheme := _fixed_size(leaf, adjacency)) is not None:
            return fixed_size_loss(*scheme, adjacency, step)
        case dp.TruncatedSubsampledGaussianDpEvent():
            return pld.from_truncated_subsampled_gaussian_mechanism(
                **attr.asdict(leaf), value_discretization_interval=step, neighboring_relation=relation
            )
        case EncodedStudentDpEvent():
            return encoded_loss(leaf, 1.0, adjacency, step)
        case dp.PoissonSampledDpEvent(sampling_probability=q, event=EncodedStudentDpEvent() as inner):
            return encoded_loss(inner, q, adjacency, step)
        case dp.LaplaceDpEvent(noise_multiplier=b):
            return pld.from_laplace_mechanism(
                b, sensitivity=2 if replaced else 1, value_discretization_interval=step
            )
        case dp.PoissonSampledDpEvent(
            sampling_probability=q, event=dp.LaplaceDpEvent(noise_multiplier=b)
        ) if not replaced:
            return pld.from_laplace_mechanism(b, value_discretization_interval=step, sampling_prob=q)
        case dp.DiscreteLaplaceDpEvent(noise_parameter=a, sensitivity=s):
            return pld.from_discrete_laplace_mechanism(
                a, sensitivity=2 * s if replaced else s, value_discretization_interval=step
            )
        case PureDpEvent(epsilon=pure):
            # Its dominating pair under every adjacency: an answer of randomised response and the other one.
            return pld.from_randomized_response(
                2 / (1 + math.exp(pure)),
                2,
                value_discretization_interval=step,
                neighboring_relation=NeighboringRelation.REPLACE_ONE,
            )
        case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=k) if replaced:
            return pld.from_randomized_response(
                p, k, value_discretization_interval=step, neighboring_relation=relation
            )
    raise UnsupportedEvent(f"No privacy loss distribution for {leaf} under {adjacency}.")


def _fixed_size(leaf: dp.SampledWithoutReplacementDpEvent, adjacency: str) -> tuple[float, float] | None:
    """Rate and noise of Gaussian releases about a cohort of fixed size; None if they have no curve."""
    noise = joint_noise(leaf.event)
    if noise is None or adjacency == "add-remove":
        return None
    return leaf.sample_size / leaf.source_dataset_size, noise


@dataclass(frozen=True)
class _Scale:
    """Rough scales of one release's privacy loss: the largest relevant, its deviation, a good grid."""

    largest: float
    deviation: float
    grid: float


def _loss_scale(leaf: dp.DpEvent, adjacency: str) -> _Scale:
    sensitivity = 2.0 if adjacency == "replace-one" else 1.0
    q = getattr(leaf, "sampling_probability", 1.0)
    inner = leaf.event if isinstance(leaf, dp.PoissonSampledDpEvent) else leaf
    if isinstance(inner, EncodedStudentDpEvent):
        inner = dp.GaussianDpEvent(gaussian_like(inner))
    match inner:
        case (
            dp.GaussianDpEvent(noise_multiplier=z) | dp.TruncatedSubsampledGaussianDpEvent(noise_multiplier=z)
        ):
            mu = sensitivity / z
            largest = mu * mu / 2 + 10 * mu
            u = min(1 / z**2, 100.0)  # chi-squared distances of the two mixtures, which bound the variance
            chi2 = 4 * q * q * math.sinh(u) if adjacency == "replace-one" else q * q * math.expm1(u)
            deviation = mu if q == 1 else min(largest, math.sqrt(chi2))
            # A 50th of the deviation raises epsilon by some 3e-5 of itself (a fifth: 4e-3), however often
            # the release is repeated.
            return _Scale(largest, deviation, deviation / 50)
        case dp.SampledWithoutReplacementDpEvent() if (scheme := _fixed_size(inner, adjacency)) is not None:
            rate, noise = scheme
            largest, mu = largest_loss(rate, noise), sensitivity / noise
            # The chi-squared distance of the dominating pair is at most that of its branch above 1, twice.
            chi2 = 2 * rate**2 * math.expm1(min(mu * mu, 100.0))
            deviation = min(largest, mu, math.sqrt(chi2))
            return _Scale(largest, deviation, deviation / 50)
        case dp.LaplaceDpEvent(noise_multiplier=b):
            largest = sensitivity / b
        case dp.DiscreteLaplaceDpEvent(noise_parameter=a, sensitivity=s):
            largest = sensitivity * s * a
        case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=k):
            largest = math.log1p(k * (1 - p) / p)
        case PureDpEvent(epsilon=pure):
            largest = pure
        case _:
            raise UnsupportedEvent(f"No privacy loss distribution for {leaf} under {adjacency}.")
    if largest > _LARGEST_PURE:
        raise UnsupportedEvent("There is too little noise for a privacy loss distribution.")
    if q < 1:
        largest = math.log1p(q * math.expm1(largest))
    return _Scale(largest, largest, largest / 5000)  # the largest loss is the answer here, and is rounded up


def _discretization(scales: list[tuple[_Scale, int]]) -> float:
    """The grid interval of the privacy loss: the finest that a release needs, within limits.

    The limits keep the distribution of a release below 200,000 points and that of the composition
    below a million or so: coarser is less exact, never less safe.
    """
    finest = min((scale.grid for scale, _ in scales), default=1e-3)
    largest = max((scale.largest for scale, _ in scales), default=0.0)
    deviation = math.sqrt(sum(count * scale.deviation**2 for scale, count in scales))
    return max(min(finest, 5e-3), largest / 2e5, deviation / 2e4, _FINEST)
