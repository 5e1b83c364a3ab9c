"""What it costs: the epsilon of a DpEvent at a delta, under one adjacency.

Noise multipliers in an event are noise standard deviation / clipping norm C under every adjacency.
Taking one record away, or zeroing it, moves a clipped sum by C; replacing it moves the sum by 2C,
and that doubling happens here, never in the event.

| event | accountant |
|---|---|
| Gaussian releases of everybody's data, composed | exact: "analytic Gaussian" (Balle and Wang 2018) |
| one epsilon each (randomized response), repeated | exact: "optimal composition" (Kairouz et al. 2015) |
| what has an epsilon at delta = 0: if asked there, or where no other is smaller | "basic composition" |
| what else has a privacy loss distribution: Poisson sampling, Laplace | "PLD" |
| the rest: fixed-size sampling, trees, private selection | "RDP" |
| sampled Gaussian releases of which RDP proves less, or nothing | exact, as if unsampled |

Each answer is an upper bound: the exact ones up to floating point, the others with an allowance for
what the FFT and the sums of logarithms in dp_accounting lose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import attr
import numpy as np
from dp_accounting import NeighboringRelation, UnsupportedEventError
from dp_accounting import dp_event as dp
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from scipy.special import erfcx, log_ndtr

from fedprivacy.accounting.events import releases
from fedprivacy.accounting.optimal import PureDpEvent, composed_epsilon
from fedprivacy.errors import InputError, UnsupportedEvent

Composition = tuple[tuple[dp.DpEvent, int], ...]

RELATIONS = {
    "replace-one": NeighboringRelation.REPLACE_ONE,
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": NeighboringRelation.REPLACE_SPECIAL,
}


@dataclass(frozen=True)
class Spent:
    """An epsilon, and who computed it: a name of `ACCOUNTANT`, or "none" where there is no privacy."""

    epsilon: float
    accountant: str


def epsilon(event: dp.DpEvent, delta: float, adjacency: str) -> Spent:
    """The least epsilon that an accountant can prove for `event`.

    Args:
        event: What was released; noise multipliers are noise standard deviation / C.
        delta: In [0, 1); at 0 releases of pure epsilon-DP alone have an answer.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: delta, adjacency or a number in the event is out of range.
        UnsupportedEvent: No accountant answers for this event; the message says what to do instead.

    >>> round(epsilon(dp.GaussianDpEvent(2.0), 1e-5, "replace-one").epsilon, 3)
    4.377
    """
    _check(delta, adjacency)
    return _spent(releases(event, adjacency), delta, adjacency)


def epsilon_pld(event: dp.DpEvent, delta: float, adjacency: str) -> float:
    """Epsilon from privacy loss distributions only, to cross-check; see `epsilon`."""
    _check(delta, adjacency)
    parts = releases(event, adjacency)
    return math.inf if _not_private(parts) else _pld_epsilon(parts, delta, adjacency)


def epsilon_rdp(event: dp.DpEvent, delta: float, adjacency: str) -> float:
    """Epsilon from Renyi differential privacy only, to cross-check; see `epsilon`."""
    _check(delta, adjacency)
    parts = releases(event, adjacency)
    return math.inf if _not_private(parts) else _rdp_epsilon(parts, delta, adjacency)


def gaussian_mu(event: dp.DpEvent, adjacency: str) -> float | None:
    """The mu for which `event` is exactly mu-Gaussian-DP; None unless all of it is unsampled Gaussian noise.

    Args:
        event: What was released; noise multipliers are noise standard deviation / C.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: The adjacency or a number in the event is out of range.
    """
    _check_adjacency(adjacency)
    parts = releases(event, adjacency)
    return _mu(parts, adjacency) if _all_gaussian(parts) else None


def _check(delta: float, adjacency: str) -> None:
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta}: must be at least 0 and below 1.")
    _check_adjacency(adjacency)


def _check_adjacency(adjacency: str) -> None:
    if adjacency not in RELATIONS:
        raise InputError(f"adjacency = {adjacency!r}: must be one of {', '.join(RELATIONS)}.")


@lru_cache(maxsize=4096)
def _spent(parts: Composition, delta: float, adjacency: str) -> Spent:
    if _not_private(parts):
        return Spent(math.inf, "none")
    if adjacency != "replace-one" and any(
        isinstance(leaf, dp.RandomizedResponseDpEvent) for leaf, _ in parts
    ):
        # dp_accounting has zero-out too, for an answer that is drawn uniformly then: nobody here does that.
        raise UnsupportedEvent(_advice(parts, delta, adjacency))
    if delta == 0:
        return Spent(_basic_epsilon(parts, delta, adjacency), "basic composition")
    for group in ACCOUNTANTS:
        answers = [_ask(name, parts, delta, adjacency) for name in group]
        proved = [answer for answer in answers if answer is not None]
        if proved:
            # The grid of a privacy loss distribution may round the loss of a few releases above their sum.
            answers = [*proved, _ask("basic composition", parts, delta, adjacency)]
            return min((answer for answer in answers if answer), key=lambda spent: spent.epsilon)
    raise UnsupportedEvent(_advice(parts, delta, adjacency))


def _ask(name: str, parts: Composition, delta: float, adjacency: str) -> Spent | None:
    try:
        return Spent(ACCOUNTANT[name](parts, delta, adjacency), name)
    except UnsupportedEvent:
        return None


def _not_private(parts: Composition) -> bool:
    return any(isinstance(leaf, dp.NonPrivateDpEvent) for leaf, _ in parts)


# --- Gaussian releases: exact ---------------------------------------------------------------------


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta of a mu-Gaussian-DP mechanism at `epsilon`.

    Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13:

        delta = Phi(-s) - e^epsilon Phi(-t),    s = epsilon/mu - mu/2,   t = s + mu

    Args:
        epsilon: At least 0.
        mu: Sensitivity / noise standard deviation, at least 0; sqrt(sum of squares) over releases.
    """
    return math.exp(_log_gaussian_delta(epsilon, mu))


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
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if _log_gaussian_delta(middle, mu) <= log_delta else (middle, high)
    return high


