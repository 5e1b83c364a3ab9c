"""Adaptive clipping: its noise, its claim and its trajectory (Andrew et al. 2021).

False-alarm rate of each statistical check: 1e-6, with fixed seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.gaussian import Gaussian


def make(norm: float = 0.1, noise: float = 1.0, quantile: float = 0.5, rate: float = 0.2, count: float = 5.0):
    return AdaptiveGaussian(norm, noise, quantile, rate, count)


@pytest.mark.parametrize(("z", "sigma"), [(1.0, 5.0), (4.0, 2.5), (20.0, 36.0)])
def test_update_and_bit_together_cost_what_is_claimed(z: float, sigma: float) -> None:
    """The Mahalanobis length of the worst difference, brute force over bits and update lengths."""
    mechanism = make(norm=3.0, noise=z, count=sigma)
    assert mechanism.event() == Gaussian(3.0, z).event()
    bits = (-0.5, 0.5)
    for parts, zeroed in (((-3.0, 3.0), False), ((0.0, 3.0), True)):
        lengths = [
            math.hypot((one - other) / mechanism.standard_deviation, (bit - against) / sigma)
            for one in parts
            for other in parts
            for bit in bits
            for against in ((0.0,) if zeroed else bits)
        ]
        assert max(lengths) == pytest.approx((1.0 if zeroed else 2.0) / z, rel=1e-12)
    # An uncentred bit would cost more than is claimed where a client's part is zeroed.
    assert math.hypot(1 / mechanism.update_noise, 1 / sigma) > 1.001 / z


def test_a_twentieth_of_a_hundred_clients_costs_half_a_percent_of_noise() -> None:
    assert make(noise=1.0, count=5.0).update_noise == pytest.approx(1 / math.sqrt(1 - 0.01), rel=1e-12)


def test_each_part_has_its_own_noise() -> None:
    mechanism = make(norm=2.0, noise=3.0, count=4.0)
    draws = np.array([mechanism.draw(3, np.random.default_rng(seed)) for seed in range(4000)])
    for column, deviation in zip(
        draws.T, (mechanism.update_noise * 2, mechanism.update_noise * 2, 4.0), strict=True
    ):
        assert stats.kstest(column, "norm", args=(0, deviation)).pvalue > 1e-6
    assert mechanism.update_noise > 3.0


def test_no_room_for_the_count_is_told() -> None:
    for count in (1.0, 2.0, 2.0000001):
        with pytest.raises(InputError, match=r"clipping_count_noise.*above half"):
            _ = make(noise=4.0, count=count).update_noise
    assert make(noise=4.0, count=2.01).update_noise > 4.0


def test_the_norm_rises_to_norms_that_are_all_one_and_stays_there() -> None:
    """Norms 1, C from 0.1, quantile 1/2, rate 0.2, no noise: up by e^0.1 a round to 1, then about it.

    With the feedback inverted C falls to 0.1 e^-4 = 0.0018 in 40 rounds, as Flower 1.41 has it.
    """
    mechanism, norms, seen = make(), np.ones(100), [0.1]
    for _ in range(40):
        bits = mechanism.bits(norms, mechanism.clipping_norm).sum()
        mechanism = mechanism.after(float(bits), 100.0)
        seen.append(mechanism.clipping_norm)
    rising = [0.1 * math.exp(0.1 * number) for number in range(25)]
    assert np.allclose(seen[:25], rising, rtol=1e-12)
    assert seen[23] < 1 < seen[24]
    assert all(0.9 < norm < 1.12 for norm in seen[24:])
    assert 0.1 * math.exp(-0.1 * 40) == pytest.approx(0.0018, abs=5e-5)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_the_norm_settles_at_the_quantile(quantile: float) -> None:
    norms = np.random.default_rng(1).lognormal(0.0, 0.7, 2000)
    mechanism = make(quantile=quantile, rate=0.2)
    for _ in range(300):
        mechanism = mechanism.after(float(mechanism.bits(norms, mechanism.clipping_norm).sum()), 2000.0)
    assert mechanism.clipping_norm == pytest.approx(np.quantile(norms, quantile), rel=0.01)


def test_the_norm_keeps_within_what_scenarios_have() -> None:
    assert make().after(1e300, 1.0).clipping_norm >= 1e-9
    assert make().after(-1e300, 1.0).clipping_norm <= 1e9


def proved(claimed: AdaptiveGaussian, update: float, count: float) -> float:
    """The epsilon that 20,000 draws of each of two worst-case neighbours prove at delta = 1e-3.

    One client's update is C one way with the bit -1/2, or C the other way with 1/2; the score is the likelihood
    ratio of update and bit under the noise as it is drawn.

    Args:
        claimed: The mechanism.
        update: What its noise on updates is multiplied by, to break it.
        count: What its noise on the bits is multiplied by.
    """
    spreads = np.array([claimed.standard_deviation * update, claimed.count_noise * count])
    found = []
    for number, truth in enumerate(([claimed.clipping_norm, -0.5], [-claimed.clipping_norm, 0.5])):
        drawn = [claimed.draw(2, np.random.default_rng([number, seed])) for seed in range(20_000)]
        seen = np.array(truth) + np.array(drawn) * [update, count]
        found.append(seen @ (np.array([claimed.clipping_norm, -0.5]) / spreads**2))
    return gaussian_bound(found[0], found[1], 1e-3, 0.999).epsilon


@pytest.mark.exhaustive
def test_an_audit_of_update_and_bit_keeps_the_claim_and_has_teeth() -> None:
    mechanism = make(norm=2.0, noise=1.2, count=0.8)
    claimed = gaussian_epsilon(1e-3, mechanism.mu("replace-one"))
    assert 0.9 * claimed <= proved(mechanism, 1.0, 1.0) <= claimed
    # The bit not charged for: noise z on the update, as with a norm that stays.
    assert proved(mechanism, mechanism.noise_multiplier / mechanism.update_noise, 1.0) > claimed
    assert proved(mechanism, 1.0, 0.5) > claimed
