"""Accounts for Student t noise on encoded updates: a finite code book, coordinate by coordinate.

A client adds to the sum a vector of which at most k coordinates are not 0, and these are a or -a. Student t
noise is independent in each coordinate and not the same in every direction, so that its cost hangs on which
coordinates move and by how much, and not on a norm alone. Here this is a finite question. The hockey-stick
divergence, delta as a function of alpha = e^epsilon, is called a curve. For noise of density f, moved by t:

- *One coordinate.* That the privacy loss log f(x)/f(x - t) is above log alpha is a quadratic inequality in x,
  so that the curve has a closed form in the distribution function; the loss is at most
  (nu + 1) asinh(t / (2 s sqrt(nu))) for nu degrees of freedom and scale s. At each alpha the curve grows with
  |t|: its derivative in t is alpha (f(x2 - t) - f(x1 - t)), where (x1, x2) is where the loss is that large,
  and for alpha > 1 the middle of that interval is -t/(alpha^(2/(nu + 1)) - 1) < t, so that x2 is nearer to t.
- *A part zeroed, or a client more or less:* k coordinates move by a at most.
- *A part replaced:* j coordinates move by 2a, and others by a, 2(k - j) of these at most. So each of k units
  is one coordinate moved by 2a, or two moved by a. The larger of both curves at each alpha dominates either,
  and k times that dominates each of the patterns. Where a code may use all coordinates (k is the dimension),
  each coordinate is one unit that moves by 2a at most.
- *Composition.* What dominates each part dominates the whole, also where later rounds depend on earlier ones
  (Zhu, Dong and Wang 2022, Theorem 10), so that curves become privacy loss distributions and are convolved.
- *Poisson sampling.* The curve of the sampled release follows from that of the release: Zhu, Dong and Wang
  2022, Theorem 11, for a client more or less, or zeroed; under replace-one the advanced joint convexity of
  Balle, Barthe and Gaboardi 2018, Theorem 2, which needs the curve of a zeroed part too, and proves less than
  what Gaussian noise has there. The others who are drawn are a mixture on either side, and hockey sticks are
  jointly convex.

A true curve is convex. So where upper bounds of it are known at some points, the lower convex hull of these
points is above it everywhere (connect the dots, Doroshenko et al. 2022), whatever the rounding at each, once
an allowance for that is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import attr
import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray
from scipy.special import stdtr

from fedprivacy.errors import UnsupportedEvent

if TYPE_CHECKING:
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

Numbers = NDArray[np.float64]
Curve = Callable[[Numbers], Numbers]  # epsilons, ascending -> upper bounds of delta

LEAST_DEGREES, MOST_DEGREES = 3.0, 1000.0
MOST_COORDINATES = 10**7  # of a code; beyond, what rounding is allowed for in each takes all of delta
# Of a curve in closed form: 1.2e-15 at most against 40 digits for moves up to 10 scales of the noise. Beyond,
# what is far in a tail is a difference of large numbers: 9.5e-15 up to 100, 6.8e-14 up to 1000, 4.1e-12 up
# to 100,000, so that `_rounding` grows with the move.
_ROUNDING = 2e-15
# The FFT inside dp_accounting leaves an error of up to about 1e-16 per release in delta, of either
# sign (measured against the exact answer for Gaussians, up to 10,000 releases). Ten times as much is
# subtracted from delta; if that is half of delta or more, there is no answer.
FFT_ERROR = 1e-15
_POINTS = 50_000  # of the distribution of a release on either side of 0, or so
_NOTHING = 1e-14  # a delta below which a curve is not followed further
_LARGEST = 600.0  # e^loss is a number


@attr.s(frozen=True, slots=True, auto_attribs=True)
class EncodedStudentDpEvent(dp.DpEvent):
    """A sum of encoded updates with independent Student t noise in each coordinate.

    Args:
        noise_multiplier: The noise's standard deviation / the norm C of a code.
        degrees: Of freedom, from 3.
        coordinates: k: a code has this many entries of C / sqrt(k) or -C / sqrt(k), or fewer.
        dimension: How many coordinates there are, k or more.
    """

    noise_multiplier: float
    degrees: float
    coordinates: int
    dimension: int


def gaussian_like(event: EncodedStudentDpEvent) -> float:
    """The noise multiplier of the equally revealing Gaussian release, in the limit of many small moves.

    The Fisher information of Student t noise of variance v is nu (nu + 1)/((nu - 2)(nu + 3) v);
    that of Gaussian noise 1/v, which is the least for that variance.
    """
    nu = event.degrees
    return event.noise_multiplier * math.sqrt((nu - 2) * (nu + 3) / (nu * (nu + 1)))


def encoded_loss(
    event: EncodedStudentDpEvent, rate: float, adjacency: str, step: float
) -> pld.PrivacyLossDistribution:
    """The pessimistic privacy loss distribution of one release.

    Args:
        event: What was released.
        rate: The probability that a client participates, by its own coin; 1 if all do.
        adjacency: "replace-one", "add-remove" or "zero-out".
        step: The grid of the losses.

    Raises:
        UnsupportedEvent: There is too little noise.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    release = _release(event, adjacency == "replace-one")
    if rate == 1:
        return pld.PrivacyLossDistribution(
            _distribution(release.curve, (-release.reach, release.reach), step)
        )
    # A sampled loss is log(1 - q + q e^loss), the other way its negative.
    reach, floor = math.log1p(rate * math.expm1(release.reach)), math.log1p(-rate)
    if adjacency == "replace-one":
        alone = _release(event, False)
        curve = _replaced(release.curve, alone.curve, rate)
        return pld.PrivacyLossDistribution(_distribution(curve, (-reach, reach), step))
    removed = _distribution(_removed(release.curve, rate), (floor, reach), step)
    added = _distribution(_added(release.curve, rate), (-reach, -floor), step)
    return pld.PrivacyLossDistribution(removed, added)


