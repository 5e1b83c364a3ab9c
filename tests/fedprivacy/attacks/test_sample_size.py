"""How many targets figures need, against direct search with scipy's own intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, binomtest, norm

from fedprivacy.attacks.one_run_epsilon import Guesses, lower_bound
from fedprivacy.attacks.sample_size import canaries_needed, members_needed, targets_needed, tells, width
from fedprivacy.attacks.targets import Direction
from fedprivacy.attacks.tpr_interval import tpr_interval


def exact(hits: int, trials: int) -> float:
    ends = binomtest(hits, trials).proportion_ci(0.95, method="exact")
    return float(ends.high - ends.low)


def all_exact(trials: int) -> NDArray[np.float64]:
    """The widths for every number of hits: `binomtest` takes milliseconds for each."""
    hits = np.arange(trials + 1)
    low = np.nan_to_num(beta.ppf(0.025, hits, trials - hits + 1), nan=0.0)
    high = np.nan_to_num(beta.ppf(0.975, hits + 1, trials - hits), nan=1.0)
    return np.asarray(high - low)


@pytest.mark.parametrize(("hits", "trials"), [(0, 5), (3, 7), (7, 7), (50, 104)])
def test_the_width_is_that_of_clopper_and_pearson(hits: int, trials: int) -> None:
    assert width(hits, trials) == pytest.approx(exact(hits, trials))
    assert all_exact(trials)[hits] == pytest.approx(exact(hits, trials))


@pytest.mark.parametrize("widest", [0.5, 0.3, 0.2])
def test_members_needed_is_the_smallest_number_of_whom_every_share_is_known(widest: float) -> None:
    smallest = next(n for n in range(1, 400) if max(all_exact(n)) <= widest)
    assert members_needed(widest) == smallest


@pytest.mark.parametrize("fpr", [0.1, 0.01])
def test_targets_needed_show_a_rate_about_as_narrowly_as_wanted(fpr: float) -> None:
    """At the quantiles of the scores of an attack that finds half of the members, and no member fewer."""
    members, others = targets_needed(fpr)
    quantiles = [(np.arange(number) + 0.5) / number for number in (members, others)]
    scores = norm.ppf(quantiles[0]) + norm.isf(fpr), norm.ppf(quantiles[1])
    none = np.zeros(0)
    low, high = tpr_interval([Direction(*scores, none, none)], fpr)
    assert high - low == pytest.approx(0.2, abs=0.015)
    few, some = targets_needed(fpr, 0.4)
    assert (few, some) == (pytest.approx(members / 4, abs=1), pytest.approx(others / 4, abs=1))
    assert targets_needed(0.001)[1] > targets_needed(0.01)[1]


@pytest.mark.parametrize(("epsilon", "rate"), [(0.0, 1.0), (2.0, 1.0), (0.0, 0.8)])
def test_canaries_needed_is_the_smallest_number_that_proves_more(epsilon: float, rate: float) -> None:
    def bound(canaries: int) -> float:
        guesses = round(0.9 * canaries)
        return lower_bound(Guesses(canaries, guesses, int(rate * guesses + 1e-9)), 1e-5, 1 - 0.01).epsilon

    needed = canaries_needed(epsilon, 1e-5, 0.01, 0.9, rate)
    assert needed == next(number for number in range(2, 1000) if bound(number) > epsilon)


def test_no_number_of_canaries_proves_what_delta_outgrows() -> None:
    assert canaries_needed(8.0, 1e-5, 0.01, 0.9) is None
    assert canaries_needed(0.0, 1e-5, 0.01, 0.9, 0.5) is None  # a coin


def test_an_interval_of_nearly_everything_tells_nothing() -> None:
    assert not tells(0.0, 0.99)
    assert not tells(0.0, 0.51)
    assert tells(0.45, 0.8)
