"""Epsilon of Gaussian steps on batches drawn with replacement, for an observer who knows the batches.

A record is K_t times in batch t, K_t ~ Binomial(b, 1/n), independently of the data and of earlier
before. Given all batches, step t moves by K_t times what one record can change, so that the steps, each of
which may depend on the earlier ones, are mu-Gaussian-DP with

    mu^2 = S (sensitivity/sigma)^2,   S = K_1^2 + ... + K_T^2     (Dong, Roth and Su 2022, Corollary 3.3),

and the hockey-stick divergence is jointly convex, so that

    delta(epsilon) <= sum over s of P(S = s) delta_Gaussian(epsilon; sqrt(s) sensitivity/sigma).

What is given away is all that a secret batch hides: no amplification is claimed. Balle, Barthe and Gaboardi
2018 (Theorem 10) count it for one step. Nothing else is given away but
the rounding of S, always upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.events import Composition
from fedprivacy.accounting.gaussian import all_gaussian, applications, gaussian_deltas, root_information
from fedprivacy.errors import UnsupportedEvent

Numbers = NDArray[np.float64]

MAX_BATCH = 10**9
_POINTS = 8192  # of a law of S, beyond which its grid gets coarser: some 200 in a standard deviation or more
_UPPER, _LOWER = 1e-30, 1e-13  # the mass that is cut off above, and that is moved up below, in each sum
# A law is a sum of products of positive numbers: its errors are relative, some 8192 x 1e-16 in each sum.
_RELATIVE_ERROR = 1e-11  # a step
_GAUSSIAN_ERROR = 1e-6  # of the Gaussian deltas and mu, very generously


def known_batches(parts: Composition, delta: float, adjacency: str) -> float:
    """Epsilon against an observer who knows the batches, rounded up.

    Args:
        parts: Gaussian releases of batches drawn with replacement, and of everybody.
        delta: In (0, 1).
        adjacency: "replace-one" or "zero-out": by one record more or less every draw changes.

    Raises:
        UnsupportedEvent: Something else was released, delta is too small, or the adjacency is another one.
    """
    if adjacency == "add-remove":
        raise UnsupportedEvent("A record more or less changes every draw from all records.")
    everybody = tuple(part for part in parts if isinstance(part[0], dp.GaussianDpEvent))
    drawn = [_drawn(leaf, count) for leaf, count in parts if not isinstance(leaf, dp.GaussianDpEvent)]
    if not drawn:
        raise UnsupportedEvent("No batch was drawn with replacement.")
    information = _sum(drawn)
    rounding = _GAUSSIAN_ERROR + _RELATIVE_ERROR * sum(count for _, count in parts)
    left = delta * (1 - rounding) - information.lost
    if left <= delta / 2:
        raise UnsupportedEvent(f"delta = {delta:g} is too small for so many batches.")
    sensitivity = 2.0 if adjacency == "replace-one" else 1.0
    squares = root_information(everybody) ** 2 + information.values
    return _epsilon(left, sensitivity * np.sqrt(squares), information.mass)


@dataclass(frozen=True)
class _Information:
    """The law of sum K^2/z^2 over drawn releases: values, on a grid, and their probabilities."""

    values: Numbers
    mass: Numbers
    lost: float  # the probability of values above the grid


def _drawn(leaf: dp.DpEvent, count: int) -> _Information:
    match leaf:
        case dp.SampledWithReplacementDpEvent(source_dataset_size=records, sample_size=batch, event=inner):
            pass
        case dp.SampledWithoutReplacementDpEvent(source_dataset_size=records, sample_size=1, event=inner):
            batch = 1  # with one place there is nothing to put back
        case _:
            raise UnsupportedEvent("Only batches drawn with replacement can be known.")
    single = applications(inner)
    if not all_gaussian(single):
        raise UnsupportedEvent("Only Gaussian noise on a batch drawn with replacement has an accountant.")
    law = _law(records, batch, count)
    return _Information(root_information(single) ** 2 * law.values, law.mass, law.lost)


def _sum(parts: list[_Information]) -> _Information:
    """The distribution of a sum of independent parts, on one common grid."""
    if len(parts) == 1:
        return parts[0]
    step = sum(float(part.values[-1] - part.values[0]) for part in parts) / _POINTS
    mass = np.ones(1)
    for part in parts:
        above = part.values - part.values[0]
        places = np.ceil(above / step).astype(np.int64) if step > 0 else np.zeros(len(above), np.int64)
        mass = np.convolve(mass, _binned(places, part.mass))
    least = sum(float(part.values[0]) for part in parts)
    return _Information(
        least + step * np.arange(len(mass), dtype=np.float64), mass, sum(part.lost for part in parts)
    )


def _epsilon(delta: float, mu: Numbers, mass: Numbers) -> float:
    """The least epsilon at which the mixture of mu-Gaussian-DP releases has at most this delta."""

    def enough(epsilon: float) -> bool:
        return float(mass @ gaussian_deltas(epsilon, mu)) <= delta

    if enough(0.0):
        return 0.0
    most = float(mu[-1])
    low, high = 0.0, most * (most / 2 + math.sqrt(-2 * math.log(delta)))  # as in `gaussian_epsilon`
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# --- the law of S ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Law:
    """The law of a sum of squares, rounded up to multiples of `step`.

    `mass[i]` is the probability of (low + i) step; `lost` that of all beyond.
    """

    step: int
    low: int
    mass: Numbers
    lost: float

    @property
    def values(self) -> Numbers:
        return (self.low + np.arange(len(self.mass), dtype=np.float64)) * self.step

    def plus(self, other: _Law) -> _Law:
        """The law of the sum of two independent ones."""
        step = max(self.step, other.step)
        mine, two = self._coarser(step), other._coarser(step)
        lost = self.lost + other.lost
        return _Law(step, mine.low + two.low, np.convolve(mine.mass, two.mass), lost)._within()

    def _coarser(self, step: int) -> _Law:
        """On the grid of the multiples of `step`, which is a multiple of ours; rounded up."""
        if step == self.step:
            return self
        ratio = step // self.step
        low = -(-self.low // ratio)
        # Relative to low, so that no huge sum of squares has to fit into 64 bits.
        shift = self.low - ratio * low  # from -ratio + 1 to 0
        places = -(-(np.arange(len(self.mass)) + shift) // ratio)
        return _Law(step, low, _binned(places, self.mass), self.lost)

    def _within(self) -> _Law:
        """Without tails that hardly ever happen, and on a grid of at most `_POINTS` points."""
        above = np.cumsum(self.mass[::-1])[::-1]
        last = max(1, int(np.count_nonzero(above > _UPPER)))
        lost = self.lost + (float(above[last]) if last < len(above) else 0.0)
        first = min(int(np.count_nonzero(np.cumsum(self.mass[:last]) <= _LOWER)), last - 1)
        mass = self.mass[first:last].copy()
        mass[0] += self.mass[:first].sum()
        law = _Law(self.step, self.low + first, mass, lost)
        while len(law.mass) > _POINTS:
            law = law._coarser(2 * law.step)
        return law


@lru_cache(maxsize=256)  # independent of the noise, so one calibration computes one law
def _law(records: int, batch: int, count: int) -> _Law:
    """The law of the sum of squares of `count` draws from Binomial(batch, 1/records)."""
    return _repeated(_square(records, batch), count)


def _repeated(law: _Law, count: int) -> _Law:
    total: _Law | None = None
    while True:
        if count % 2:
            total = law if total is None else total.plus(law)
        count //= 2
        if count == 0:
            assert total is not None
            return total
        law = law.plus(law)


def _square(records: int, batch: int) -> _Law:
    if batch > MAX_BATCH:
        raise UnsupportedEvent(f"A batch of {batch} places is larger than {MAX_BATCH:g}.")
    times = scipy.stats.binom(batch, 1 / records)
    least, most = int(times.ppf(_LOWER)), _largest(batch, lambda count: float(times.sf(count)))
    counts = np.arange(least, most + 1, dtype=np.int64)
    mass = times.pmf(counts)
    mass[0] += float(times.cdf(least - 1))
    spread = most * most - least * least
    step = 2 ** max(0, math.ceil(math.log2(max(1, spread / _POINTS))))
    low = -(-least * least // step)
    places = -(-(counts * counts) // step) - low
    return _Law(step, low, _binned(places, mass), float(times.sf(most)))._within()


def _binned(places: NDArray[np.int64], mass: Numbers) -> Numbers:
    return np.bincount(places, mass).astype(np.float64)


def _largest(batch: int, above: Callable[[int], float]) -> int:
    """The least count with at most `_UPPER` above it (scipy's isf gives up at such tails)."""
    low, high = -1, batch
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if above(middle) <= _UPPER else (middle, high)
    return high
