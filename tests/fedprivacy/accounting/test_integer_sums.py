"""The cost of integer sums with Skellam or discrete Gaussian noise, beside exact privacy loss distributions."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats
from scipy.special import logsumexp

from fedprivacy.accounting.epsilon import epsilon, epsilon_pld
from fedprivacy.accounting.integer_sums import (
    DiscreteGaussianSumDpEvent,
    SkellamDpEvent,
    integer_sum_rdp,
    tau,
)
from fedprivacy.errors import UnsupportedEvent

ORDERS = np.array([2.0, 2.5, 3.0, 7.0, 64.0])


def exact_epsilon(log_masses: np.ndarray, move: int, releases: int, delta: float) -> float:
    """The epsilon of integer noise in one dimension, moved by an integer, by dp_accounting's finite distributions."""
    both = [dict(enumerate(log_masses, start)) for start in (0, move)]
    loss = pld.from_two_probability_mass_functions(*both, value_discretization_interval=1e-4)
    return loss.self_compose(releases).get_epsilon_for_delta(delta)


def skellam_masses(variance: float) -> np.ndarray:
    reach = math.ceil(12 * math.sqrt(variance)) + 15
    return stats.skellam(variance / 2, variance / 2).logpmf(np.arange(-reach, reach + 1))


def convolved_masses(variance: float, shares: int) -> np.ndarray:
    reach = math.ceil(9 * math.sqrt(variance)) + 6
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    each = weights / weights.sum()
    total = each
    for _ in range(shares - 1):
        total = np.convolve(total, each)
    return np.log(total[total > 1e-30])


@pytest.mark.parametrize(
    ("mu", "norm", "releases"), [(9.0, 1, 1), (30.0, 3, 1), (400.0, 20, 1), (40.0, 1, 10)]
)
def test_skellam_costs_at_least_the_exact_epsilon_and_little_more(
    mu: float, norm: int, releases: int
) -> None:
    event = dp.SelfComposedDpEvent(SkellamDpEvent(mu, norm**2, 1), releases)
    claim = epsilon(event, 1e-5, "zero-out")
    exact = exact_epsilon(skellam_masses(mu), norm, releases, 1e-5)
    assert claim.accountant == "RDP"
    assert exact <= claim.epsilon <= 1.5 * exact
    doubled = epsilon(event, 1e-5, "replace-one").epsilon
    assert exact_epsilon(skellam_masses(mu), 2 * norm, releases, 1e-5) <= doubled


@pytest.mark.parametrize(
    ("variance", "shares", "norm"), [(0.25, 8, 1), (0.5, 10, 2), (1.0, 4, 1), (4.0, 10, 5)]
)
def test_discrete_gaussians_cost_at_least_the_exact_epsilon(variance: float, shares: int, norm: int) -> None:
    claim = epsilon(DiscreteGaussianSumDpEvent(variance, shares, norm**2, 1), 1e-5, "zero-out").epsilon
    exact = exact_epsilon(convolved_masses(variance, shares), norm, 1, 1e-5)
    assert exact <= claim
    if variance >= 1:
        assert claim <= 1.5 * exact


@pytest.mark.parametrize(("variance", "shares"), [(0.25, 2), (0.25, 9), (0.5, 5), (1.0, 3)])
def test_the_sum_of_discrete_gaussians_differs_from_a_single_one_by_half_of_tau(
    variance: float, shares: int
) -> None:
    reach = math.ceil(9 * math.sqrt(variance)) + 6
    summed = convolved_masses(variance, shares)
    places = np.arange(len(summed)) - len(summed) // 2
    near = np.abs(places) <= min(reach, 6 * math.sqrt(shares * variance))
    single = np.exp(-(places**2) / (2 * shares * variance))
    ratio = summed - np.log(single / single.sum())
    assert np.abs(ratio[near]).max() <= tau(variance, shares) / 2


@pytest.mark.parametrize(("variance", "shares"), [(0.25, 900), (0.25, 1001), (0.25, 30_000), (1.0, 1002)])
def test_tau_of_many_shares_is_a_bound_from_a_thousand_terms(variance: float, shares: int) -> None:
    exact = 10 * math.fsum(math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, shares))
    assert exact * (1 - 1e-12) <= tau(variance, shares) <= 1.01 * exact


def test_a_billion_shares_take_no_memory() -> None:
    tracemalloc.start()
    claim = epsilon(DiscreteGaussianSumDpEvent(4.0, 10**9, 100, 1), 1e-5, "zero-out").epsilon
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert 0 < claim < 0.01


