"""Exact draws of Skellam and discrete Gaussian noise on the integers.

Parameters are floats and mean their exact values. The sampler is that of `exact_sampling`; here are the mass
functions, in floating point and to any number of digits.
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.exact_sampling import Integers, LogConcave, Numbers

LEAST_VARIANCE, MOST_VARIANCE = 1e-12, 2.0**52  # up to it, every integer that is drawn is a float
_TERMS = 20  # of Stirling's series
_SMALL = np.array(
    [0.0]
    + [math.lgamma(k + 1) - (k + 0.5) * math.log(k) + k - math.log(2 * math.pi) / 2 for k in range(1, 16)]
)


class Poisson(LogConcave):
    """The Poisson distribution.

    Args:
        mean: From 1e-12 to 2^52.

    Raises:
        InputError: The mean is out of range.
    """

    def __init__(self, mean: float) -> None:
        _check_range("mean", mean)
        super().__init__(math.floor(mean), mean)
        self.mean = mean

    def possible(self, value: int) -> bool:
        """As `LogConcave` has it."""
        return value >= 0

    @cached_property
    def _at_mode(self) -> float:
        return float(self._log_mass(np.array([float(self.mode)]))[0])

    def log_ratio(self, values: Integers) -> Numbers:
        """As `LogConcave` has it; minus infinity below 0."""
        ratios = self._log_mass(np.maximum(values, 0).astype(np.float64)) - self._at_mode
        return np.where(values >= 0, ratios, -np.inf)

    def _log_mass(self, values: Numbers) -> Numbers:
        """log p(k) by the saddle point (Loader 2000), which loses no digits where k is close to the mean."""
        positive = np.maximum(values, 1.0)
        logs = -_stirling_error(positive) - self._deviance(positive) - np.log(2 * math.pi * positive) / 2
        return np.where(values > 0, logs, -self.mean)

    def _deviance(self, values: Numbers) -> Numbers:
        """k log(k/m) + m - k for the mean m."""
        away = values - self.mean
        part = away / (values + self.mean)
        near = np.abs(part) < 0.1
        # log((1 + v)/(1 - v)) = 2 (v + v^3/3 + ...) for v = (k - m)/(k + m): the terms of first order cancel.
        square = np.where(near, part * part, 0.0)
        series = np.zeros_like(values)
        for power in range(19, 1, -2):
            series = series * square + 1.0 / power
        close = away * part + 2 * values * part * square * series
        if near.all():
            return close
        return np.where(near, close, values * np.log(values / self.mean) - away)

    def exact_log_ratio(self, value: int) -> Decimal:
        """As `LogConcave` has it."""
        logarithm = (value - self.mode) * Decimal(self.mean).ln()
        return logarithm - _log_factorial(value) + _log_factorial(self.mode)


class DiscreteGaussianLaw(LogConcave):
    """The discrete Gaussian distribution: p(k) proportional to e^(-k^2 / (2 sigma^2)) on the integers.

    Args:
        variance: sigma^2, from 1e-12 to 2^52; the distribution's own variance is at most that.

    Raises:
        InputError: sigma^2 is out of range.
    """

    def __init__(self, variance: float) -> None:
        _check_range("sigma^2", variance)
        super().__init__(0, variance)

    def log_ratio(self, values: Integers) -> Numbers:
        """As `LogConcave` has it."""
        reals = values.astype(np.float64)
        return reals * reals / (-2.0 * self.variance)

    def exact_log_ratio(self, value: int) -> Decimal:
        """As `LogConcave` has it."""
        return -Decimal(value * value) / (2 * Decimal(self.variance))


def skellam(variance: float, size: int, stream: np.random.Generator) -> Integers:
    """Draws Skellam noise, the difference of two Poisson variables; int64, shape (size,).

    Args:
        variance: Of a draw; 0 draws zeros.
        size: The number of draws.
        stream: The random stream of these draws, and of no others.

    Raises:
        InputError: The variance is neither 0 nor in range.
    """
    if variance == 0:
        return np.zeros(size, dtype=np.int64)
    law = _poisson(variance / 2)
    return law.draw(size, stream) - law.draw(size, stream)


def discrete_gaussian(variance: float, size: int, stream: np.random.Generator) -> Integers:
    """Draws discrete Gaussian noise, int64, shape (size,).

    Args:
        variance: sigma^2; 0 draws zeros.
        size: The number of draws.
        stream: The random stream of these draws, and of no others.

    Raises:
        InputError: sigma^2 is neither 0 nor in range.
    """
    return _discrete_gaussian(variance).draw(size, stream) if variance else np.zeros(size, dtype=np.int64)


# Laws with their tables, which every client draws from.
_poisson = lru_cache(maxsize=8)(Poisson)
_discrete_gaussian = lru_cache(maxsize=8)(DiscreteGaussianLaw)


def _check_range(name: str, value: float) -> None:
    if not LEAST_VARIANCE <= value <= MOST_VARIANCE:
        raise InputError(f"{name} = {value}: must be from {LEAST_VARIANCE:g} to 2^52.")


@lru_cache(maxsize=1)
def _stirling() -> tuple[Fraction, ...]:
    """B_2n / (2n (2n - 1)): of log k! - (k + 1/2) log k + k - log(2 pi)/2, by odd powers of 1/k."""
    bernoulli = [Fraction(1)]
    for m in range(1, 2 * _TERMS + 1):
        bernoulli.append(-sum(math.comb(m + 1, k) * bernoulli[k] for k in range(m)) / Fraction(m + 1))
    return tuple(bernoulli[2 * n] / (2 * n * (2 * n - 1)) for n in range(1, _TERMS + 1))


def _stirling_error(values: Numbers) -> Numbers:
    """log k! less Stirling's formula, for k of at least 1."""
    inverse = 1.0 / values
    square = inverse * inverse
    series = np.zeros_like(values)
    for term in reversed(_stirling()[:7]):
        series = series * square + float(term)
    small = values < len(_SMALL)
    errors = series * inverse
    if small.any():
        errors[small] = _SMALL[values[small].astype(np.int64)]
    return errors


def _log_factorial(value: int) -> Decimal:
    """log k! - log(2 pi)/2, right to the digits of the current context."""
    # The series errs by less than its first missing term, 5e14 / k^41: small enough at a larger integer.
    shifted = max(value, math.ceil(10 ** ((getcontext().prec + 15) / 41)))
    total = (shifted + Decimal("0.5")) * Decimal(shifted).ln() - shifted
    square, series = Decimal(shifted * shifted), Decimal(0)
    for term in reversed(_stirling()):
        series = series / square + Decimal(term.numerator) / term.denominator
    total += series / shifted
    if shifted > value:
        total -= Decimal(math.prod(range(value + 1, shifted + 1))).ln()
    return total
