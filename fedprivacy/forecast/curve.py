"""A measured curve of accuracy: its law, the law's error, and intervals by a parametric bootstrap.

Each replicate draws mean accuracies around the law: with the spread between repeats, scaled up where the law
misses the means by more than that; with that spread's own uncertainty; and with the error of a finite set of
development records, which all points share. The law is fitted to each replicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import isotonic_regression

from fedprivacy.forecast.law import LEAST_VARIANCE, Floats, Law, fit, fit_many
from fedprivacy.randomness.streams import Streams

REPLICATES = 400
PERCENTILES = (2.5, 97.5)
FARTHEST = 4.0  # an extrapolation ends at this multiple of the largest measured number
MOST_FALL = 3.0  # standard errors by which means may fall where they should rise
MOST_MISFIT = 4.0  # by which the squared error of the law may exceed what the repeats explain,
SMALL_ERROR = 0.02  # unless it is as small as this: a finite set of development records bends a curve too
TOLERANCE = 0.01  # the standard deviation by which a law may miss and still serve to predict
MOST_GAIN = 0.02  # of accuracy without noise by twice the clients, where it has levelled off
LEAST_POINTS = 4  # for three parameters


@dataclass(frozen=True)
class HeldOut:
    """The law without the largest number, against what was measured there.

    Args:
        x: The largest number.
        predicted: The accuracy that the law of the others predicts.
        low: The lower end of the 95 % interval of a measured mean.
        high: Its upper end.
        measured: The mean accuracy there.
    """

    x: float
    predicted: float
    low: float
    high: float
    measured: float

    @property
    def agrees(self) -> bool:
        """Whether the measured mean lies in the interval."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Curve:
    """Accuracies of repeated runs at rising numbers.

    Args:
        x: Numbers of clients, or epsilons, shape (points,), rising.
        accuracies: Shape (points, repeats).
        floor: The accuracy of a guess.
        highest: The largest accuracy that the law may approach: without noise, with its error.
        records: The development records that accuracies are measured on, over their design effect.
        seed: Draws the replicates.
        levelled_off: Whether more clients would hardly raise `highest`.
    """

    x: tuple[float, ...]
    accuracies: tuple[tuple[float, ...], ...]
    floor: float
    highest: float
    records: float
    seed: int
    levelled_off: bool = True

    @cached_property
    def means(self) -> Floats:
        """The mean accuracy at each number, shape (points,)."""
        return np.asarray(self.accuracies, float).mean(axis=1)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each mean: half its own, half that of all points, since repeats are few."""
        table = np.asarray(self.accuracies, float)
        each = table.var(axis=1, ddof=1)
        return np.maximum((each + each.mean()) / 2 / table.shape[1], LEAST_VARIANCE)

    @cached_property
    def law(self) -> Law:
        """The law of all points."""
        return self._fit(len(self.x))

    @cached_property
    def fit_error(self) -> float:
        """The root mean square of how far the means are from the law."""
        return float(np.sqrt(np.mean((self.means - self.law.accuracy(self._x)) ** 2)))

    @cached_property
    def misfit(self) -> float:
        """The squared error of the law over that which repeats explain, about 1 where the law holds."""
        return self._misfit(self.law, len(self.x))

    @cached_property
    def fall(self) -> float:
        """The most standard errors by which a mean differs from the nearest rising curve."""
        rising = isotonic_regression(self.means, weights=1 / self.variances).x
        return float(np.max(np.abs(self.means - rising) / np.sqrt(self.variances)))

    @cached_property
    def held_out(self) -> HeldOut:
        """The prediction of the largest number from the others."""
        points = len(self.x) - 1
        law, last = self._fit(points), self.x[-1]
        laws, noise = self._replicates(law, points, "held-out", shared=False)
        spread = np.sqrt(self.variances[-1] * max(1.0, self._misfit(law, points)) + TOLERANCE**2)
        low, high = np.percentile(laws.accuracy(last) + spread * noise, PERCENTILES)
        predicted = float(law.accuracy(last))
        return HeldOut(last, predicted, float(low), float(high), float(self.means[-1]))

    @property
    def follows_the_law(self) -> bool:
        """Whether the law may go beyond what was measured: it fits, rises, and its bound is level."""
        fits = self.misfit <= MOST_MISFIT or self.fit_error <= SMALL_ERROR
        return self.held_out.agrees and self.fall <= MOST_FALL and fits and self.levelled_off

    @property
    def limit(self) -> float:
        """The largest number that the law answers for."""
        return self.x[-1] * (FARTHEST if self.follows_the_law else 1.0)

    def needed(self, accuracy: float) -> tuple[float, float, float]:
        """The number at which the law reaches an accuracy, and its 95 % interval; infinite where never."""
        every = np.sort(self._laws.inverse(accuracy))
        low, high = (float(every[round(p / 100 * (len(every) - 1))]) for p in PERCENTILES)
        value = float(self.law.inverse(accuracy))
        return value, min(low, value), max(high, value)

    def accuracy(self, x: float) -> tuple[float, float, float]:
        """The accuracy of the law at a number, and its 95 % interval."""
        low, high = np.clip(np.percentile(self._laws.accuracy(x), PERCENTILES), 0.0, 1.0)
        value = float(self.law.accuracy(x))
        return value, min(float(low), value), max(float(high), value)

    # --- replicates

    @cached_property
    def _x(self) -> Floats:
        return np.asarray(self.x, float)

    @cached_property
    def _laws(self) -> Law:
        return self._replicates(self.law, len(self.x), "law", shared=True)[0]

    def _fit(self, points: int) -> Law:
        return fit(self._x[:points], self.means[:points], self.variances[:points], self.floor, self.highest)

    def _misfit(self, law: Law, points: int) -> float:
        error = self.means[:points] - law.accuracy(self._x[:points])
        return float(np.sum(error**2 / self.variances[:points]) / max(points - 3, 1))

    def _replicates(self, law: Law, points: int, purpose: str, *, shared: bool) -> tuple[Law, Floats]:
        """The laws of the replicates, and a standard normal number for each, for a further measurement."""
        stream = Streams(self.seed).stream(f"forecast/{purpose}")
        freedom = points * (len(self.accuracies[0]) - 1)
        expected = law.accuracy(self._x[:points])
        spread = np.sqrt(self.variances[:points] * max(1.0, self._misfit(law, points)))
        scale = np.sqrt(freedom / stream.chisquare(freedom, REPLICATES))
        drawn = expected + spread * scale[:, None] * stream.standard_normal((REPLICATES, points))
        common = stream.standard_normal(REPLICATES)
        if shared:
            drawn += np.sqrt(np.clip(expected * (1 - expected), 0, None) / self.records) * common[:, None]
        x, variances = self._x[:points], self.variances[:points]
        laws = fit_many(x, drawn, variances, self.floor, self.highest, around=law)
        return laws, scale * stream.standard_normal(REPLICATES)


def curve_of(
    points: Sequence[tuple[float, Sequence[float]]],
    *,
    floor: float,
    highest: float,
    records: float,
    seed: int,
    levelled_off: bool = True,
) -> Curve:
    """The curve of points, in the order of their numbers.

    Args:
        points: Each number with the accuracies of its repeats.
        floor: As of `Curve`.
        highest: As of `Curve`.
        records: As of `Curve`.
        seed: As of `Curve`.
        levelled_off: As of `Curve`.
    """
    ordered = sorted(points, key=lambda point: point[0])
    accuracies = tuple(tuple(map(float, values)) for _, values in ordered)
    return Curve(tuple(float(x) for x, _ in ordered), accuracies, floor, highest, records, seed, levelled_off)