def _gaussian_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    if not _all_gaussian(parts):
        raise UnsupportedEvent("Only unsampled Gaussian noise has an exact answer.")
    return gaussian_epsilon(delta, _mu(parts, adjacency))


def _all_gaussian(parts: Composition) -> bool:
    return all(isinstance(leaf, dp.GaussianDpEvent) for leaf, _ in parts)


def _mu(parts: Composition, adjacency: str) -> float:
    return (2.0 if adjacency == "replace-one" else 1.0) * _root_information(parts)


def _unsampled_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    """The exact epsilon if every sample had been everybody, which costs more (joint convexity).

    Not for a cohort of fixed size when a client is added: it takes another's place in the cohort.
    """

    def inner(leaf: dp.DpEvent) -> dp.DpEvent:
        if isinstance(leaf, dp.PoissonSampledDpEvent):
            return leaf.event
        if isinstance(leaf, dp.SampledWithoutReplacementDpEvent) and adjacency == "replace-one":
            return leaf.event
        return leaf

    return _gaussian_epsilon(tuple((inner(leaf), count) for leaf, count in parts), delta, adjacency)


def _root_information(parts: Composition) -> float:
    """1/z of the one Gaussian release that tells as much as all of `parts`; 0 for none."""
    inverses = ((1 / leaf.noise_multiplier, count) for leaf, count in parts)
    return math.sqrt(sum(count * inverse * inverse for inverse, count in inverses))


# --- pure epsilon-DP: exact -----------------------------------------------------------------------


def _pure_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    if len(parts) == 1:
        match parts[0]:
            case PureDpEvent(epsilon=epsilon_0), count:
                return composed_epsilon(delta, epsilon_0, count)
            case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=2), count if (
                0 < p < 1 and adjacency == "replace-one"
            ):
                return composed_epsilon(delta, math.log((2 - p) / p), count)
    raise UnsupportedEvent("Only answers of one and the same epsilon have an exact answer.")


