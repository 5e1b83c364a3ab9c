"""The epsilon of a DpEvent at a delta, under one adjacency; and the least noise for an epsilon.

Noise multipliers in an event are noise standard deviation / clipping norm C under every adjacency.
Taking one record away, or zeroing it, moves a clipped sum by C; replacing it moves the sum by 2C,
and the accountants behind this function do that doubling, never the event.

| event | accountant |
|---|---|
| Gaussian releases of everybody's data, composed | exact: "analytic Gaussian" (Balle and Wang 2018) |
| one epsilon each (randomized response), repeated | exact: "optimal composition" (Kairouz et al. 2015) |
| shuffled messages of a pure mechanism, one of each client | "numerical clone bound" (Feldman et al. 2021) |
| releases with an epsilon at delta = 0: if delta = 0, or if no other is smaller | "basic composition" |
| other privacy loss distributions: Poisson or fixed-size sampling, Laplace, Student t | "PLD" |
| private selection from candidates that each have an epsilon at delta = 0 | "basic composition" |
| the rest: trees, private selection, sums of integers, events out of range of "PLD" | "RDP" |
| sampled Gaussian releases of which both of these prove less, or nothing | exact, as if unsampled |
| Gaussian releases of batches drawn with replacement | "known batches": their secrecy is not counted |

Each answer is an upper bound: the exact ones up to floating point, the others with an allowance for
rounding errors of the FFT and of sums of logarithms in dp_accounting. `noise_multiplier` searches with the
same function that writes the guarantee, and rounds up: a calibrated run never costs more than its target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from dp_accounting import dp_event as dp

from fedprivacy.accounting.encoded_updates import (
    FFT_ERROR,
    MOST_COORDINATES,
    EncodedStudentDpEvent,
    lost_to_rounding,
)
from fedprivacy.accounting.events import MAX_NOISE, MIN_NOISE, RELATIONS, Composition, releases
from fedprivacy.accounting.gaussian import all_gaussian, as_if_unsampled, composed_gaussians, composed_mu
from fedprivacy.accounting.integer_sums import ADD_REMOVE, INTEGER_SUMS, SAMPLED
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.accounting.pure_dp import basic_composition
from fedprivacy.accounting.shuffled_event import ShuffledDpEvent
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.io import side_process

_START = 32.0  # much noise, where privacy loss distributions are small and quick to compose
_MOST = math.log(MAX_NOISE) - 1e-9  # its exponential is not above MAX_NOISE
_TOLERANCE = 5e-5  # relative, in the noise multiplier
_EXACT_TOLERANCE = 1e-10  # where an evaluation costs microseconds


@dataclass(frozen=True)
class Accounted:
    """An epsilon and its accountant: a name of `ACCOUNTANT`, or "none" without privacy."""

    epsilon: float
    accountant: str


def epsilon(event: dp.DpEvent, delta: float, adjacency: str) -> Accounted:
    """The least epsilon that an accountant can prove for `event`.

    Args:
        event: What was released; noise multipliers are noise standard deviation / C.
        delta: In [0, 1); at 0 releases of pure epsilon-DP alone have an answer.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: delta, adjacency or a number in the event is out of range.
        UnsupportedEvent: No accountant covers this event; the message proposes an alternative.

    >>> round(epsilon(dp.GaussianDpEvent(2.0), 1e-5, "replace-one").epsilon, 3)
    4.377
    """
    _check(delta, adjacency)
    return _accounted(releases(event, adjacency), delta, adjacency)


def epsilon_pld(event: dp.DpEvent, delta: float, adjacency: str) -> float:
    """Epsilon from privacy loss distributions only, to cross-check; see `epsilon`."""
    _check(delta, adjacency)
    parts = releases(event, adjacency)
    return math.inf if _not_private(parts) else _loss_epsilon(parts, delta, adjacency)


def epsilon_rdp(event: dp.DpEvent, delta: float, adjacency: str) -> float:
    """Epsilon from Renyi differential privacy only, to cross-check; see `epsilon`."""
    _check(delta, adjacency)
    parts = releases(event, adjacency)
    return math.inf if _not_private(parts) else _renyi_epsilon(parts, delta, adjacency)


def gaussian_mu(event: dp.DpEvent, adjacency: str) -> float | None:
    """Returns the mu of mu-Gaussian-DP; None unless `event` is unsampled Gaussian noise alone.

    Args:
        event: What was released; noise multipliers are noise standard deviation / C.
        adjacency: "replace-one", "add-remove" or "zero-out".

    Raises:
        InputError: The adjacency or a number in the event is out of range.
    """
    _check_adjacency(adjacency)
    parts = releases(event, adjacency)
    return composed_mu(parts, adjacency) if all_gaussian(parts) else None


def _check(delta: float, adjacency: str) -> None:
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta}: must be at least 0 and below 1.")
    _check_adjacency(adjacency)


def _check_adjacency(adjacency: str) -> None:
    if adjacency not in RELATIONS:
        raise InputError(f"adjacency = {adjacency!r}: must be one of {', '.join(RELATIONS)}.")


@lru_cache(maxsize=4096)
def _accounted(parts: Composition, delta: float, adjacency: str) -> Accounted:
    if _not_private(parts):
        return Accounted(math.inf, "none")
    if adjacency != "replace-one" and any(
        isinstance(leaf, dp.RandomizedResponseDpEvent) for leaf, _ in parts
    ):
        # dp_accounting's zero-out means an answer drawn uniformly, which no mechanism here does.
        raise UnsupportedEvent(_advice(parts, delta, adjacency))
    shuffled = [leaf for leaf, _ in parts if isinstance(leaf, ShuffledDpEvent)]
    if shuffled and adjacency != "replace-one":
        raise UnsupportedEvent("A shuffler hides a changed answer, not a missing one: use replace-one.")
    if shuffled and (len(parts) > 1 or parts[0][1] > 1):
        # Nothing is proved here of batches of messages beside other releases: shuffling is not counted.
        alone = dp.ComposedDpEvent([_unshuffled(leaf, count) for leaf, count in parts])
        return _accounted(releases(alone, adjacency), delta, adjacency)
    if delta == 0:
        return Accounted(basic_composition(parts, delta, adjacency), "basic composition")
    for name in EXACT:
        if (exact := _account_by(name, parts, delta, adjacency)) is not None:
            return exact
    losses = _account_by("PLD", parts, delta, adjacency) or _account_by("RDP", parts, delta, adjacency)
    proved = [losses, *(_account_by(name, parts, delta, adjacency) for name in SAMPLING_KNOWN)]
    if any(proved):
        # The grid of a privacy loss distribution may round the loss of a few releases above their sum.
        answers = [*proved, _account_by("basic composition", parts, delta, adjacency)]
        return min((answer for answer in answers if answer), key=lambda spent: spent.epsilon)
    if any(isinstance(leaf, dp.RepeatAndSelectDpEvent) for leaf, _ in parts):  # from pure candidates
        alone = _account_by("basic composition", parts, delta, adjacency)
        if alone is not None:
            return alone
    raise UnsupportedEvent(_advice(parts, delta, adjacency))


def _unshuffled(leaf: dp.DpEvent, count: int) -> dp.DpEvent:
    """A release some times, as if the senders of messages were seen too."""
    seen = PureDpEvent(leaf.local_epsilon) if isinstance(leaf, ShuffledDpEvent) else leaf
    return dp.SelfComposedDpEvent(seen, count)


def _account_by(name: str, parts: Composition, delta: float, adjacency: str) -> Accounted | None:
    try:
        return Accounted(ACCOUNTANT[name](parts, delta, adjacency), name)
    except UnsupportedEvent:
        return None


def _not_private(parts: Composition) -> bool:
    return any(isinstance(leaf, dp.NonPrivateDpEvent) for leaf, _ in parts)


def _beside(function: str) -> Callable[[Composition, float, str], float]:
    """An accountant that rests on scipy.stats or scipy.signal, which take most of a second to import."""

    def account(parts: Composition, delta: float, adjacency: str) -> float:
        return float(side_process.call(f"fedprivacy.accounting.{function}", parts, delta, adjacency))

    return account


_loss_epsilon = _beside("privacy_loss:loss_epsilon")
_renyi_epsilon = _beside("renyi:renyi_epsilon")
ACCOUNTANT: dict[str, Callable[[Composition, float, str], float]] = {
    "analytic Gaussian": composed_gaussians,
    "optimal composition": _beside("pure_dp:optimal_composition"),
    "numerical clone bound": _beside("shuffle:clone_bound"),
    "basic composition": basic_composition,
    "PLD": _loss_epsilon,
    "RDP": _renyi_epsilon,
    "known batches": _beside("known_batches:known_batches"),
    "analytic Gaussian, sampling not counted": as_if_unsampled,
}
EXACT = ("analytic Gaussian", "optimal composition", "numerical clone bound")
# Computed beside "PLD" or "RDP"; the smallest counts. Both lose a little, by their grid or their last order,
# which may exceed the gain of sampling if a sample is nearly everybody or epsilon is small.
SAMPLING_KNOWN = ("known batches", "analytic Gaussian, sampling not counted")


# --- what to do instead ---------------------------------------------------------------------------


def _holds(event: dp.DpEvent, kind: type[dp.DpEvent] | tuple[type[dp.DpEvent], ...]) -> bool:
    """Whether an event, or one of its parts, is of a kind, or of one of several."""
    inner = [event.event] if hasattr(event, "event") else getattr(event, "events", [])
    return isinstance(event, kind) or any(_holds(each, kind) for each in inner)


def _advice(parts: Composition, delta: float, adjacency: str) -> str:
    kinds = {type(leaf) for leaf, _ in parts}
    if dp.SampledWithoutReplacementDpEvent in kinds and adjacency == "add-remove":
        return (
            f"Cohorts of fixed size have no accountant under {adjacency}: "
            "use replace-one or zero-out adjacency, or Poisson sampling."
        )
    if sums := [leaf for leaf, _ in parts if _holds(leaf, INTEGER_SUMS)]:
        if adjacency == "add-remove":
            return ADD_REMOVE
        if any("Sampled" in type(leaf).__name__ for leaf in sums):
            return SAMPLED
    if any(_holds(leaf, EncodedStudentDpEvent) for leaf, _ in parts):
        return f"Student t noise on encoded updates {_encoded_advice(parts, delta, adjacency)}"
    if dp.SampledWithReplacementDpEvent in kinds:
        if adjacency == "add-remove":
            return (
                "Sampling with replacement has no accountant under add-remove, where one record more or less "
                "changes every draw: use replace-one adjacency, or Poisson sampling."
            )
        return (
            "Sampling with replacement is accounted for with Gaussian noise alone, beside none but Gaussian "
            "releases of everybody, at batches of at most 1e9 places and a delta that is not tiny: use "
            "Poisson sampling."
        )
    if dp.RandomizedResponseDpEvent in kinds and adjacency != "replace-one":
        return "Randomized response hides a changed answer, not a missing one: use replace-one adjacency."
    if dp.SingleEpochTreeAggregationDpEvent in kinds and adjacency != "zero-out":
        return f"Tree aggregation has no accountant under {adjacency}: use zero-out adjacency."
    if dp.UnsupportedDpEvent in kinds:
        return "The run released something that no accountant knows: it has no guarantee."
    if FFT_ERROR * sum(count for _, count in parts) > delta / 3:
        return f"delta = {delta:g} is too small to account for so many releases: use a larger delta."
    names = ", ".join(sorted(kind.__name__.removesuffix("DpEvent") for kind in kinds))
    return (
        f"No accountant composes this ({names}) under {adjacency}: "
        "use one sampler and one kind of noise for the whole run, or another adjacency."
    )


def _encoded_advice(parts: Composition, delta: float, adjacency: str) -> str:
    """The error message for Student t noise on encoded updates that has no account."""
    rounding, most = 0.0, 0
    for leaf, count in parts:
        if not _holds(leaf, EncodedStudentDpEvent):
            continue
        release = leaf.event if isinstance(leaf, dp.PoissonSampledDpEvent) else leaf
        if isinstance(release, dp.RepeatAndSelectDpEvent):
            return "is not accounted for in private selection: use Gaussian noise."
        if not isinstance(release, EncodedStudentDpEvent):
            return (
                "is accounted for with all clients or with Poisson sampling, and no other cohorts: "
                "use Poisson sampling, or Gaussian noise."
            )
        most = max(most, release.coordinates)
        rounding += count * lost_to_rounding(release, adjacency)
    if most > MOST_COORDINATES:
        return f"is accounted for up to {MOST_COORDINATES:,} coordinates of a code: use Gaussian noise."
    if rounding + FFT_ERROR * (100 + sum(count for _, count in parts)) > delta / 2:
        return (
            f"is not accounted for at delta = {delta:g}, which is too small for so many coordinates and "
            "releases, in each of which rounding is allowed for: use a larger delta, or Gaussian noise."
        )
    try:
        _loss_epsilon(parts, delta, adjacency)
    except UnsupportedEvent as refused:
        return f"is not accounted for here. {refused} Use Gaussian noise."
    return "is not accounted for here: use Gaussian noise."


def noise_multiplier(
    make_event: Callable[[float], dp.DpEvent], epsilon: float, delta: float, adjacency: str
) -> float:
    """The smallest noise multiplier for which `make_event(noise_multiplier)` costs at most epsilon.

    Args:
        make_event: Noise standard deviation / C -> what will be released. Its epsilon falls with noise.
        epsilon: Above 0.
        delta: In (0, 1).
        adjacency: "replace-one", "add-remove" or "zero-out".

    Returns:
        z with epsilon(make_event(z)) <= epsilon, at most 1e-4 of itself above the smallest such z
        (1e-9 for unsampled Gaussian noise and randomized response on bits).

    Raises:
        InputError: A value is out of range, or no noise from 1e-4 to 1e7 gives this epsilon.
        UnsupportedEvent: No accountant answers for the event.

    >>> round(noise_multiplier(dp.GaussianDpEvent, 1.0, 1e-5, "add-remove"), 3)
    3.731
    """
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon = {epsilon}: must be a finite number above 0.")

    accounted = _by_log_noise(make_event, delta, adjacency)
    low, high = _bracket(lambda log_noise: accounted(log_noise).epsilon, epsilon)
    exact = accounted(high).accountant in ("analytic Gaussian", "optimal composition")
    # scipy.optimize, which these need, takes a moment to import.
    from dp_accounting.mechanism_calibration import ExplicitBracketInterval, calibrate_dp_mechanism

    root = calibrate_dp_mechanism(
        lambda: _EventAccountant(adjacency),
        lambda log_noise: make_event(math.exp(log_noise)),
        epsilon,
        delta,
        ExplicitBracketInterval(low, high),
        tol=_EXACT_TOLERANCE if exact else _TOLERANCE,
    )
    return math.exp(root)


def _by_log_noise(
    make_event: Callable[[float], dp.DpEvent], delta: float, adjacency: str
) -> Callable[[float], Accounted]:
    """The epsilon of an event as a function of the logarithm of its noise multiplier."""
    return lambda log_noise: epsilon(make_event(math.exp(log_noise)), delta, adjacency)


class _EventAccountant:
    """Adapts our accountants to the interface that `calibrate_dp_mechanism` expects."""

    ledger = dp.NoOpDpEvent()

    def __init__(self, adjacency: str) -> None:
        self.adjacency = adjacency

    def compose(self, event: dp.DpEvent) -> _EventAccountant:
        self.event = event
        return self

    def get_epsilon(self, delta: float) -> float:
        # Brent's method interpolates: infinity would spoil it, any huge number does not.
        return min(epsilon(self.event, delta, self.adjacency).epsilon, 1e12)


def _bracket(cost: Callable[[float], float], target: float) -> tuple[float, float]:
    """Two logarithms of noise, neighbours of the answer: cost(low) > target >= cost(high).

    Comes down from much noise, since an evaluation at little noise is slow. log epsilon is nearly a
    line in log noise, so each step follows that line, by a factor between 1.25 and 4.
    """
    high = math.log(_START)
    cost_high = cost(high)
    while cost_high > target:
        if high >= _MOST:
            raise InputError(
                f"epsilon = {target:g} cannot be reached by any noise: something else in the run "
                "already costs more, or has no noise at all."
            )
        high = min(high + math.log(4), _MOST)
        cost_high = cost(high)
    slope = -1.0
    while True:
        wanted = math.log(target / cost_high) / -slope if cost_high > 0 else math.inf
        low = high - min(max(1.05 * wanted, math.log(1.25)), math.log(4))
        if low < math.log(MIN_NOISE):
            raise InputError(
                f"epsilon = {target:g} requires less noise than {MIN_NOISE:g} times the clipping norm: "
                'choose a smaller epsilon, or trust = "none".'
            )
        cost_low = cost(low)
        if cost_low > target:
            return low, high
        if 0 < cost_high < cost_low:
            slope = min(math.log(cost_low / cost_high) / (low - high), -0.5)
        high, cost_high = low, cost_low