# --- one release ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Release:
    """The curve of a release, and the loss where it ends, beyond which hardly anything is."""

    curve: Curve
    reach: float


@lru_cache(maxsize=8)
def _release(event: EncodedStudentDpEvent, replaced: bool) -> _Release:
    nu, units = event.degrees, event.coordinates
    if units > MOST_COORDINATES:
        raise UnsupportedEvent("There are too many coordinates for a privacy loss distribution.")
    moved = _moved(event)
    once, pairs = (2 if replaced else 1) * moved, replaced and event.dimension > units
    largest, alone = largest_loss(once, nu), largest_loss(moved, nu) if pairs else 0.0
    exact, largest = (largest, largest) if largest >= 2 * alone else (alone, 2 * alone)
    deviation = once * math.sqrt((nu + 1) / (nu + 3))
    whole = deviation * math.sqrt(units)
    reach = min(units * largest, whole**2 / 2 + 10 * whole)
    if not reach <= _LARGEST:
        raise UnsupportedEvent("There is too little noise for a privacy loss distribution.")
    step = max(min(deviation / 50, largest / 5), reach / _POINTS)
    # Losses on a grid end at a multiple of its step, not below the largest loss: to stop short of that end
    # would make what is left infinite, and to go far beyond it would cost what is not lost.
    step, rounding = exact / math.ceil(exact / step), _rounding(once)
    end = math.ceil(largest_loss(once, nu) / step) * step
    curve = _symmetric(partial(moved_delta, moved=once, degrees=nu))
    if pairs:
        alone = math.ceil(alone / step) * step
        curve_alone = _symmetric(partial(moved_delta, moved=moved, degrees=nu))
        single = _Dots.of(curve_alone, (-alone, alone), step, rounding)
        two = single.distribution().self_compose(2)
        curve, end = _larger(curve, _symmetric(_curve_of(two))), max(end, 2 * alone)
    unit = _Dots.of(curve, (-end, end), step, rounding).distribution()
    total, allowance = _curve_of(unit.self_compose(units)), FFT_ERROR * (100 + units)

    def above(epsilons: Numbers) -> Numbers:
        return total(epsilons) + allowance

    most = min(units * end, _LARGEST, 4 * _POINTS * step)
    lost = _lost(units, rounding)
    while reach < most and above(np.array([reach]))[0] > lost:
        reach = min(most, 1.5 * reach)
    # A grid that is coarse for one coordinate is fine for all together.
    step = reach / math.ceil(reach / min(max(step, whole / 200), reach / 50))
    dots = _Dots.of(_symmetric(above), (-reach, reach), step)
    return _Release(dots.curve, dots.reach)


