"""Epsilon against published values, exact formulas, other accountants, and the traps of dp_accounting."""

from __future__ import annotations

import math
import warnings

import pytest
from dp_accounting import NeighboringRelation
from dp_accounting import dp_event as dp
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.accounting.epsilon import (
    Accounted,
    epsilon,
    epsilon_pld,
    epsilon_rdp,
)
from fedprivacy.accounting.events import RELATIONS
from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_epsilon
from fedprivacy.errors import InputError, UnsupportedEvent

DELTA = 1e-5


def poisson(noise: float, rate: float = 0.1, rounds: int = 100) -> dp.DpEvent:
    return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)), rounds)


def fixed(noise: float, cohort: int = 100, rounds: int = 100) -> dp.DpEvent:
    release = dp.SampledWithoutReplacementDpEvent(1000, cohort, dp.GaussianDpEvent(noise))
    return dp.SelfComposedDpEvent(release, rounds)


def everybody(noise: float, rounds: int = 100) -> dp.DpEvent:
    return dp.SelfComposedDpEvent(dp.GaussianDpEvent(noise), rounds)


# --- exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 10, 1000])
def test_unsampled_gaussians_are_exact_and_replacing_doubles_the_sensitivity(rounds: int) -> None:
    mu = math.sqrt(rounds) / 7.0
    for adjacency, sensitivity in (("add-remove", 1), ("zero-out", 1), ("replace-one", 2)):
        spent = epsilon(everybody(7.0, rounds), DELTA, adjacency)
        assert spent.accountant == "analytic Gaussian"
        assert spent.epsilon == pytest.approx(gaussian_epsilon(DELTA, sensitivity * mu), rel=1e-12)


def test_gaussians_of_different_noise_compose_by_their_squares() -> None:
    event = dp.ComposedDpEvent([dp.GaussianDpEvent(3), dp.NoOpDpEvent(), everybody(4.0, 5)])
    mu = math.sqrt(1 / 9 + 5 / 16)
    assert epsilon(event, DELTA, "add-remove").epsilon == pytest.approx(gaussian_epsilon(DELTA, mu))


def test_nothing_released_costs_nothing() -> None:
    for adjacency in RELATIONS:
        assert epsilon(dp.NoOpDpEvent(), DELTA, adjacency) == Accounted(0.0, "analytic Gaussian")
        assert epsilon_pld(dp.NoOpDpEvent(), DELTA, adjacency) == 0.0


# --- the reference values of the project ----------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "adjacency", "accountant", "expected"),
    [
        (poisson(3.942), "add-remove", "PLD", 1),
        (poisson(2.248), "add-remove", "PLD", 2),
        (poisson(1.386), "add-remove", "PLD", 4),
        (poisson(0.936), "add-remove", "PLD", 8),
        (poisson(7.458), "replace-one", "PLD", 1),
        (poisson(3.982), "replace-one", "PLD", 2),
        (poisson(2.158), "replace-one", "PLD", 4),
        (poisson(1.219), "replace-one", "PLD", 8),
        (fixed(8.2273), "replace-one", "PLD", 1),
        (fixed(4.7629), "replace-one", "PLD", 2),
        (fixed(2.947), "replace-one", "PLD", 4),
        (fixed(1.9741), "replace-one", "PLD", 8),
        (everybody(37.31), "add-remove", "analytic Gaussian", 1),
        (everybody(19.94), "add-remove", "analytic Gaussian", 2),
        (everybody(10.81), "add-remove", "analytic Gaussian", 4),
        (everybody(6.00), "add-remove", "analytic Gaussian", 8),
        (everybody(12.6, 10), "replace-one", "analytic Gaussian", 2),
    ],
)
def test_reference_epsilons(event: dp.DpEvent, adjacency: str, accountant: str, expected: float) -> None:
    spent = epsilon(event, DELTA, adjacency)
    assert spent.accountant == accountant
    assert spent.epsilon == pytest.approx(expected, rel=1.5e-3)  # the noises above have three or four digits


def test_one_sigma_three_epsilons() -> None:
    assert epsilon(poisson(2.248), DELTA, "add-remove").epsilon == pytest.approx(2.00, abs=5e-3)
    assert epsilon(poisson(2.248), DELTA, "replace-one").epsilon == pytest.approx(3.82, abs=5e-3)
    assert epsilon(everybody(2.248), DELTA, "add-remove").epsilon == pytest.approx(28.2, abs=5e-2)


