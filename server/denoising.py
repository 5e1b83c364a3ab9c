"""Denoises a mean update before it moves the model: post-processing without privacy cost.

Both estimators know the standard deviation of the noise, which is the plan's, and shrink what may be noise.
They trade variance for bias: less squared error in a round is not always a better model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.scenario.sections import Denoise

Vector = NDArray[np.float64]

DEGREES = 3.0  # of freedom: tails as heavy as a finite variance allows in whole numbers
_LOG_PRECISIONS = np.linspace(-30.0, 4.0, 103)  # beyond: below 1e-14 of the prior, but for the farthest tail


def james_stein(noisy: Vector, deviation: float) -> Vector:
    """The positive-part James-Stein estimate of a mean: the whole vector is shortened by one factor.

    Its expected squared error is below that of `noisy` whatever the mean, from three coordinates on; with
    fewer the vector is returned as it is.

    Args:
        noisy: A mean with independent Gaussian noise, float64, shape (parameters,).
        deviation: The standard deviation of the noise in each coordinate, in the units of `noisy`.

    Source: James and Stein 1961; Baranchik 1964 (positive part).
    """
    length = float(noisy @ noisy)
    if len(noisy) < 3 or deviation == 0 or length == 0:
        return noisy
    return noisy * max(0.0, 1.0 - (len(noisy) - 2) * deviation**2 / length)


def student_t(noisy: Vector, deviation: float) -> Vector:
    """The posterior mean where the coordinates of the true update follow one Student t distribution.

    A t variable is Gaussian with a random precision, and given that each coordinate is weighted with
    signal / (signal + noise). The weight here is the mean of these over the posterior of the precision: small
    coordinates, which are mostly noise, shrink, and large ones are kept. The scale of the distribution is
    fitted to the second moment of `noisy`; where that shows no more than noise, nothing is left.

    Args:
        noisy: A mean with independent Gaussian noise, float64, shape (parameters,).
        deviation: The standard deviation of the noise in each coordinate, in the units of `noisy`.

    Source: after Nasr, Shokri and Houmansadr 2020 (a Student t model of gradients, updates weighted by their
    signal to noise); the weights are those of empirical Bayes (West 1987, scale mixtures), not the paper's.
    """
    if deviation == 0 or not len(noisy):
        return noisy
    # From the plan and the noisy mean alone, never from data, so that this stays post-processing.
    noise = deviation**2
    signal = float(noisy @ noisy) / len(noisy) - noise
    if signal <= 0:
        return np.zeros_like(noisy)
    scale, half = signal * (DEGREES - 2) / DEGREES, DEGREES / 2
    squares, top = noisy**2, np.full(len(noisy), -np.inf)
    # Two passes over the grid, so that memory does not grow with it; the first finds what to subtract.
    terms = [(half * log - half * np.exp(log), scale * np.exp(-log)) for log in _LOG_PRECISIONS]
    for prior, variance in terms:
        np.maximum(top, _log_density(prior, variance + noise, squares), out=top)
    weighted, total = np.zeros_like(noisy), np.zeros_like(noisy)
    for prior, variance in terms:
        share = np.exp(_log_density(prior, variance + noise, squares) - top)
        total += share
        weighted += share * (variance / (variance + noise))
    return noisy * (weighted / total)


def denoised(noisy: Vector, deviation: float, how: Denoise) -> Vector:
    """A noisy mean update as a scenario wants it to move the model.

    Args:
        noisy: Float64, shape (parameters,).
        deviation: The standard deviation of its noise in each coordinate.
        how: `server.denoise`.
    """
    if how == "james-stein":
        return james_stein(noisy, deviation)
    return student_t(noisy, deviation) if how == "student-t" else noisy


def _log_density(prior: float, variance: float, squares: Vector) -> Vector:
    """Of a grid point together with each coordinate, up to a constant."""
    log_density: Vector = prior - 0.5 * np.log(variance) - squares / (2 * variance)
    return log_density
