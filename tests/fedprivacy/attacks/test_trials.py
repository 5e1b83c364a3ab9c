"""Rates of success of attacks in trials, and their place in the verdict."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from fedprivacy.attacks.trials import success_rate
from fedprivacy.attacks.verdict import ERROR, TrialCase, verdict
from fedprivacy.errors import InputError


def test_the_interval_of_a_rate_is_that_of_clopper_and_pearson_over_all_runs() -> None:
    rate = success_rate([(30, 50), (41, 50)])
    ends = binomtest(71, 100).proportion_ci(0.95, method="exact")
    assert rate.value == 0.71
    assert (rate.low, rate.high) == pytest.approx((ends.low, ends.high))


def test_no_trials_have_no_rate() -> None:
    with pytest.raises(InputError, match="without trials"):
        success_rate([])


def test_a_rate_above_its_bound_refutes_the_guarantee_and_one_within_chance_does_not() -> None:
    """70 of 100 have the exact lower end .6158 at 5 %."""
    assert verdict([TrialCase("picture", 70, 100, 0.62)]).holds
    refuted = verdict([TrialCase("picture", 70, 100, 0.61)])
    assert refuted.holds is False
    assert (
        "picture succeeds in at least 61.58 % of trials, where at most 61.00 % are allowed" in refuted.words
    )
    # Two checks share the error.
    assert verdict([TrialCase("picture", 70, 100, 0.61), TrialCase("other", 0, 100, 0.5)]).holds


def test_a_measured_bound_shares_the_error_with_the_rate() -> None:
    """70 of 100 have the exact lower end .6002 at 2.5 %; the bound is taken where its end has 2.5 % too."""
    ends: list[float] = []

    def allowed_at(error: float) -> float:
        ends.append(error)
        return 0.601

    case = TrialCase("backdoor", 70, 100, 0.5, allowed_at)
    assert verdict([case]).holds
    assert ends == [pytest.approx(ERROR / 2)]
    assert verdict([TrialCase("backdoor", 70, 100, 0.5, lambda error: 0.6)]).holds is False


def test_without_a_guarantee_nothing_is_checked() -> None:
    result = verdict([TrialCase("picture", 100, 100, None)])
    assert result.holds is None
    assert result.unbounded == ("picture",)
    assert result.error == ERROR