@pytest.mark.parametrize(("noise", "expected"), [(4.279, 1), (2.423, 2), (1.482, 4), (0.995, 8)])
def test_reference_epsilons_of_renyi(noise: float, expected: float) -> None:
    assert epsilon_rdp(poisson(noise), DELTA, "add-remove") == pytest.approx(expected, rel=3e-3)


# --- independent oracles --------------------------------------------------------------------------


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("noise", "rate", "rounds", "delta"),
    [(2.248, 0.1, 100, 1e-5), (0.936, 0.1, 100, 1e-5), (1.0, 0.01, 1000, 1e-6), (5.0, 0.3, 50, 1e-5)],
)
def test_poisson_agrees_with_the_prv_accountant_of_opacus(
    noise: float, rate: float, rounds: int, delta: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.accountants import PRVAccountant

        oracle = PRVAccountant()
        oracle.history = [(noise, rate, rounds)]
        expected = oracle.get_epsilon(delta=delta)
    assert epsilon(poisson(noise, rate, rounds), delta, "add-remove").epsilon == pytest.approx(
        expected, rel=0.01
    )


@pytest.mark.parametrize(("noise", "rate"), [(0.5, 0.1), (1.0, 0.01), (3.0, 0.5)])
def test_one_poisson_sampled_release_has_a_closed_form(noise: float, rate: float) -> None:
    # Removing: delta(epsilon) = q gaussian_delta(ln(1 + (e^epsilon - 1)/q)) (Balle, Barthe, Gaboardi 2018)
    spent = epsilon(poisson(noise, rate, 1), 1e-5, "add-remove").epsilon
    exact = rate * gaussian_delta(math.log1p(math.expm1(spent) / rate), 1 / noise)
    assert exact <= 1e-5
    below = spent * (1 - 1e-3)
    assert rate * gaussian_delta(math.log1p(math.expm1(below) / rate), 1 / noise) > 1e-5


@pytest.mark.parametrize("adjacency", list(RELATIONS))
def test_loss_distributions_of_unsampled_gaussians_are_the_exact_answer_from_above(adjacency: str) -> None:
    for noise, rounds in ((1.0, 1), (5.0, 10), (30.0, 1000)):
        exact = epsilon(everybody(noise, rounds), DELTA, adjacency).epsilon
        assert exact <= epsilon_pld(everybody(noise, rounds), DELTA, adjacency) <= exact * (1 + 2e-4)
        assert epsilon_rdp(everybody(noise, rounds), DELTA, adjacency) >= exact


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
@pytest.mark.parametrize(("noise", "rate", "rounds"), [(2.0, 0.1, 100), (0.8, 0.02, 300), (4.0, 0.5, 20)])
def test_renyi_costs_more_than_the_loss_distribution(
    noise: float, rate: float, rounds: int, adjacency: str
) -> None:
    event = poisson(noise, rate, rounds)
    assert epsilon_pld(event, DELTA, adjacency) < epsilon_rdp(event, DELTA, adjacency)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (poisson(2.0), "replace-one"),
        (poisson(2.0, rate=0.001, rounds=2000), "add-remove"),
        (dp.ComposedDpEvent([poisson(2.0, rounds=7), poisson(3.0, rate=0.2, rounds=5)]), "zero-out"),
        (dp.ComposedDpEvent([poisson(2.0), dp.LaplaceDpEvent(5.0), dp.GaussianDpEvent(9.0)]), "add-remove"),
        (dp.SelfComposedDpEvent(dp.DiscreteLaplaceDpEvent(0.3, 1), 3), "zero-out"),
        (dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.2, dp.LaplaceDpEvent(2.0)), 9), "add-remove"),
        (
            dp.SelfComposedDpEvent(dp.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 110, 2.0), 50),
            "add-remove",
        ),
        (dp.RandomizedResponseDpEvent(0.3, 4), "replace-one"),
    ],
)
def test_our_composition_is_that_of_pld_accountant_where_it_is_right(
    event: dp.DpEvent, adjacency: str
) -> None:
    theirs = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=5e-5).compose(event)
    assert epsilon_pld(event, DELTA, adjacency) == pytest.approx(theirs.get_epsilon(DELTA), rel=1e-3)


