"""Laplace noise on numbers and integers: parameters, intervals, events, and what is refused.

Its distribution, moments, privacy and oracle are among the claims. False-alarm rate of each test of draws: 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims import checks
from dp_accounting import dp_event as dp
from scipy import integrate, stats

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import to_json
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace

ADJACENCIES = ("replace-one", "add-remove", "zero-out")
KINDS = (Laplace, DiscreteLaplace)


@pytest.mark.parametrize("kind", KINDS)
def test_the_adjacency_decides_the_sensitivity(kind: type[Laplace | DiscreteLaplace]) -> None:
    assert [kind.count(0.5, adjacency).scale for adjacency in ADJACENCIES] == [2, 2, 2]
    assert [kind.histogram(0.5, adjacency).scale for adjacency in ADJACENCIES] == [4, 2, 2]


@pytest.mark.parametrize(
    "mechanism", [Laplace(0.3, 2.0), DiscreteLaplace(0.3, 2), DiscreteLaplace(5.0, 1)], ids=repr
)
def test_tails_and_intervals_are_those_of_scipy(mechanism: Laplace | DiscreteLaplace) -> None:
    b = mechanism.scale
    law = stats.laplace(scale=b) if isinstance(mechanism, Laplace) else stats.dlaplace(1 / b)
    for t in (0.0, 0.5, 1.0, 2.5, 7.0, 60.0):
        assert mechanism.tail(t) == pytest.approx(2 * law.sf(t), rel=1e-9)
    assert mechanism.tail(-1.0) == 1.0
    assert mechanism.variance == pytest.approx(law.var(), rel=1e-9)
    for confidence in (0.5, 0.95, 0.999):
        t = mechanism.half_width(confidence)
        assert mechanism.tail(t) <= (1 - confidence) * (1 + 1e-9)
        assert t == 0 or mechanism.tail(t - 1e-6) > 1 - confidence  # and no smaller one would do


@pytest.mark.parametrize(
    "mechanism", [Laplace(0.5, 1.0), DiscreteLaplace(0.5, 1), DiscreteLaplace(3.0, 1)], ids=repr
)
def test_the_largest_error_stays_below_its_bound_as_often_as_it_says(
    mechanism: Laplace | DiscreteLaplace,
) -> None:
    bound, trials = mechanism.largest_error(200, 0.1), 4000
    noise = mechanism.draw(np.zeros((trials, 200), dtype=int), checks.stream("largest"))
    beyond = int((np.abs(noise).max(axis=1) > bound).sum())
    assert stats.binomtest(beyond, trials, 0.1, alternative="greater").pvalue > checks.FALSE_ALARM
    assert beyond > 0.02 * trials  # and is no idle bound


def test_noise_is_independent_from_cell_to_cell_and_keeps_shapes() -> None:
    for kind, zeros in ((Laplace, np.zeros((4000, 6))), (DiscreteLaplace, np.zeros((4000, 6), dtype=int))):
        noise = kind(1.0, 1).draw(zeros, checks.stream("cells"))
        correlations = np.corrcoef(noise.T)[np.triu_indices(6, 1)]
        assert np.abs(correlations).max() < 6 / math.sqrt(4000)
        assert kind(1.0, 1).draw(3, checks.stream("scalar")).shape == ()
        assert kind(1.0, 1).draw(zeros[:0], checks.stream("none")).shape == (0, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_draw_of_many_shares_is_distributed_as_their_sum(kind: type[Laplace | DiscreteLaplace]) -> None:
    mechanism, shares = kind(0.7, 2), 5
    one = mechanism.draw(np.zeros(20_000, dtype=int), checks.stream("one"), shares=shares)
    each = mechanism.draw(np.zeros((20_000, shares), dtype=int), checks.stream("each")).sum(axis=1)
    if kind is Laplace:
        assert stats.ks_2samp(one, each).pvalue > checks.FALSE_ALARM
    else:
        values = np.clip(np.stack([one, each]), -30, 30) + 30
        counts = np.stack([np.bincount(row, minlength=61) for row in values])
        counts = counts[:, counts.min(axis=0) >= 10]
        assert stats.chi2_contingency(counts).pvalue > checks.FALSE_ALARM


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_the_event_costs_epsilon_at_most_and_what_one_number_does_at_least(
    adjacency: str, delta: float
) -> None:
    for mechanism in (Laplace(0.7, 3.0), DiscreteLaplace(0.7, 4), DiscreteLaplace(0.7, 3)):
        event = mechanism.event(adjacency)
        to_json(event)  # a record can hold it
        spent = epsilon(event, delta, adjacency).epsilon
        assert spent <= 0.7 * (1 + 1e-3)
        if isinstance(mechanism, Laplace):  # delta(e) = 1 - exp((e - epsilon)/2)
            assert spent >= 0.7 + 2 * math.log1p(-delta) - 1e-6


def test_a_discrete_count_under_replace_one_is_randomised_response() -> None:
    """With sensitivity 1 the privacy loss is epsilon or -epsilon, so the pure event is exact."""
    assert DiscreteLaplace.count(0.7, "replace-one").event("replace-one") == PureDpEvent(0.7)
    assert DiscreteLaplace.count(0.7, "add-remove").event("add-remove") == dp.DiscreteLaplaceDpEvent(0.7, 1)
    hundred = dp.SelfComposedDpEvent(dp.DiscreteLaplaceDpEvent(0.1, 1), 100)
    pure = dp.SelfComposedDpEvent(PureDpEvent(0.1), 100)
    by_loss = epsilon(hundred, 1e-5, "add-remove").epsilon
    assert by_loss == pytest.approx(epsilon(pure, 1e-5, "add-remove").epsilon, rel=1e-3)
    assert DiscreteLaplace(1.0, 6).event("replace-one") == dp.DiscreteLaplaceDpEvent(1 / 6, 3)
    # Too wide for a discrete event of the accountants: the epsilon alone is stated.
    assert DiscreteLaplace(0.01, 10**6).event("add-remove") == PureDpEvent(0.01)


def test_a_vector_of_the_same_l1_sensitivity_costs_no_more_than_one_number() -> None:
    """Two coordinates that move by 0.6 and 0.4, against one that moves by 1: hockey-stick divergences."""
    x = np.linspace(-12, 13, 2501)
    weight = (x[1] - x[0]) ** 2
    density = stats.laplace.pdf

    for e in (0.0, 0.3, 0.6, 0.9):
        gap = np.outer(density(x), density(x)) - math.exp(e) * np.outer(density(x - 0.6), density(x - 0.4))
        vector = np.maximum(gap, 0).sum() * weight
        number, _ = integrate.quad(
            lambda z, e=e: max(0.0, density(z) - math.exp(e) * density(z - 1)), -40, 40, points=[0, 1]
        )
        assert number == pytest.approx(1 - math.exp((e - 1) / 2), abs=1e-6)
        assert vector <= number + 1e-4
        # The accountant's answer at that delta is this e.
        assert epsilon(Laplace(1.0, 1.0).event("add-remove"), number, "add-remove").epsilon == pytest.approx(
            e, abs=2e-3
        )


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-7, 1e5, math.inf, math.nan])
def test_budgets_out_of_range_are_refused_with_the_range(bad: float) -> None:
    for kind in KINDS:
        with pytest.raises(InputError, match=r"epsilon = .*from 1e-06 to 10000"):
            kind(bad, 1)
    with pytest.raises(InputError, match=r"sensitivity = .*from 1e-100 to 1e\+100"):
        Laplace(1.0, bad if bad in (0.0, -1.0, math.inf) else math.nan)


def test_other_mistakes_are_refused_too() -> None:
    stream = checks.stream("refused")
    for sensitivity in (0, 2.5, 10**10, math.inf, math.nan):
        with pytest.raises(InputError, match="whole number from 1 to"):
            DiscreteLaplace(1.0, sensitivity)  # type: ignore[arg-type]
    for values in ([1.5], [True], [2**63 - 1], ["a"]):
        with pytest.raises(InputError, match="integers from"):
            DiscreteLaplace(1.0, 1).draw(values, stream)
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="finite"):
            Laplace(1.0, 1.0).draw([0.0, value], stream)
    for mechanism in (Laplace(1.0, 1.0), DiscreteLaplace(1.0, 1)):
        for shares in (0, 1.5, math.inf, math.nan):
            with pytest.raises(InputError, match=r"shares = .*: must be a whole number of at least 1"):
                mechanism.draw([1], stream, shares=shares)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="confidence"):
            mechanism.half_width(1.0)
        with pytest.raises(InputError, match="beta"):
            mechanism.largest_error(5, 0.0)
        with pytest.raises(InputError, match="cells"):
            mechanism.largest_error(0, 0.1)
        for error in (0.0, -1.0, 1e-320, math.inf, math.nan):
            with pytest.raises(InputError, match=r"error = .*: must be a finite number of at least 3e-30"):
                mechanism.clients_needed(error)
        assert mechanism.clients_needed(3e-30) <= 1e30
        with pytest.raises(InputError, match="adjacency"):
            mechanism.event("swap")


def test_extreme_budgets_neither_overflow_nor_come_out_without_noise() -> None:
    stream = checks.stream("extreme")
    wide = DiscreteLaplace(1e-6, 10**9)
    told = wide.draw(np.zeros(1000, dtype=int), stream)
    assert np.abs(told).mean() == pytest.approx(wide.scale, rel=0.3)
    assert np.isfinite(wide.variance)
    assert np.isfinite(Laplace(1e-6, 1e100).variance)
    narrow = DiscreteLaplace(1e4, 1)
    assert narrow.variance == 0.0
    assert narrow.half_width(0.95) == 0.0
    assert (narrow.draw(np.arange(5), stream, shares=3) == np.arange(5)).all()
