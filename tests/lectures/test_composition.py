"""The lectures on post-processing, group privacy and composition, each test named after its statement."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from fedprivacy.accounting.composed import compositions, gaussian_compositions
from fedprivacy.accounting.composition import advanced, basic, group, optimal
from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_epsilon


def test_group_privacy_of_k_people_is_k_epsilon() -> None:
    """And randomised response on k equal bits reaches it: the ratio of all ones is e^(k epsilon)."""
    epsilon, people = 0.5, 6
    truth = 1 / (1 + math.exp(-epsilon))
    ratio = truth**people / (1 - truth) ** people
    assert group(epsilon, 0.0, people) == (pytest.approx(math.log(ratio)), 0.0)


def test_group_privacy_with_delta_is_k_epsilon_and_k_times_e_to_the_k_minus_1_epsilon_delta() -> None:
    found = group(0.5, 1e-6, 6)
    assert found == (pytest.approx(3.0), pytest.approx(6 * math.exp(2.5) * 1e-6))
    # Gaussian noise, for which both are known exactly, keeps the promise.
    mu = 0.2
    epsilon = gaussian_epsilon(1e-6, mu)
    grown, delta = group(epsilon, 1e-6, 6)
    assert gaussian_delta(grown, 6 * mu) <= delta


def test_post_processing_cannot_make_a_release_less_private() -> None:
    """The sum of ten randomised bits tells no more than the bits: at every epsilon a delta not above theirs."""
    truth, bits = 0.7, 10
    epsilon = math.log(truth / (1 - truth))
    for at in (0.0, 0.5 * epsilon, epsilon):
        # One bit differs, the others are known: the sum against the ten answers themselves.
        both = [
            [
                sum(
                    binom.pmf(ones - own, bits - 1, 0.5) * chance
                    for own, chance in ((1, true), (0, 1 - true))
                )
                for ones in range(bits + 1)
            ]
            for true in (truth, 1 - truth)
        ]
        summed = sum(max(0.0, p - math.exp(at) * q) for p, q in zip(*both, strict=True))
        assert summed <= max(0.0, truth - math.exp(at) * (1 - truth)) + 1e-12


def test_basic_composition_of_100_releases_at_a_tenth_is_10() -> None:
    assert basic(0.1, 0.0, 100) == (pytest.approx(10.0), 0.0)


def test_advanced_composition_of_100_releases_at_a_tenth_is_5_85() -> None:
    epsilon, delta = advanced(0.1, 0.0, 100, 1e-5)
    assert epsilon == pytest.approx(0.1 * math.sqrt(200 * math.log(1e5)) + 10 * (math.exp(0.1) - 1))
    assert (round(epsilon, 2), delta) == (5.85, 1e-5)


def test_advanced_composition_of_approximate_releases_adds_k_delta_to_delta_prime() -> None:
    assert advanced(0.1, 1e-8, 100, 1e-5)[1] == pytest.approx(100 * 1e-8 + 1e-5)


def test_optimal_composition_of_100_releases_at_a_tenth_is_4_31() -> None:
    assert round(optimal(0.1, 0.0, 100, 1e-5), 2) == 4.31


def test_the_three_stand_side_by_side_10_and_5_85_and_4_31() -> None:
    found = {row.name: row.epsilon for row in compositions(0.1, 0.0, 100, 1e-5)}
    assert [round(found[name], 2) for name in ("basic", "advanced", "optimal")] == [10.0, 5.85, 4.31]


def test_advanced_composition_grows_with_the_root_of_k_and_basic_with_k() -> None:
    for theorem, power in ((basic, 1.0), (lambda e, d, k: advanced(e, d, k, 1e-5), 0.5)):
        few, many = theorem(1e-4, 0.0, 100)[0], theorem(1e-4, 0.0, 10_000)[0]
        assert math.log(many / few, 100) == pytest.approx(power, abs=0.01)


def test_advanced_composition_is_worse_than_basic_for_few_releases() -> None:
    assert advanced(0.1, 0.0, 10, 1e-5)[0] > basic(0.1, 0.0, 10)[0]


@pytest.mark.parametrize("releases", [4, 100, 10_000])
def test_gaussian_noise_for_t_releases_is_sigma_times_the_root_of_t(releases: int) -> None:
    one = {row.name: row.epsilon for row in gaussian_compositions(0.2, 1, 1e-5)}
    more = gaussian_compositions(0.2 / math.sqrt(releases), releases, 1e-5)
    together = {row.name: row.epsilon for row in more}
    for name in ("Gaussian", "zCDP"):
        assert together[name] == pytest.approx(one[name], rel=1e-9)
