from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.forecast.law import Law, fit, fit_many

X = np.array([9.0, 18, 36, 72, 144, 287, 574, 1149])
EVEN = np.full(len(X), 1e-4)


@pytest.mark.parametrize(("half", "slope"), [(100.0, 1.2), (600.0, 0.9), (30.0, 2.5)])
def test_a_curve_without_noise_gives_its_law_back(half: float, slope: float) -> None:
    truth = Law(0.1, 0.93, half, slope)
    fitted = fit(X, truth.accuracy(X), EVEN, 0.1, 1.0)
    assert fitted.accuracy(X) == pytest.approx(truth.accuracy(X), abs=1e-4)
    assert float(fitted.inverse(0.7)) == pytest.approx(float(truth.inverse(0.7)), rel=0.01)


def test_the_inverse_is_where_the_accuracy_is_reached() -> None:
    law = Law(0.1, 0.9, 80.0, 1.7)
    for accuracy in (0.2, 0.5, 0.85):
        assert float(law.accuracy(law.inverse(accuracy))) == pytest.approx(accuracy)
    assert float(law.inverse(0.1)) == float(law.inverse(0.05)) == 0.0
    assert np.isinf(law.inverse(0.9))
    assert np.isinf(law.inverse(0.95))


def test_far_above_half_it_is_a_power_law() -> None:
    law = Law(0.1, 0.9, 1.0, 0.7)
    missing = 0.9 - law.accuracy(np.array([1e4, 1e6]))
    assert missing[0] / missing[1] == pytest.approx(100**0.7, rel=0.01)


def test_the_ceiling_stays_below_what_is_reached_without_noise() -> None:
    fitted = fit(X, Law(0.1, 0.95, 400.0, 1.0).accuracy(X), EVEN, 0.1, 0.8)
    assert 0.1 <= float(fitted.ceiling) <= 0.8


def test_many_curves_are_fitted_as_each_alone() -> None:
    truths = [Law(0.5, 0.8, 50.0, 1.0), Law(0.5, 0.9, 300.0, 2.0)]
    means = np.array([law.accuracy(X) for law in truths])
    together = fit_many(X, means, EVEN, 0.5, 1.0)
    for number in range(2):
        alone = fit_many(X, means[number : number + 1], EVEN, 0.5, 1.0)
        assert alone.half == np.asarray(together.half)[number]
        assert alone.accuracy(X) == pytest.approx(means[number], abs=0.01)


def test_a_model_that_only_guesses_reaches_no_target() -> None:
    fitted = fit(X, np.full(len(X), 0.1), EVEN, 0.1, 0.95)
    assert float(fitted.inverse(0.5)) > 4 * X[-1]