def lost_to_rounding(event: EncodedStudentDpEvent, adjacency: str) -> float:
    """The delta of one release that its account may have for rounding alone.

    Args:
        event: What was released.
        adjacency: "replace-one", "add-remove" or "zero-out".
    """
    once = (2 if adjacency == "replace-one" else 1) * _moved(event)
    return _lost(event.coordinates, _rounding(once))


def _moved(event: EncodedStudentDpEvent) -> float:
    """a in units of the noise's scale, whose variance is nu/(nu - 2)."""
    nu = event.degrees
    return math.sqrt(nu / (nu - 2) / event.coordinates) / event.noise_multiplier


def _lost(units: int, rounding: float) -> float:
    return _NOTHING + 2 * (FFT_ERROR * (100 + units) + units * rounding)


def _rounding(moved: float) -> float:
    return _ROUNDING * max(1.0, moved / 5)


def largest_loss(moved: float, degrees: float) -> float:
    """The largest privacy loss of one coordinate: Student t noise of scale 1 is epsilon-DP."""
    return (degrees + 1) * math.asinh(moved / (2 * math.sqrt(degrees)))


def moved_delta(epsilons: Numbers, moved: float, degrees: float) -> Numbers:
    """The hockey-stick divergence of Student t noise of scale 1 and the same noise moved, to `_rounding`.

    f(x) > alpha f(x - t) is b x^2 - x^2 + 2 t x - t^2 + nu (b - 1) < 0, with b = alpha^(2/(nu + 1)).

    Args:
        epsilons: At least 0, shape (points,).
        moved: t, above 0.
        degrees: nu.
    """
    excess = np.expm1(2 * epsilons / (degrees + 1))  # b - 1
    root = (1 + excess) * moved**2 - degrees * excess**2
    divergence = np.zeros(len(epsilons))
    some = root > 0
    excess, root, alpha = excess[some], np.sqrt(root[some]), np.exp(epsilons[some])
    high = (moved**2 - degrees * excess) / (moved + root)
    with np.errstate(divide="ignore"):
        low = -(moved + root) / excess  # minus infinity at epsilon = 0
    inside = stdtr(degrees, high) - stdtr(degrees, low)
    divergence[some] = inside - alpha * (stdtr(degrees, high - moved) - stdtr(degrees, low - moved))
    return np.maximum(divergence, 0.0)


# --- curves ---------------------------------------------------------------------------------------


def _symmetric(above: Curve) -> Curve:
    """The curve of two laws of which either may be the first, from its part at alpha >= 1.

    H(alpha; P, Q) = 1 - alpha + alpha H(1/alpha; Q, P).
    """

    def curve(epsilons: Numbers) -> Numbers:
        below = epsilons < 0
        mirrored = above(-epsilons[below][::-1])[::-1]
        left = -np.expm1(epsilons[below]) + np.exp(epsilons[below]) * mirrored
        return np.concatenate([left, above(epsilons[~below])])

    return curve


def _larger(first: Curve, other: Curve) -> Curve:
    return lambda epsilons: np.maximum(first(epsilons), other(epsilons))


def _removed(curve: Curve, rate: float) -> Curve:
    """Of (1 - q) Q + q P and Q, where the curve is of P and Q."""

    def sampled(epsilons: Numbers) -> Numbers:
        excess = np.expm1(epsilons)
        deltas = -excess  # below the least loss there is
        some = excess > -rate
        deltas[some] = rate * curve(np.log1p(excess[some] / rate))
        return deltas

    return sampled


def _added(curve: Curve, rate: float) -> Curve:
    """Of P and (1 - q) P + q Q."""

    def sampled(epsilons: Numbers) -> Numbers:
        alpha = np.exp(epsilons)
        left = 1 - alpha * (1 - rate)
        deltas = np.zeros(len(epsilons))
        some = left > 0
        deltas[some] = left[some] * curve(np.log(alpha[some] * rate / left[some]))
        return deltas

    return sampled


