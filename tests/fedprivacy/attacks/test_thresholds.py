"""Thresholds from the calibration half alone, and what they are worth on the other, by simulated coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from fedprivacy.attacks.intervals import difference
from fedprivacy.attacks.metrics import RateAt, measure
from fedprivacy.attacks.roc import Roc
from fedprivacy.attacks.targets import Targets, draw_calibration

FALSE_ALARM = 1e-6  # of each test of a coverage, with fixed seeds


def game(stream: np.random.Generator, members: int, others: int, gap: float, digits: int | None = None):
    truth = np.repeat([True, False], [members, others])
    scores = stream.normal(size=members + others) + gap * truth
    if digits is not None:
        scores = np.round(scores, digits)
    return Targets(scores, truth, draw_calibration(len(truth), stream))


def balanced_threshold(members: np.ndarray, others: np.ndarray) -> float:
    return Roc.of(members, others).balanced_threshold


def tpr_at(targets: Targets, rate: float, *, fitted: bool) -> RateAt | None:
    return measure(targets, fitted=fitted).tpr_at_fpr[f"{rate:g}"]


@pytest.mark.parametrize("digits", [None, 0])
def test_the_balanced_threshold_is_the_best_of_all(digits: int | None) -> None:
    targets = game(np.random.default_rng(1), 60, 140, 1.0, digits)
    members, others = (targets.of(member=member, calibration=True) for member in (True, False))
    best = balanced_threshold(members, others)

    def gain(threshold: float) -> float:
        return float((members > threshold).mean() - (others > threshold).mean())

    assert gain(best) == pytest.approx(max(map(gain, np.linspace(-5, 7, 3001))), abs=1e-12)


def test_thresholds_of_hopeless_and_of_huge_scores() -> None:
    assert balanced_threshold(np.array([1.0, 1.0]), np.array([1.0, 1.0])) == 1.0  # nobody is above it
    assert balanced_threshold(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 4.0
    assert balanced_threshold(np.array([1e308]), np.array([-1e308])) == 0.0
    above = np.nextafter(1.0, 2.0)
    assert balanced_threshold(np.array([above]), np.array([1.0])) == 1.0  # no number lies between


@pytest.mark.parametrize("poison", ["scores", "members"])
def test_poisoning_the_evaluation_half_changes_no_threshold(poison: str) -> None:
    honest = game(np.random.default_rng(2), 400, 1400, 1.0)
    rest = ~honest.calibration
    poisoned = (
        replace(honest, scores=np.where(rest, -50 * honest.scores - 7, honest.scores))
        if poison == "scores"
        else replace(honest, members=honest.members ^ rest)
    )
    assert measure(honest).threshold == measure(poisoned).threshold
    for rate in (0.1, 0.01):
        one, other = tpr_at(honest, rate, fitted=False), tpr_at(poisoned, rate, fitted=False)
        assert one is not None
        assert other is not None
        assert one.threshold == other.threshold
    # but what it is worth does change
    assert measure(honest).advantage.value > 0.2 > 0.1 > measure(poisoned).advantage.value


def test_advantage_is_measured_on_the_other_half() -> None:
    targets = game(np.random.default_rng(3), 200, 300, 1.5)
    measured = measure(targets)
    threshold, gain, accuracy = measured.threshold, measured.advantage, measured.balanced_accuracy
    members, others = (targets.of(member=member, calibration=False) for member in (True, False))
    assert gain.value == pytest.approx((members > threshold).mean() - (others > threshold).mean())
    assert accuracy.value == pytest.approx((1 + gain.value) / 2)
    assert accuracy.low < accuracy.value < accuracy.high


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.9, 0.1), (0.98, 0.02), (1.0, 0.0), (0.3, 0.0)])
@pytest.mark.parametrize(("m", "n"), [(30, 80), (20, 20)])
def test_the_interval_of_the_advantage_covers(p: float, q: float, m: int, n: int) -> None:
    """Summed over all outcomes, not simulated: at least 94 % everywhere here."""
    missed = 0.0
    for hits in range(m + 1):
        for alarms in range(n + 1):
            weight = binom.pmf(hits, m, p) * binom.pmf(alarms, n, q)
            if weight > 1e-6:
                found = difference(hits, m, alarms, n)
                assert -1 <= found.low <= found.value <= found.high <= 1
                missed += weight * (not found.low - 1e-12 <= p - q <= found.high + 1e-12)
    assert missed < 0.06


def test_a_fitted_threshold_of_a_hopeless_score_gains_nothing() -> None:
    """The advantage of noise is 0 within its interval as often as it says; false-alarm rate 1e-6."""
    stream, runs = np.random.default_rng(5), 500
    missed = 0
    for _ in range(runs):
        found = measure(game(stream, 100, 200, 0.0)).advantage
        missed += not found.low <= 0 <= found.high
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.06)


@pytest.mark.parametrize(
    ("others", "rate", "there"),
    [(49, 0.1, False), (51, 0.1, True), (499, 0.01, False), (500, 0.01, True), (4999, 0.001, False)],
)
def test_too_few_nonmembers_have_no_tpr(others: int, rate: float, there: bool) -> None:
    targets = game(np.random.default_rng(6), 100, others, 1.0)
    assert (tpr_at(targets, rate, fitted=False) is not None) == there


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize(("gap", "rate", "others"), [(0.0, 0.01, 500), (2.0, 0.1, 120), (4.0, 0.01, 700)])
def test_the_interval_of_the_tpr_covers_the_draw_of_the_threshold(
    gap: float, rate: float, others: int, digits: int | None
) -> None:
    """For fixed scores and for fitted ones, distinct and tied; false-alarm rate 1e-6."""
    true = norm.sf(norm.isf(rate) - gap)
    if digits is not None:  # scores in steps of .1: the best threshold whose FPR is not above the rate
        threshold = np.ceil((norm.isf(rate) - 0.05) * 10 - 1e-9) / 10
        true = norm.sf(threshold + 0.05 - gap)
    stream, runs = np.random.default_rng(7), 600
    missed, values, rates = np.zeros(2), [], []
    for _ in range(runs):
        targets = game(stream, 100, others, gap, digits)
        for column, fitted in enumerate((False, True)):
            found = tpr_at(targets, rate, fitted=fitted)
            assert found is not None
            missed[column] += not found.tpr.low <= true <= found.tpr.high
        values.append(found.tpr.value)
        rates.append(found.fpr.value)
    assert (missed <= binom.isf(FALSE_ALARM, runs, 0.05)).all()
    # The FPR that was asked for is not exceeded on average, nor the TPR overstated.
    spread = 5 / np.sqrt(runs)
    assert np.mean(rates) <= rate + spread * np.std(rates)
    assert np.mean(values) <= true + spread * np.std(values) + 0.01


def test_an_evaluation_half_alone_proves_less() -> None:
    """500 non-members prove a TPR at 1 % FPR of a score fixed before; 250 of a fitted one prove none."""
    targets = game(np.random.default_rng(8), 200, 500, 6.0)
    fixed, fitted = (tpr_at(targets, 0.01, fitted=fitted) for fitted in (False, True))
    assert fixed is not None
    assert fitted is not None
    assert fixed.tpr.low > 0.9
    assert fitted.tpr.low == 0.0
    assert (fixed.threshold, fixed.tpr.value) == (fitted.threshold, fitted.tpr.value)


def test_the_fpr_at_the_threshold_has_the_exact_interval() -> None:
    targets = game(np.random.default_rng(9), 100, 400, 1.0)
    found = tpr_at(targets, 0.1, fitted=False)
    assert found is not None
    others = targets.of(member=False, calibration=False)
    alarms = int((others > found.threshold).sum())
    assert found.fpr.value == alarms / len(others)
    assert found.fpr.high == pytest.approx(beta.ppf(0.975, alarms + 1, len(others) - alarms))
    assert found.fpr.low == pytest.approx(beta.ppf(0.025, alarms, len(others) - alarms + 1))
