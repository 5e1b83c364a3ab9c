"""How often a guess at even odds is right: against the trade-off curve, mechanisms, and its print."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from scipy import stats

from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.certainty import LEVELS, level, percent, phrase, right_guesses
from fedprivacy.guarantees.statement import Guarantee

BUDGETS = [
    (0.0, 0.0),
    (0.0, 0.2),
    (0.1, 1e-5),
    (1.0, 0.0),
    (1.0, 1e-5),
    (2.0, 0.05),
    (8.0, 1e-6),
    (30.0, 0.0),
]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_no_test_on_the_trade_off_curve_does_better_and_one_does_as_well(
    epsilon: float, delta: float
) -> None:
    alarms = np.unique(np.concatenate([np.linspace(0, 1, 200_001), np.geomspace(1e-16, 1, 200_001)]))
    misses = np.maximum(
        0.0, np.maximum(1 - delta - math.exp(epsilon) * alarms, math.exp(-epsilon) * (1 - delta - alarms))
    )
    best = float(np.max(1 - (alarms + misses) / 2))
    assert best <= right_guesses(epsilon, delta) + 1e-12
    assert best == pytest.approx(right_guesses(epsilon, delta), abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_randomized_response_reaches_the_bound_and_gaussian_noise_stays_below(epsilon: float) -> None:
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))  # a bit is sent as it is so often
    assert right_guesses(epsilon) == pytest.approx(truth, rel=1e-12)
    for sigma in (0.5, 1.0, 3.0):  # Balle and Wang 2018, Theorem 8, sensitivity 1
        a, b = 1 / (2 * sigma), epsilon * sigma
        delta = float(stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b))
        assert stats.norm.cdf(1 / (2 * sigma)) <= right_guesses(epsilon, delta)


def test_without_a_guarantee_nothing_is_ruled_out() -> None:
    for epsilon, delta in [(None, 0.0), (math.inf, 0.0), (1.0, 1.0), (1.0, math.nan), (math.nan, 0.0)]:
        assert right_guesses(epsilon, delta) == 1.0
    assert right_guesses(1e6) == 1.0
    assert level(1.0, holds=False) == "none"
    assert level(1.0) == "little"


def test_levels_rule_out_what_they_say_and_epsilon_8_is_little() -> None:
    epsilons = [0.0, math.log(1.5) - 1e-9, math.log(3) - 1e-9, math.log(19) - 1e-9, 8.0]
    assert [level(right_guesses(e)) for e in epsilons] == ["strong", "strong", "moderate", "weak", "little"]
    over = [level(right_guesses(e + 2e-9)) for e in epsilons[1:4]]
    assert over == ["moderate", "weak", "little"]
    assert [most for most, _ in LEVELS] == [0.60, 0.75, 0.95]


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.7, 1.0, 2.0, 4.5, 4.6, 8.0, 12.0, 20.0])
def test_a_printed_certainty_is_no_smaller_than_the_true_one(epsilon: float) -> None:
    share = right_guesses(epsilon, 1e-7)
    printed = float(percent(share).removesuffix(" %"))
    assert 100 * share <= printed <= min(100.0, 100 * share + 0.1)
    assert (percent(right_guesses(8.0)), percent(right_guesses(None))) == ("99.97 %", "100 %")


def test_only_a_pure_epsilon_bounds_what_an_attacker_believes() -> None:
    pure = Guarantee(observer="server", epsilon=1.0, delta=0.0, unit="client", adjacency="add-remove")
    assert phrase(pure) == "at most 73.2 % sure"
    assert phrase(pure.model_copy(update={"delta": 1e-5})) == "right in at most 73.2 % of guesses"


def test_examples_in_docstrings_are_true() -> None:
    results = doctest.testmod(certainty)
    assert results.attempted
    assert not results.failed
