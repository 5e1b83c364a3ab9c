"""The composition theorems: their formulas, their order, and their truth on the mechanisms that are worst."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom, norm

from fedprivacy.accounting.composition import (
    MAX_EPSILON,
    POST_PROCESSING,
    advanced,
    basic,
    gaussian_group,
    group,
    left_over,
    optimal,
    zcdp_epsilon,
)
from fedprivacy.accounting.optimal_composition import composed_delta, composed_epsilon
from fedprivacy.errors import InputError


def worst_delta(epsilon: float, delta: float, count: int, at: float) -> float:
    """The divergence at `at` of k answers that give all away with probability delta, and else randomise."""
    kept = (1 - delta) ** count
    truth = 1 / (1 + math.exp(-epsilon))
    sums = 0.0
    for true in range(count + 1):
        first, second = binom.pmf(true, count, truth), binom.pmf(true, count, 1 - truth)
        sums += max(0.0, first - math.exp(at) * second)
    return 1 - kept + kept * sums


@pytest.mark.parametrize(
    ("epsilon", "delta", "count", "total"),
    [(0.1, 0.0, 100, 1e-5), (0.1, 1e-8, 100, 1e-5), (0.5, 1e-4, 20, 0.01), (1.0, 1e-3, 5, 0.1)],
)
def test_no_theorem_is_below_the_worst_mechanism(
    epsilon: float, delta: float, count: int, total: float
) -> None:
    slack = total - count * delta
    proved = [basic(epsilon, delta, count), advanced(epsilon, delta, count, slack),
              (optimal(epsilon, delta, count, total), total)]  # fmt: skip
    for at, promised in proved:
        assert promised <= total * (1 + 1e-12)
        assert worst_delta(epsilon, delta, count, at) <= promised * (1 + 1e-9) + 1e-15
    least = proved[-1][0]
    assert worst_delta(epsilon, delta, count, least * (1 - 1e-5)) > total * (1 - 1e-9)  # it is exact


def test_the_deltas_of_releases_leave_the_rest_to_the_theorem() -> None:
    left = left_over(0.1, 1e-7, 50, 1e-5)
    assert 1 - (1 - 1e-7) ** 50 * (1 - left) == pytest.approx(1e-5, rel=1e-9)
    assert left_over(0.1, 0.0, 50, 1e-5) == 1e-5
    assert optimal(0.1, 1e-7, 50, 1e-5) == composed_epsilon(left, 0.1, 50)
    with pytest.raises(InputError, match=r"make 5e-06 together, and leave nothing of 4e-06"):
        left_over(0.1, 1e-7, 50, 4e-6)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_group_by_steps_of_one_person(size: int) -> None:
    """P(S) <= e^eps P'(S) + delta, from person to person: delta (1 + e^eps + ...) is at most the theorem's."""
    epsilon, delta = 0.3, 1e-6
    steps = sum(delta * math.exp(i * epsilon) for i in range(size))
    grown, promised = group(epsilon, delta, size)
    assert grown == pytest.approx(size * epsilon)
    assert promised == pytest.approx(size * delta * math.exp((size - 1) * epsilon))
    assert promised >= steps * (1 - 1e-12)
    if size == 1:
        assert (grown, promised) == (epsilon, pytest.approx(delta))


def test_a_group_too_large_is_promised_nothing() -> None:
    assert group(1.0, 1e-5, 1000) == (1000.0, 1.0)
    assert group(1.0, 0.0, 1000) == (1000.0, 0.0)


@pytest.mark.parametrize("mu", [0.05, 0.1, 1.0])
def test_a_group_under_gaussian_noise_is_one_person_of_so_many_times_the_weight(mu: float) -> None:
    size, delta = 3, 1e-5
    found, m = gaussian_group(mu, delta, size), 3 * mu
    exact = norm.cdf(m / 2 - found / m) - math.exp(found) * norm.cdf(-m / 2 - found / m)
    assert exact == pytest.approx(delta, rel=1e-6)
    # The general theorem is above it, at the delta that it needs.
    general, general_delta = group(gaussian_group(mu, delta, 1), delta, size)
    assert delta < general_delta
    assert gaussian_group(mu, general_delta, size) < general


def test_zcdp_of_gaussian_noise_is_above_the_exact_answer() -> None:
    for mu in (0.1, 1.0, 10.0):
        exact = gaussian_group(mu, 1e-5, 1)
        assert exact < zcdp_epsilon(mu**2 / 2, 1e-5) < 1.5 * exact


def test_post_processing_is_a_statement() -> None:
    assert "costs nothing" in POST_PROCESSING


def test_optimal_composition_of_one_release_uses_the_spare_delta() -> None:
    assert optimal(1.0, 0.0, 1, 1e-5) < 1.0
    assert composed_delta(optimal(1.0, 0.0, 1, 1e-5), 1.0, 1) <= 1e-5


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: basic(0.0, 0.0, 3), r"epsilon = 0\.0: must be from"),
        (lambda: basic(MAX_EPSILON * 2, 0.0, 3), "epsilon = 1000"),
        (lambda: basic(1.0, 1.0, 3), r"delta = 1\.0"),
        (lambda: basic(1.0, 0.0, 0), "releases = 0"),
        (lambda: basic(1.0, 0.0, 10**7), "from 1 to 1000000"),
        (lambda: advanced(1.0, 0.0, 3, 0.0), r"delta = 0\.0"),
        (lambda: optimal(1.0, 0.0, 3, 1.5), r"delta = 1\.5"),
        (lambda: group(1.0, 0.0, 0), "a group = 0"),
        (lambda: gaussian_group(1.0, 1e-5, 0), "a group = 0"),
        (lambda: gaussian_group(0.0, 1e-5, 1), r"mu = 0\.0: the noise must be"),
        (lambda: zcdp_epsilon(0.5, 0.0), r"delta = 0\.0"),
    ],
)
def test_what_is_out_of_range_is_refused(asked, message: str) -> None:
    with pytest.raises(InputError, match=message):
        asked()