def _basic_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    """The sum of the epsilons at delta = 0, where each release has one; it holds at every delta."""
    sensitivity = 2.0 if adjacency == "replace-one" else 1.0
    total = 0.0
    for leaf, count in parts:
        match leaf:
            case PureDpEvent(epsilon=pure):
                total += count * pure
            case dp.LaplaceDpEvent(noise_multiplier=b):
                total += count * sensitivity / b
            case dp.DiscreteLaplaceDpEvent(noise_parameter=a, sensitivity=s):
                total += count * sensitivity * s * a
            case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=k) if adjacency == "replace-one":
                total += count * math.log1p(k * (1 - p) / p)
            case _:
                raise UnsupportedEvent(
                    f"{type(leaf).__name__.removesuffix('DpEvent')} under {adjacency} has no epsilon at "
                    "delta = 0: choose a delta above 0."
                )
    return total


# --- privacy loss distributions -------------------------------------------------------------------

# The FFT inside dp_accounting leaves an error of up to about 1e-16 per release in delta, of either
# sign (measured against the exact answer for Gaussians, up to 10,000 releases). Ten times as much is
# taken off delta, and where that is half of delta or more there is no answer.
_FFT_ERROR = 1e-15
# Below it differences of deltas drown in rounding; above it epsilon is in the tens of thousands.
_FINEST, _COARSEST = 1e-7, 1.0
# From e^-700 on probabilities are 0 in floating point, and dp_accounting's Laplace then has a mass above 1.
_LARGEST_PURE = 500.0


def _pld_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    merged = _merged(parts)
    slack = _FFT_ERROR * (100 + sum(count for _, count in merged))
    if slack > delta / 2:
        raise UnsupportedEvent(f"delta = {delta:g} is too small for a privacy loss distribution.")
    total = _composed_loss(merged, adjacency)
    with np.errstate(over="ignore"):
        answer = float(total.get_epsilon_for_delta(delta - slack))
    if math.isfinite(answer):
        return answer
    # Happens to an epsilon just above 700, where e^-epsilon is hardly a number any more.
    if total.get_delta_for_epsilon(750.0) <= delta - slack:
        return 750.0
    raise UnsupportedEvent("There is too little noise for a privacy loss distribution.")


def _merged(parts: Composition) -> Composition:
    """The same releases, with all unsampled Gaussian ones as the one that tells as much."""
    gaussians = tuple(part for part in parts if isinstance(part[0], dp.GaussianDpEvent))
    others = tuple(part for part in parts if not isinstance(part[0], dp.GaussianDpEvent))
    if not gaussians:
        return others
    return (*others, (dp.GaussianDpEvent(1 / _root_information(gaussians)), 1))


@lru_cache(maxsize=4)  # a curve asks for many deltas in a row; a distribution may hold a million numbers
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
        case dp.TruncatedSubsampledGaussianDpEvent():
            return pld.from_truncated_subsampled_gaussian_mechanism(
                **attr.asdict(leaf), value_discretization_interval=step, neighboring_relation=relation
            )
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


@dataclass(frozen=True)
class _Scale:
    """Of the privacy loss of one release, roughly: the largest that matters, its deviation, a good grid."""

    largest: float
    deviation: float
    grid: float


def _loss_scale(leaf: dp.DpEvent, adjacency: str) -> _Scale:
    sensitivity = 2.0 if adjacency == "replace-one" else 1.0
    q = getattr(leaf, "sampling_probability", 1.0)
    inner = leaf.event if isinstance(leaf, dp.PoissonSampledDpEvent) else leaf
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
    """The grid interval of the privacy loss: the finest that a release asks for, within limits.

    The limits keep the distribution of a release below 200,000 points and that of the composition
    below a million or so: coarser is less exact, never less safe.
    """
    finest = min((scale.grid for scale, _ in scales), default=1e-3)
    largest = max((scale.largest for scale, _ in scales), default=0.0)
    deviation = math.sqrt(sum(count * scale.deviation**2 for scale, count in scales))
    return max(min(finest, 5e-3), largest / 2e5, deviation / 2e4, _FINEST)


# --- Renyi differential privacy -------------------------------------------------------------------

