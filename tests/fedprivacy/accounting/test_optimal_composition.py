"""The optimal composition of randomised response, against fractions and privacy loss distributions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import Accounted, epsilon, epsilon_pld
from fedprivacy.accounting.optimal_composition import PureDpEvent, composed_delta, composed_epsilon
from fedprivacy.errors import UnsupportedEvent


def exact_delta(epsilon: float, odds: Fraction, count: int) -> float:
    """The theorem's sum in fractions; odds = e^epsilon_0 and e^epsilon are taken as they are."""
    grown, total = Fraction(math.exp(epsilon)), Fraction(0)
    for other in range(count + 1):
        ways = math.comb(count, other)
        difference = ways * (odds ** (count - other) - grown * odds**other)
        total += max(Fraction(0), difference)
    return float(total / (1 + odds) ** count)


@pytest.mark.parametrize("count", [1, 3, 40, 300])
@pytest.mark.parametrize("odds", [Fraction(11, 10), Fraction(3)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_delta_is_the_sum_of_the_theorem(count: int, odds: Fraction, share: float) -> None:
    epsilon_0 = math.log(odds)
    found = composed_delta(share * count * epsilon_0, epsilon_0, count)
    assert found == pytest.approx(exact_delta(share * count * epsilon_0, odds, count), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("epsilon_0", [20.0, 25.0, 33.0, 36.7, 100.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_answers_that_are_hardly_ever_false(count: int, epsilon_0: float, delta: float) -> None:
    """1/(1 + e^-36.7) is 1 in floating point: by the probability of a true answer all would be lost."""
    claimed = composed_epsilon(delta, epsilon_0, count)
    assert exact_delta(claimed, Fraction(math.exp(epsilon_0)), count) <= delta * (1 + 1e-12)


def test_a_hundred_answers_at_a_tenth() -> None:
    assert composed_epsilon(1e-5, 0.1, 100) == pytest.approx(4.31, abs=0.005)


@pytest.mark.parametrize(("epsilon_0", "count"), [(1.0, 1), (0.1, 100), (0.5, 10), (2.0, 3), (0.02, 1000)])
def test_it_agrees_with_privacy_loss_distributions(epsilon_0: float, count: int) -> None:
    event = dp.SelfComposedDpEvent(PureDpEvent(epsilon_0), count)
    exact, upper = epsilon(event, 1e-5, "replace-one"), epsilon_pld(event, 1e-5, "replace-one")
    assert exact.accountant == "optimal composition"
    assert exact.epsilon <= upper * (1 + 1e-6)
    assert exact.epsilon == pytest.approx(upper, rel=2e-2)  # the grid of the other rounds up


@pytest.mark.parametrize(("epsilon_0", "count"), [(1.0, 1), (0.3, 50), (0.01, 100_000)])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_epsilon_is_the_least_at_delta(epsilon_0: float, count: int, delta: float) -> None:
    found = composed_epsilon(delta, epsilon_0, count)
    assert composed_delta(found, epsilon_0, count) <= delta
    assert found == 0 or composed_delta(found * (1 - 1e-6), epsilon_0, count) > delta * (1 - 1e-6)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_a_pure_release_costs_the_same_under_every_adjacency(adjacency: str) -> None:
    event = dp.SelfComposedDpEvent(PureDpEvent(0.1), 100)
    assert epsilon(event, 1e-5, adjacency).epsilon == pytest.approx(4.31, abs=0.005)
    assert epsilon(event, 0.0, adjacency) == Accounted(pytest.approx(10.0), "basic composition")
    mixed = dp.ComposedDpEvent([event, PureDpEvent(0.2)])
    assert 4.31 < epsilon(mixed, 1e-5, adjacency).epsilon < 4.6


@pytest.mark.parametrize(
    ("event", "replaced", "added"),
    [
        (dp.LaplaceDpEvent(4.0), 0.5, 0.25),
        (dp.DiscreteLaplaceDpEvent(0.25, 1), 0.5, 0.25),
        (dp.RandomizedResponseDpEvent(0.5, 4), math.log(5), None),  # 5/8 against 1/8
        (dp.GaussianDpEvent(4.0), None, None),
    ],
)
def test_at_delta_zero_the_epsilons_add_up(
    event: dp.DpEvent, replaced: float | None, added: float | None
) -> None:
    for adjacency, one in (("replace-one", replaced), ("add-remove", added)):
        three = dp.SelfComposedDpEvent(event, 3)
        if one is None:
            with pytest.raises(UnsupportedEvent, match=r"delta above 0|use replace-one"):
                epsilon(three, 0.0, adjacency)
        else:
            assert epsilon(three, 0.0, adjacency).epsilon == pytest.approx(3 * one)