def test_ten_thousand_equal_rounds_are_one_convolution_whichever_way_they_are_written() -> None:
    rounds = dp.ComposedDpEvent([dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(4.0))] * 10_000)
    assert epsilon(rounds, DELTA, "add-remove") == epsilon(poisson(4.0, 0.01, 10_000), DELTA, "add-remove")


def test_many_releases_are_composed_in_blocks_without_losing_any() -> None:
    # 250,000 releases of a nearly certain sample are 250,000 unsampled ones
    noise = 500.0
    blocks = epsilon_pld(poisson(noise, 0.999999, 250_000), DELTA, "add-remove")
    assert blocks == pytest.approx(gaussian_epsilon(DELTA, 500 / noise), rel=1e-2)


# --- traps ----------------------------------------------------------------------------------------


def test_randomized_response_is_counted_as_often_as_it_happened() -> None:
    # dp_accounting's PLDAccountant ignores the count: 0.2007 instead of 9.79
    response = dp.RandomizedResponseDpEvent(2 / (1 + math.exp(0.2)), 2)  # 0.2-DP
    trap = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(dp.SelfComposedDpEvent(response, 100))
    assert trap.get_epsilon(DELTA) == pytest.approx(0.2, abs=1e-3)
    ours = epsilon(dp.SelfComposedDpEvent(response, 100), DELTA, "replace-one")
    assert ours.accountant == "optimal composition"
    # exact: k of 100 answers are true, each true one in favour by 0.2
    p = math.exp(0.2) / (1 + math.exp(0.2))
    losses = [((2 * k - 100) * 0.2, math.comb(100, k) * p**k * (1 - p) ** (100 - k)) for k in range(101)]

    def delta(e: float) -> float:
        return sum(mass * -math.expm1(e - loss) for loss, mass in losses if loss > e)

    assert delta(ours.epsilon) <= DELTA < delta(ours.epsilon * 0.998)
    assert ours.epsilon > 5


def test_the_reference_pair_of_the_randomized_response_trap() -> None:
    response = dp.RandomizedResponseDpEvent(0.9, 2)  # ln(0.55/0.45) = 0.2007
    once = epsilon(response, DELTA, "replace-one").epsilon
    assert once == pytest.approx(0.2007, abs=2e-4)
    hundred = dp.SelfComposedDpEvent(response, 100)
    assert epsilon(hundred, DELTA, "replace-one").epsilon == pytest.approx(9.79, abs=0.02)
    explicit = epsilon(dp.ComposedDpEvent([response] * 100), DELTA, "replace-one")
    assert explicit == epsilon(hundred, DELTA, "replace-one")


def test_noise_over_c_is_doubled_once_under_replace_one_by_every_accountant() -> None:
    release = dp.GaussianDpEvent(2.0)
    assert epsilon(release, DELTA, "replace-one").epsilon == pytest.approx(4.377, abs=1e-3)
    assert epsilon_pld(release, DELTA, "replace-one") == pytest.approx(4.377, abs=2e-3)
    renyi = epsilon_rdp(release, DELTA, "replace-one")
    assert 4.377 < renyi < 5.2  # RdpAccountant alone says 2.166
    assert renyi == pytest.approx(epsilon_rdp(dp.GaussianDpEvent(1.0), DELTA, "add-remove"))


def test_laplace_noise_is_doubled_under_replace_one() -> None:
    for adjacency, pure in (("add-remove", 0.5), ("zero-out", 0.5), ("replace-one", 1.0)):
        assert epsilon(dp.LaplaceDpEvent(2.0), 1e-9, adjacency).epsilon == pytest.approx(pure, rel=2e-3)
        assert epsilon_rdp(dp.LaplaceDpEvent(2.0), 1e-9, adjacency) <= pure * 1.05
        discrete = dp.DiscreteLaplaceDpEvent(0.5, 1)
        assert epsilon(discrete, 1e-9, adjacency).epsilon == pytest.approx(pure, rel=2e-3)


def test_renyi_of_a_composition_written_with_ints_is_not_that_of_its_first_part() -> None:
    parts = [dp.GaussianDpEvent(2), dp.GaussianDpEvent(2)]
    sampled = dp.PoissonSampledDpEvent(0.1, dp.ComposedDpEvent(parts))
    joint = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2 / math.sqrt(2)))
    assert epsilon(sampled, DELTA, "add-remove").accountant == "RDP"
    assert epsilon_rdp(sampled, DELTA, "add-remove") == pytest.approx(epsilon_rdp(joint, DELTA, "add-remove"))


