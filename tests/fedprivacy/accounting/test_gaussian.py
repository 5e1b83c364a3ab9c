"""What Gaussian noise costs, against the formula in exact arithmetic and dp_accounting."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_epsilon

DELTA = 1e-5


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.448, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_gaussian_epsilon_agrees_with_dp_accounting(mu: float, delta: float) -> None:
    assert gaussian_epsilon(delta, mu) == pytest.approx(
        dp_accounting.get_epsilon_gaussian(1 / mu, delta), rel=1e-7, abs=1e-9
    )


def test_gaussian_delta_is_the_formula_of_balle_and_wang_in_exact_arithmetic() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for mu in (1e-6, 1e-3, 0.5, 3.0, 40.0, 1e4):
            for e in (0.0, 1e-5, 0.1, 2.0, 50.0, 900.0, 5e7):
                m, x = mpmath.mpf(mu), mpmath.mpf(e)
                exact = mpmath.ncdf(-x / m + m / 2) - mpmath.exp(x) * mpmath.ncdf(-x / m - m / 2)
                assert gaussian_delta(e, mu) == pytest.approx(float(exact), rel=1e-8, abs=1e-300), (mu, e)


@given(st.floats(1e-8, 1e8), st.floats(1e-100, 0.999))
def test_gaussian_epsilon_is_rounded_up_and_is_the_least(mu: float, delta: float) -> None:
    least = gaussian_epsilon(delta, mu)
    assert gaussian_delta(least, mu) <= delta * (1 + 1e-9)
    if least > 1e-9:
        assert gaussian_delta(least * (1 - 1e-6), mu) > delta


def test_extreme_gaussians_neither_overflow_nor_come_out_private() -> None:
    assert gaussian_epsilon(DELTA, 0.0) == 0.0
    assert gaussian_epsilon(DELTA, 1e-320) == 0.0
    assert gaussian_epsilon(DELTA, 1e200) == math.inf
    assert gaussian_epsilon(DELTA, math.inf) == math.inf
    assert gaussian_epsilon(1e-300, 1.0) == pytest.approx(37.4, abs=0.5)
    assert gaussian_delta(math.inf, 1.0) == 0.0
    assert gaussian_delta(0.0, 1e6) == 1.0
