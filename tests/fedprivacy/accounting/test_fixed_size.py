"""The Renyi curve of samples of fixed size, beside the one of dp_accounting."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.rdp import RdpAccountant
from scipy.special import logsumexp

from fedprivacy.accounting.events import RELATIONS
from fedprivacy.accounting.fixed_size import fixed_size_rdp


@pytest.mark.parametrize("noise", [0.001, 0.3, 2.0, 20.0, 1e4])
@pytest.mark.parametrize("sample", [1, 100, 900])
def test_the_curve_is_that_of_dp_accounting_from_above(noise: float, sample: int) -> None:
    accountant = RdpAccountant(neighboring_relation=RELATIONS["replace-one"])
    accountant.compose(dp.SampledWithoutReplacementDpEvent(1000, sample, dp.GaussianDpEvent(noise)))
    orders = accountant.orders
    found = fixed_size_rdp(sample / 1000, noise, orders)
    # At much noise and large orders rounding is all that is left of differences: there it is added.
    low = orders <= (10 if noise < 100 else 3)
    assert found[low] == pytest.approx(accountant.rdp[low], rel=1e-5 if noise < 100 else 0.01)
    assert (found >= accountant.rdp * (1 - 1e-9)).all()


def test_the_bound_is_above_the_true_divergence_of_a_worst_case() -> None:
    """One of two records is sampled, at 0 and 1 or at 0 and -1: the divergence by quadrature."""
    x = np.linspace(-60, 60, 400_001)
    for noise in (0.7, 3.0):
        to_one, to_other, unchanged = (-((x - at) ** 2) / (2 * noise**2) for at in (1, -1, 0))
        one, other = (np.logaddexp(to, unchanged) - np.log(2) for to in (to_one, to_other))
        scale = np.log((x[1] - x[0]) / (noise * np.sqrt(2 * np.pi)))
        for order in (2.0, 4.0, 7.0):
            true = (logsumexp(order * one + (1 - order) * other) + scale) / (order - 1)
            assert 0 < true <= fixed_size_rdp(0.5, noise / 2, np.array([order]))[0]
