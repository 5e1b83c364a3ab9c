"""The Renyi divergence of a Poisson sample under replacement, against an integral and against PLD."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy.integrate import quad
from scipy.stats import norm

from fedprivacy.accounting.epsilon import epsilon_pld
from fedprivacy.accounting.renyi import ORDERS, renyi_divergence, renyi_epsilon_at
from fedprivacy.accounting.replaced_sample import replaced_in_sample


@pytest.mark.parametrize(
    ("rate", "noise", "order"),
    [(0.1, 1.0, 2.0), (0.1, 0.3, 3.0), (0.01, 5.0, 1.1), (0.5, 0.7, 5.0), (0.02, 0.9, 8.0)],
)
def test_it_is_the_integral_and_not_below(rate: float, noise: float, order: float) -> None:
    def moment(x: float) -> float:
        above, below = (
            np.logaddexp(
                math.log(1 - rate) + norm.logpdf(x, 0, noise), math.log(rate) + norm.logpdf(x, sign, noise)
            )
            for sign in (1, -1)
        )
        return math.exp(order * above + (1 - order) * below)

    total, _ = quad(
        moment, -1 - 12 * noise, order + 12 * noise, limit=2000, points=[0, 1, order], epsabs=0, epsrel=1e-12
    )
    bound = replaced_in_sample(rate, noise, order)
    assert bound == pytest.approx(math.log(total) / (order - 1), rel=1e-6)
    assert bound >= math.log(total) / (order - 1) - 1e-10


@pytest.mark.parametrize("order", [1.1, 2.0, 64.0 - 1, 1024.0])
def test_it_is_at_most_that_of_everybody(order: float) -> None:
    for rate, noise in ((1e-3, 0.01), (0.5, 0.1), (0.999, 1.0), (1.0, 3.0), (1e-6, 1e6)):
        bound = replaced_in_sample(rate, noise, order)
        assert 0 <= bound <= 2 * order / noise**2


@pytest.mark.parametrize(("rate", "noise", "rounds"), [(0.1, 2.0, 100), (0.01, 1.0, 1000), (0.5, 5.0, 30)])
def test_by_the_best_order_it_is_close_to_the_loss_distribution_and_above(rate, noise, rounds) -> None:
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)), rounds)
    exact = epsilon_pld(event, 1e-5, "replace-one")
    best = min(
        renyi_epsilon_at(order, renyi_divergence(event, order, "replace-one"), 1e-5) for order in ORDERS
    )
    assert exact <= best <= 1.2 * exact