def test_at_a_tiny_delta_the_fft_may_not_make_epsilon_too_small() -> None:
    # A sample of nearly everybody: the exact unsampled epsilon is the truth to 1e-5 of itself.
    exact = gaussian_epsilon(1e-10, 100 / 30)
    sampled = epsilon_pld(poisson(30.0, 1 - 1e-9, 10_000), 1e-10, "add-remove")
    assert exact * (1 - 1e-5) <= sampled <= exact * 1.02
    with pytest.raises(UnsupportedEvent, match="too small"):
        epsilon_pld(poisson(30.0, 1 - 1e-9, 10_000), 1e-13, "add-remove")


def test_out_of_range_of_the_others_sampling_is_not_counted() -> None:
    for event, delta in ((poisson(2.0), 1e-14), (poisson(1e-3), 1e-5)):
        spent = epsilon(event, delta, "replace-one")
        assert spent.accountant == "analytic Gaussian, sampling not counted"
        noise = event.event.event.noise_multiplier
        assert spent.epsilon == epsilon(everybody(noise), delta, "replace-one").epsilon


def test_laplace_with_hardly_any_noise_is_not_given_to_the_loss_distribution() -> None:
    # dp_accounting's distribution for noise 1/3333 has a probability mass of 100
    for noise in (1 / 400, 3e-4):
        spent = epsilon(dp.LaplaceDpEvent(noise), DELTA, "add-remove")
        assert spent.accountant == ("PLD" if noise > 1 / 500 else "basic composition")
        assert spent.epsilon == pytest.approx(1 / noise, rel=1e-3)


def test_an_epsilon_of_just_above_700_is_not_infinite() -> None:
    # dp_accounting divides by e^-716 there, which is hardly a number
    below, above = (epsilon(poisson(noise), DELTA, "replace-one").epsilon for noise in (0.131, 0.128))
    assert below < epsilon(poisson(0.129), DELTA, "replace-one").epsilon < above * 1.1


def test_zero_out_costs_what_add_remove_costs_for_gaussian_sums() -> None:
    assert (
        epsilon(poisson(2.0), DELTA, "zero-out").epsilon == epsilon(poisson(2.0), DELTA, "add-remove").epsilon
    )


def test_certain_sampling_is_no_sampling() -> None:
    for adjacency in RELATIONS:
        assert epsilon(poisson(9.0, rate=1.0), DELTA, adjacency) == epsilon(everybody(9.0), DELTA, adjacency)
    for adjacency in ("replace-one", "zero-out"):
        assert epsilon(fixed(9.0, 1000), DELTA, adjacency) == epsilon(everybody(9.0), DELTA, adjacency)


def test_no_noise_is_no_privacy_whatever_else_there_is() -> None:
    for event in (
        dp.NonPrivateDpEvent(),
        dp.GaussianDpEvent(0.0),
        poisson(0.0, rate=0.001),
        dp.ComposedDpEvent([dp.GaussianDpEvent(5.0), dp.NonPrivateDpEvent(), dp.UnsupportedDpEvent()]),
    ):
        for adjacency in RELATIONS:
            assert epsilon(event, DELTA, adjacency) == Accounted(math.inf, "none")
        assert epsilon_pld(event, DELTA, "add-remove") == epsilon_rdp(event, DELTA, "add-remove") == math.inf