def _replaced(replaced: Curve, zeroed: Curve, rate: float) -> Curve:
    """Of (1 - q) A + q B and (1 - q) A + q B', from the curves of B and B', and of either and A.

    For alpha >= 1, with alpha' = 1 + (alpha - 1)/q and beta = alpha/alpha', it is at most
    q ((1 - beta) H(alpha'; B, A) + beta H(alpha'; B, B')).
    """

    def above(epsilons: Numbers) -> Numbers:
        inner = np.log1p(np.expm1(epsilons) / rate)
        beta = np.exp(epsilons - inner)
        branch: Numbers = rate * ((1 - beta) * zeroed(inner) + beta * replaced(inner))
        return branch

    return _symmetric(above)


@dataclass(frozen=True)
class _Dots:
    """The lower convex hull of upper bounds of a curve, which is a curve and lies above the true one.

    Args:
        places: Its corners, in steps of the grid of losses, shape (corners,).
        deltas: There, shape (corners,).
        step: Of the grid.
    """

    places: NDArray[np.int64]
    deltas: Numbers
    step: float

    @classmethod
    def of(cls, curve: Curve, losses: tuple[float, float], step: float, rounding: float = _ROUNDING) -> _Dots:
        """Takes bounds, which are right up to `rounding`, from one loss to another.

        Larger losses become infinite ones, and smaller ones rise.
        """
        places = np.arange(math.floor(losses[0] / step), math.ceil(losses[1] / step) + 1)
        grid = (places * step).astype(np.float64)
        deltas = np.clip(curve(grid) + rounding, 0.0, 1.0)
        deltas = np.minimum.accumulate(deltas)  # no curve rises: a bound further left is one here too
        hull = _lower_hull(np.exp(grid), deltas)
        return cls(places[hull], deltas[hull], step)

    @property
    def reach(self) -> float:
        """The largest loss: that of the last corner. Short of it a delta lies on the line to that corner."""
        return float(self.places[-1] * self.step)

    def curve(self, epsilons: Numbers) -> Numbers:
        """Its deltas; shape (points,)."""
        alphas = np.concatenate([[0.0], np.exp(self.places * self.step)])
        values: Numbers = np.interp(np.exp(epsilons), alphas, np.concatenate([[1.0], self.deltas]))
        return values

    def distribution(self) -> pld_pmf.DensePLDPmf:
        """The privacy loss distribution that has this curve."""
        from dp_accounting.pld import pld_pmf

        pmf = pld_pmf.create_pmf_pessimistic_connect_dots(self.step, self.places, self.deltas)
        return pmf.to_dense_pmf()


def _distribution(curve: Curve, losses: tuple[float, float], step: float) -> pld_pmf.PLDPmf:
    return _Dots.of(curve, losses, step).distribution()


def _curve_of(loss: pld_pmf.DensePLDPmf) -> Curve:
    """The curve that `get_delta_for_epsilon` computes, to the bit, without a loop over points.

    Of P and Q it adds up P(loss) and Q(loss) from the largest loss down to those above an epsilon.
    """
    losses = (np.arange(loss.size) + loss._lower_loss) * loss._discretization
    masses = np.asarray(loss._probs)[::-1]
    first = np.cumsum(np.concatenate([[loss._infinity_mass], masses]))
    other = np.cumsum(np.concatenate([[0.0], masses * np.exp(-losses[::-1])]))

    def curve(epsilons: Numbers) -> Numbers:
        above = len(losses) - np.searchsorted(losses, epsilons, side="right")
        taken = np.zeros(len(epsilons))
        np.multiply(np.exp(epsilons), other[above], out=taken, where=above > 0)  # infinity times 0 is 0
        return np.asarray(first[above] - taken, dtype=np.float64)

    return curve


def _lower_hull(alphas: Numbers, deltas: Numbers) -> list[int]:
    """The places of the points on the lower convex hull, to which (0, 1) belongs too (Andrew 1979)."""
    points, corners = [(0.0, 1.0), *zip(alphas.tolist(), deltas.tolist(), strict=True)], [0]
    for number, (x, y) in enumerate(points[1:], 1):
        while len(corners) > 1:
            (x0, y0), (x1, y1) = points[corners[-2]], points[corners[-1]]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            corners.pop()
        corners.append(number)
    return [number - 1 for number in corners[1:]]
