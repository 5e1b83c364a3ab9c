"""The law of a learning curve under noise: a logistic function of log x between two levels.

    accuracy(x) = floor + (ceiling - floor) / (1 + (half / x)^slope)

x is the number of clients, or epsilon: both divide the noise on the mean update. Far above `half` this is the
power law ceiling - b x^-slope of learning curves (Hestness et al. 2017); far below it the model guesses,
which a power law alone cannot state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Floats = NDArray[np.float64]

SLOPES = np.geomspace(0.25, 4.0, 21)
BELOW, ABOVE = 8.0, 64.0  # how far `half` may lie outside of the measured numbers
STEPS = 100  # of `half`, evenly spaced in its logarithm
FINER = 4.0  # how much finer a grid is near its center
LEAST_VARIANCE = 1e-8  # of a mean accuracy, so that equal repeats get no infinite weight


@dataclass(frozen=True)
class Law:
    """One curve, or many at once where the fields are arrays of one shape.

    Args:
        floor: The accuracy of a guess.
        ceiling: The accuracy that the curve approaches.
        half: Where half of the way is reached.
        slope: How steep it is in log x.

    >>> law = Law(0.1, 0.9, 100.0, 1.0)
    >>> float(law.accuracy(100.0)), float(law.inverse(0.5)), float(law.inverse(0.95))
    (0.5, 100.0, inf)
    """

    floor: float
    ceiling: float | Floats
    half: float | Floats
    slope: float | Floats

    def accuracy(self, x: float | Floats) -> Floats:
        """The accuracy at x."""
        return np.asarray(self.floor + (self.ceiling - self.floor) * _share(x, self.half, self.slope))

    def inverse(self, accuracy: float) -> Floats:
        """The x at which an accuracy is reached: 0 at the floor and below, infinite where it never is."""
        reached = np.asarray(self.ceiling) - accuracy
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(reached > 0, max(accuracy - self.floor, 0.0) / reached, np.inf)
            return np.asarray(self.half * ratio ** (1.0 / np.asarray(self.slope)))


def fit(x: Floats, means: Floats, variances: Floats, floor: float, highest: float) -> Law:
    """The law of weighted least squares.

    Args:
        x: Where accuracies were measured, shape (points,), rising.
        means: Mean accuracies, shape (points,).
        variances: Of these means, shape (points,).
        floor: The accuracy of a guess.
        highest: The largest ceiling.
    """
    start = fit_many(x, means[None], variances, floor, highest)
    root = np.sqrt(np.maximum(variances, LEAST_VARIANCE))

    def residuals(parameters: Floats) -> Floats:
        ceiling, half, slope = parameters
        return (floor + (ceiling - floor) * _share(x, math.exp(half), slope) - means) / root

    low = [floor, math.log(x[0] / BELOW), SLOPES[0]]
    high = [max(highest, floor + 1e-6), math.log(x[-1] * ABOVE), SLOPES[-1]]
    first = [np.asarray(start.ceiling)[0], math.log(np.asarray(start.half)[0]), np.asarray(start.slope)[0]]
    inside = np.clip(first, np.add(low, 1e-9), np.subtract(high, 1e-9))
    ceiling, half, slope = least_squares(residuals, inside, bounds=(low, high)).x
    return Law(floor, float(ceiling), math.exp(float(half)), float(slope))


def fit_many(
    x: Floats, means: Floats, variances: Floats, floor: float, highest: float, around: Law | None = None
) -> Law:
    """The laws of many curves at the same x, by a search over a grid that gives the same on every machine.

    Args:
        x: As of `fit`.
        means: Shape (curves, points).
        variances: As of `fit`.
        floor: As of `fit`.
        highest: As of `fit`.
        around: A law near which the grid is finer, so that curves near it have laws near it.
    """
    weights = 1.0 / np.maximum(variances, LEAST_VARIANCE)
    halves, slopes = np.geomspace(x[0] / BELOW, x[-1] * ABOVE, STEPS), SLOPES
    if around is not None:
        halves = _finer_near(float(around.half), halves)
        slopes = _finer_near(float(around.slope), slopes)
    half, slope = (grid.ravel() for grid in np.meshgrid(halves, slopes, indexing="ij"))
    shares = _share(x[None], half[:, None], slope[:, None])
    raised = means - floor
    # Given half and slope the ceiling is a linear regression without intercept.
    cross = (raised * weights) @ shares.T
    square = (shares**2) @ weights
    height = np.clip(cross / np.maximum(square, 1e-300), 0.0, max(highest - floor, 0.0))
    best = np.argmin(height * (height * square - 2 * cross), axis=1)
    return Law(floor, floor + height[np.arange(len(means)), best], half[best], slope[best])


def _finer_near(center: float, grid: Floats) -> Floats:
    """A grid between the same ends, finer near its center, which is one of its points."""
    center = float(f"{center:.6g}")  # the last bits of a fit differ between machines
    steps = np.linspace(0.0, 1.0, len(grid) // 2 + 1)[1:]
    shares = np.sinh(FINER * steps) / np.sinh(FINER)
    below, above = (np.log(end / center) * shares for end in (grid[0], grid[-1]))
    return np.asarray(center * np.exp(np.concatenate([below[::-1], [0.0], above])))


def _share(x: float | Floats, half: float | Floats, slope: float | Floats) -> Floats:
    with np.errstate(over="ignore"):
        power = np.asarray(slope) * (np.log(half) - np.log(x))
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(power, 700.0))))