# Computed by the code of the authors of both papers: google-research/federated, distributed_dp/accounting_utils.py,
# at orders 2, 8 and 64. mu, L and d.
SKELLAM_FIGURES = [
    ((50.0, 25, 4), (0.5135, 2.0435, 16.3)),
    ((400.0, 900, 64), (2.25647, 9.02334, 72.1808)),
    ((30.0, 3, 16), (0.1075, 0.4175, 3.31083)),
    ((5.0, 25, 1024), (7.25, 25.25, 167.5)),
]
# sigma^2, shares, L and d. They take D1 = sqrt(d L), and a first bound that is smaller than the one proved here.
GAUSSIAN_FIGURES = [
    ((0.6, 20, 25, 16), (2.5199506, 8.9095716, 67.242905)),
    ((0.7, 50, 64, 64), (2.1087621, 8.1135731, 59.313573)),
    ((0.6, 200, 100, 16), (1.2486044, 4.1514884, 27.484822)),
]


@pytest.mark.parametrize(("arguments", "figures"), SKELLAM_FIGURES)
def test_skellam_costs_what_its_authors_compute(
    arguments: tuple[float, int, int], figures: tuple[float, ...]
) -> None:
    ours = integer_sum_rdp(SkellamDpEvent(*arguments), [2, 8, 64], "zero-out")
    assert ours == pytest.approx(figures, rel=1e-5)


@pytest.mark.parametrize(("arguments", "figures"), GAUSSIAN_FIGURES)
def test_discrete_gaussians_cost_at_least_what_their_authors_compute(
    arguments: tuple[float, int, int, int], figures: tuple[float, ...]
) -> None:
    """The same at order 2, where the bound of roots is the smaller one; 1 % more at most elsewhere."""
    ours = integer_sum_rdp(DiscreteGaussianSumDpEvent(*arguments), [2, 8, 64], "zero-out")
    assert ours[0] == pytest.approx(figures[0], rel=1e-7)
    for mine, theirs in zip(ours[1:], figures[1:], strict=True):
        assert theirs <= mine <= 1.02 * theirs


def divergence(log_masses: np.ndarray, move: int, order: int) -> float:
    """The exact Renyi divergence of integer noise from its shift; it is symmetric."""
    if move == 0:
        return 0.0
    both = order * log_masses[move:] + (1 - order) * log_masses[:-move]
    return float(logsumexp(both) / (order - 1))


@pytest.mark.parametrize("vector", [(1, 0), (1, 1), (2, 2), (3, 1), (5, 5)])
def test_costs_in_two_dimensions_are_at_least_the_exact_divergence(vector: tuple[int, int]) -> None:
    """Coordinates are independent, so that their exact divergences add up."""
    squared = sum(each * each for each in vector)
    cases: list[tuple[dp.DpEvent, np.ndarray]] = [
        (SkellamDpEvent(mu, squared, 2), skellam_masses(mu)) for mu in (1.0, 5.0, 50.0)
    ]
    cases += [
        (DiscreteGaussianSumDpEvent(variance, shares, squared, 2), convolved_masses(variance, shares))
        for variance, shares in ((0.25, 2), (0.3, 4), (1.0, 3))
    ]
    exceeded = 0
    for event, masses in cases:
        for order in (2, 3, 8):
            exact = sum(divergence(masses, each, order) for each in vector)
            (claim,) = integer_sum_rdp(event, [order], "zero-out")
            assert exact <= claim * (1 + 1e-9)
            variance = event.variance * getattr(event, "shares", 1)
            exceeded += exact > 1.002 * order * squared / (2 * variance)
    assert exceeded or max(vector) > 1  # a Gaussian's cost would be too small: the term tau is needed


def test_the_exact_privacy_loss_in_two_dimensions_is_within_the_claim_and_near_it() -> None:
    for event, masses in (
        (SkellamDpEvent(40.0, 32, 2), skellam_masses(40.0)),
        (DiscreteGaussianSumDpEvent(4.0, 10, 32, 2), convolved_masses(4.0, 10)),
    ):
        coordinate = [dict(enumerate(masses, start)) for start in (0, 4)]
        loss = pld.from_two_probability_mass_functions(*coordinate, value_discretization_interval=1e-4)
        exact = loss.self_compose(2).get_epsilon_for_delta(1e-5)  # one for each coordinate
        assert exact <= epsilon(event, 1e-5, "zero-out").epsilon <= 1.3 * exact