# dp_accounting sums to log E[e^...] near 0 by adding to 1: what is below 1e-16 or so per release is
# noise, of either sign, and is divided by an order - 1 of at least 0.1.
_RDP_ERROR = 1e-14


def _rdp_epsilon(parts: Composition, delta: float, adjacency: str) -> float:
    orders, curve = _renyi_curve(parts, adjacency)
    return float(compute_epsilon(orders, curve, delta)[0])


@lru_cache(maxsize=64)
def _renyi_curve(parts: Composition, adjacency: str) -> tuple[np.ndarray, np.ndarray]:
    """Orders and their Renyi divergences; where an order proves nothing, infinity."""
    accountant = RdpAccountant(neighboring_relation=RELATIONS[adjacency])
    for leaf, count in parts:
        try:
            # RdpAccountant does not double the sensitivity of a replaced record: half the noise does it.
            with np.errstate(all="ignore"):  # infinities are right, and NaN is dealt with below
                accountant.compose(_half_noise(leaf) if adjacency == "replace-one" else leaf, count)
        except UnsupportedEventError as error:
            raise UnsupportedEvent(f"No Renyi accounting for {leaf} under {adjacency}.") from error
    # dp_accounting takes NaN at one order for an epsilon of 0: such an order proves nothing.
    slack = _RDP_ERROR * sum(count for _, count in parts)
    curve = np.where(np.isnan(accountant.rdp), np.inf, np.maximum(accountant.rdp, 0.0) + slack)
    return np.asarray(accountant.orders), curve


def _half_noise(event: dp.DpEvent) -> dp.DpEvent:
    if isinstance(event, dp.GaussianDpEvent | dp.LaplaceDpEvent):
        return attr.evolve(event, noise_multiplier=event.noise_multiplier / 2)
    if isinstance(event, dp.ComposedDpEvent):
        return dp.ComposedDpEvent([_half_noise(part) for part in event.events])
    if hasattr(event, "event"):
        return attr.evolve(event, event=_half_noise(event.event))
    return event


ACCOUNTANT: dict[str, Callable[[Composition, float, str], float]] = {
    "analytic Gaussian": _gaussian_epsilon,
    "optimal composition": _pure_epsilon,
    "basic composition": _basic_epsilon,
    "PLD": _pld_epsilon,
    "RDP": _rdp_epsilon,
    "analytic Gaussian, sampling not counted": _unsampled_epsilon,
}
# In the order in which they are asked; of the last two the better answer counts. Where much noise makes
# epsilon small, Renyi orders end and RDP cannot fall any more, but the noise alone does.
ACCOUNTANTS = (
    ("analytic Gaussian",),
    ("optimal composition",),
    ("PLD",),
    ("RDP", "analytic Gaussian, sampling not counted"),
)


# --- what to do instead ---------------------------------------------------------------------------


def _advice(parts: Composition, delta: float, adjacency: str) -> str:
    kinds = {type(leaf) for leaf, _ in parts}
    if dp.SampledWithoutReplacementDpEvent in kinds and adjacency != "replace-one":
        return (
            f"Cohorts of fixed size have no accountant under {adjacency}: "
            "use replace-one adjacency, or Poisson sampling."
        )
    if dp.SampledWithReplacementDpEvent in kinds:
        return "Sampling with replacement has no accountant: use Poisson sampling."
    if dp.RandomizedResponseDpEvent in kinds and adjacency != "replace-one":
        return "Randomized response hides a changed answer, not a missing one: use replace-one adjacency."
    if dp.SingleEpochTreeAggregationDpEvent in kinds and adjacency != "zero-out":
        return f"Tree aggregation has no accountant under {adjacency}: use zero-out adjacency."
    if dp.UnsupportedDpEvent in kinds:
        return "The run released something that no accountant knows: it has no guarantee."
    if _FFT_ERROR * sum(count for _, count in parts) > delta / 3:
        return f"delta = {delta:g} is too small to account for so many releases: use a larger delta."
    names = ", ".join(sorted(kind.__name__.removesuffix("DpEvent") for kind in kinds))
    return (
        f"No accountant composes this ({names}) under {adjacency}: "
        "use one sampler and one kind of noise for the whole run, or another adjacency."
    )