@pytest.mark.parametrize(
    ("event", "adjacency", "remedy"),
    [
        (fixed(9.0), "add-remove", "use replace-one or zero-out adjacency, or Poisson sampling"),
        (fixed(9.0, 1000), "add-remove", "use replace-one"),
        (dp.SampledWithReplacementDpEvent(100, 10, dp.GaussianDpEvent(2.0)), "add-remove", "use replace-one"),
        (dp.SampledWithReplacementDpEvent(100, 10, dp.LaplaceDpEvent(2.0)), "replace-one", "use Poisson"),
        (dp.SampledWithReplacementDpEvent(100, 10**10, dp.GaussianDpEvent(2.0)), "zero-out", "use Poisson"),
        (
            dp.ComposedDpEvent(
                [poisson(2.0), dp.SampledWithReplacementDpEvent(9, 2, dp.GaussianDpEvent(2.0))]
            ),
            "replace-one",
            "beside none but Gaussian",
        ),
        (dp.RandomizedResponseDpEvent(0.5, 2), "add-remove", "use replace-one"),
        (dp.RandomizedResponseDpEvent(0.5, 4), "zero-out", "use replace-one"),
        (dp.SingleEpochTreeAggregationDpEvent(2.0, 8), "replace-one", "use zero-out"),
        (dp.UnsupportedDpEvent(), "replace-one", "no guarantee"),
        (dp.ComposedDpEvent([fixed(9.0), dp.LaplaceDpEvent(9.0)]), "add-remove", "zero-out adjacency"),
        (
            dp.ComposedDpEvent(
                [
                    dp.DiscreteLaplaceDpEvent(1.0, 1),
                    dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(2.0), 2.0, 1.0),
                ]
            ),
            "replace-one",
            "one sampler",
        ),
        (dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(2.0)), "replace-one", "another adjacency"),
        (
            dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(dp.DiscreteLaplaceDpEvent(0.1, 1), 10**9), 9),
            "replace-one",
            "larger delta",
        ),
    ],
)
def test_what_nobody_accounts_for_says_what_to_do(event: dp.DpEvent, adjacency: str, remedy: str) -> None:
    with pytest.raises(UnsupportedEvent, match=remedy):
        epsilon(event, DELTA, adjacency)


def test_trees_and_private_selection_are_accounted_for_by_renyi() -> None:
    tree = epsilon(dp.SingleEpochTreeAggregationDpEvent(4.0, [7]), DELTA, "zero-out")
    assert tree.accountant == "RDP"
    assert tree.epsilon > gaussian_epsilon(DELTA, math.sqrt(3) / 4)  # each record is in 3 nodes
    best = epsilon(dp.RepeatAndSelectDpEvent(everybody(37.31), 10.0, 1.0), DELTA, "add-remove")
    assert best.accountant == "RDP"
    assert best.epsilon > 2


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_delta_must_lie_between_0_and_1(delta: float) -> None:
    with pytest.raises(InputError, match="delta"):
        epsilon(dp.GaussianDpEvent(1.0), delta, "replace-one")


def test_adjacency_must_be_known() -> None:
    with pytest.raises(InputError, match="add-remove"):
        epsilon(dp.GaussianDpEvent(1.0), DELTA, "replace_one")


# --- properties -----------------------------------------------------------------------------------


@pytest.mark.exhaustive
@given(st.floats(0.3, 30.0), st.floats(0.001, 0.9), st.integers(1, 200), st.sampled_from(list(RELATIONS)))
@settings(max_examples=10, deadline=None)
def test_sampling_helps_and_more_noise_costs_less(
    noise: float, rate: float, rounds: int, adjacency: str
) -> None:
    sampled = epsilon(poisson(noise, rate, rounds), DELTA, adjacency).epsilon
    assert sampled <= epsilon(everybody(noise, rounds), DELTA, adjacency).epsilon * 1.001
    assert epsilon(poisson(noise * 1.1, rate, rounds), DELTA, adjacency).epsilon <= sampled
    assert epsilon(poisson(noise, rate, rounds), DELTA * 10, adjacency).epsilon <= sampled
    if adjacency != "replace-one":
        assert sampled <= epsilon(poisson(noise, rate, rounds), DELTA, "replace-one").epsilon * 1.001


LEAVES = st.one_of(
    st.builds(dp.GaussianDpEvent, st.floats(1e-4, 1e7)),
    st.builds(dp.LaplaceDpEvent, st.floats(1e-4, 1e7)),
    st.builds(dp.RandomizedResponseDpEvent, st.floats(1e-9, 1), st.integers(1, 100)),
    st.builds(
        dp.PoissonSampledDpEvent, st.floats(1e-12, 1), st.builds(dp.GaussianDpEvent, st.floats(1e-4, 1e3))
    ),
)


@given(
    st.lists(st.builds(dp.SelfComposedDpEvent, LEAVES, st.integers(0, 10**5)), max_size=3),
    st.floats(1e-9, 0.5),
    st.sampled_from(["replace-one", "zero-out"]),
)
@settings(max_examples=15, deadline=None)
def test_any_stored_event_has_an_answer_that_is_a_number(
    parts: list[dp.DpEvent], delta: float, adjacency: str
) -> None:
    try:
        spent = epsilon(dp.ComposedDpEvent(parts), delta, adjacency)
    except UnsupportedEvent:
        return
    assert spent.epsilon >= 0