def test_formulas_by_hand() -> None:
    """Skellam at D2 = 5, D1 = 10, mu = 50; the discrete Gaussian of a single share is a Gaussian."""
    proved = integer_sum_rdp(SkellamDpEvent(50.0, 25, 4), ORDERS, "zero-out")
    whole = np.array([2, 3, 7, 64])
    assert np.isinf(proved[1])
    assert proved[[0, 2, 3, 4]] == pytest.approx(
        whole * 25 / 100 + np.minimum(((2 * whole - 1) * 25 + 60) / 10000, 30 / 100)
    )
    twice = integer_sum_rdp(SkellamDpEvent(50.0, 25, 4), ORDERS, "replace-one")
    assert twice[0] == pytest.approx(2 * 100 / 100 + min((3 * 100 + 120) / 10000, 60 / 100))
    short = integer_sum_rdp(SkellamDpEvent(50.0, 3, 4), [2.0], "zero-out")  # a short vector has D1 <= D2^2
    assert short == pytest.approx(2 * 3 / 100 + (3 * 3 + 6 * 3) / 10000)
    single = integer_sum_rdp(DiscreteGaussianSumDpEvent(50.0, 1, 25, 4), ORDERS, "zero-out")
    assert single == pytest.approx(ORDERS * 25 / 100)


def test_many_small_steps_cost_what_gaussian_noise_does() -> None:
    z = 2.0
    for event in (
        SkellamDpEvent(z**2 * 1e12, 10**12, 1024),
        DiscreteGaussianSumDpEvent(z**2 * 1e11, 10, 10**12, 1024),
    ):
        costs = integer_sum_rdp(event, [2.0, 8.0], "zero-out")
        assert costs == pytest.approx(np.array([2.0, 8.0]) / (2 * z**2), rel=1e-3)


def test_little_noise_in_a_share_proves_nothing_about_a_sum() -> None:
    event = DiscreteGaussianSumDpEvent(0.2, 100, 1, 1)
    assert np.isinf(integer_sum_rdp(event, ORDERS, "zero-out")).all()


@pytest.mark.parametrize("squared_norm", [0, 4])
@pytest.mark.parametrize("variance", [9.0, 90.0])
@pytest.mark.parametrize("shares", [None, 10])
def test_add_remove_is_refused_whatever_the_vector(
    squared_norm: int, variance: float, shares: int | None
) -> None:
    """Also where all vectors are zero: a client that leaves takes its share of the noise along."""
    event: dp.DpEvent = SkellamDpEvent(variance, squared_norm, 8)
    if shares:
        event = DiscreteGaussianSumDpEvent(variance, shares, squared_norm, 8)
    for released in (event, dp.PoissonSampledDpEvent(0.1, event), dp.SelfComposedDpEvent(event, 3)):
        with pytest.raises(UnsupportedEvent, match="takes its share of the noise along"):
            epsilon(released, 1e-5, "add-remove")


@pytest.mark.parametrize("event", [SkellamDpEvent(90.0, 4, 8), DiscreteGaussianSumDpEvent(9.0, 10, 4, 8)])
def test_what_has_no_account_is_refused_with_the_reason(event: dp.DpEvent) -> None:
    with pytest.raises(UnsupportedEvent, match="takes its share of the noise along"):
        epsilon(event, 1e-5, "add-remove")
    for sampled in (
        dp.PoissonSampledDpEvent(0.1, event),
        dp.SampledWithoutReplacementDpEvent(100, 10, event),
    ):
        with pytest.raises(UnsupportedEvent, match="brings its noise along"):
            epsilon(dp.SelfComposedDpEvent(sampled, 3), 1e-5, "zero-out")
    with pytest.raises(UnsupportedEvent):
        epsilon_pld(event, 1e-5, "zero-out")
    with pytest.raises(UnsupportedEvent):
        epsilon(event, 0.0, "zero-out")


def test_without_noise_or_without_a_vector() -> None:
    for event in (SkellamDpEvent(0.0, 4, 8), DiscreteGaussianSumDpEvent(0.0, 10, 4, 8)):
        assert epsilon(event, 1e-5, "zero-out").epsilon == math.inf
    for event in (SkellamDpEvent(9.0, 0, 8), DiscreteGaussianSumDpEvent(0.25, 10, 0, 8)):
        assert epsilon(event, 1e-5, "zero-out").epsilon == 0
        assert not integer_sum_rdp(event, ORDERS, "replace-one").any()


def test_it_composes_with_gaussian_noise() -> None:
    both = dp.ComposedDpEvent([SkellamDpEvent(4e6, 10**6, 64), dp.GaussianDpEvent(2.0)])
    alone = dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 2)
    assert epsilon(both, 1e-5, "zero-out").epsilon == pytest.approx(
        epsilon(alone, 1e-5, "zero-out").epsilon, rel=0.1
    )
