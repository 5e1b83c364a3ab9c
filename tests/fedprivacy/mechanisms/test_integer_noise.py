"""Draws follow Skellam and discrete Gaussian laws. Fixed seeds; false-alarm rate 1e-6 each."""

from __future__ import annotations

import math
from decimal import getcontext, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from claims.checks import FALSE_ALARM, fits, follows, moments
from scipy import stats

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.exact_sampling import SLACK
from fedprivacy.mechanisms.integer_noise import (
    MOST_VARIANCE,
    DiscreteGaussianLaw,
    Poisson,
    discrete_gaussian,
    skellam,
)
from fedprivacy.randomness.streams import Streams
from fedprivacy.randomness.system import fresh

MEANS = (1e-9, 1e-3, 0.7, 1.0, 3.2, 15.5, 40.0, 999.5, 1e6, 4.4e7, 1e12, MOST_VARIANCE)


@pytest.mark.parametrize("mean", MEANS)
def test_poisson_masses_are_right_to_a_hundredth_of_the_slack(mean: float) -> None:
    """Against 80 digits: the decision in floating point is certain, with a factor of 100 to spare."""
    law, deviation = Poisson(mean), math.sqrt(mean)
    far = np.round(np.linspace(-11, 11, 89) * deviation).astype(np.int64)
    values = np.unique(np.maximum(law.mode + np.concatenate([far, np.arange(40)]), 0))
    with mpmath.workdps(80), localcontext() as context:
        context.prec = 80
        exact = [
            (int(k) - law.mode) * mpmath.log(mpmath.mpf(mean))
            - (mpmath.loggamma(int(k) + 1) - mpmath.loggamma(law.mode + 1))
            for k in values
        ]
        for value, right in list(zip(values, exact, strict=True))[::5]:
            assert abs(mpmath.mpf(str(law.exact_log_ratio(int(value)))) - right) < mpmath.mpf(10) ** -55
    assert getcontext().prec < 80
    exact_chances = np.exp([float(each) for each in exact])
    assert np.abs(np.exp(law.log_ratio(values)) - exact_chances).max() < SLACK / 100


@pytest.mark.parametrize("variance", [0.1, 1.0, 1e6, MOST_VARIANCE])
def test_gaussian_masses_are_right_to_a_hundredth_of_the_slack(variance: float) -> None:
    law = DiscreteGaussianLaw(variance)
    values = np.round(np.linspace(-11, 11, 89) * math.sqrt(variance)).astype(np.int64)
    exact = [-(Fraction(int(value)) ** 2) / (2 * Fraction(variance)) for value in values]
    assert np.abs(np.exp(law.log_ratio(values)) - np.exp([float(each) for each in exact])).max() < SLACK / 100
    assert all(
        abs(Fraction(law.exact_log_ratio(int(value))) - right) <= abs(right) * Fraction(10) ** -26
        for value, right in zip(values, exact, strict=True)
    )


@pytest.mark.parametrize("mean", [1e12, MOST_VARIANCE])
def test_draws_of_large_means_are_normal_but_for_a_millionth(mean: float) -> None:
    draws = Poisson(mean).draw(200_000, Streams(1).stream("poisson")) - math.floor(mean)
    follows(draws / math.sqrt(mean), stats.norm.cdf)


@pytest.mark.parametrize("mean", MEANS[1:-2])
def test_poisson_draws_follow_their_law(mean: float) -> None:
    """In 50 cells of about equal probability; scipy's distribution function is another code."""
    draws = Poisson(mean).draw(200_000, Streams(1).stream("poisson"))
    ends = np.unique(stats.poisson(mean).ppf(np.linspace(0.02, 0.98, 49)))
    below = np.concatenate([[0.0], stats.poisson(mean).cdf(ends), [1.0]])
    fits(np.bincount(np.searchsorted(ends, draws), minlength=len(ends) + 1), np.diff(below))


@pytest.mark.parametrize("variance", [0.05, 1.0, 20.0, 3e3])
def test_skellam_draws_follow_their_law(variance: float) -> None:
    """The masses by scipy's non-central chi-squared distribution."""
    draws, reach = skellam(variance, 200_000, Streams(2).stream("skellam")), math.ceil(7 * variance**0.5) + 6
    law = stats.skellam(variance / 2, variance / 2)
    chances = law.pmf(np.arange(-reach, reach + 1))
    chances[0], chances[-1] = law.cdf(-reach), law.cdf(-reach)
    fits(np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1), chances)
    moments(draws.astype(float), 0.0, variance)


@pytest.mark.exhaustive
def test_the_variance_is_right_to_a_third_of_a_percent() -> None:
    for draw in (skellam, discrete_gaussian):
        moments(draw(40.0, 4_000_000, Streams(6).stream("variance")).astype(float), 0.0, 40.0)


def masses(variance: float, reach: int) -> np.ndarray:
    """Of the discrete Gaussian, from -reach to reach, beyond which next to nothing is."""
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    return weights / weights.sum()


@pytest.mark.parametrize("variance", [0.05, 0.5, 4.0, 300.0])
def test_gaussian_draws_follow_their_law(variance: float) -> None:
    reach = math.ceil(12 * variance**0.5) + 3
    draws = discrete_gaussian(variance, 200_000, Streams(3).stream("gaussian"))
    fits(np.bincount(draws + reach, minlength=2 * reach + 1), masses(variance, reach))


def published(variance: Fraction, stream: np.random.Generator) -> int:
    """A discrete Gaussian draw by Canonne, Kamath and Steinke 2020, algorithms 1 to 3, in fractions."""

    def coin(chance: Fraction) -> bool:
        return int(stream.integers(chance.denominator)) < chance.numerator

    def exponential(gamma: Fraction) -> bool:
        while gamma > 1:
            if not exponential(Fraction(1)):
                return False
            gamma -= 1
        tries = 1
        while coin(gamma / tries):
            tries += 1
        return tries % 2 == 1

    scale = math.isqrt(math.floor(variance)) + 1
    while True:
        unit = int(stream.integers(scale))
        if not exponential(Fraction(unit, scale)):
            continue
        whole = 0
        while exponential(Fraction(1)):
            whole += 1
        size, negative = unit + scale * whole, coin(Fraction(1, 2))
        if negative and size == 0:
            continue
        if exponential((size - variance / scale) ** 2 / (2 * variance)):
            return -size if negative else size


def test_the_published_sampler_draws_the_same() -> None:
    stream = Streams(4).stream("published")
    theirs = np.array([published(Fraction(9, 2), stream) for _ in range(4000)])
    fits(np.bincount(theirs + 40, minlength=81), masses(4.5, 40))
    ours = discrete_gaussian(4.5, 4000, stream)
    ends = np.arange(-4, 5)
    table = [np.bincount(np.searchsorted(ends, draws), minlength=10) for draws in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_no_variance_is_no_noise_and_a_stream_gives_the_same_draws_again() -> None:
    for draw in (skellam, discrete_gaussian):
        assert not draw(0.0, 3, fresh()).any()
        first, second = (draw(7.0, 1000, Streams(5).stream("noise")) for _ in range(2))
        assert np.array_equal(first, second)
        assert not np.array_equal(first, draw(7.0, 1000, fresh()))
        for wrong in (-1.0, 1e-13, 2.0**54, math.nan, math.inf):
            with pytest.raises(InputError, match="must be from 1e-12 to 2"):
                draw(wrong, 3, fresh())
