"""Thresholds of each fold from the others alone, and what they are worth, by simulated coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from fedprivacy.attacks.intervals import difference
from fedprivacy.attacks.metrics import RateAt, measure
from fedprivacy.attacks.roc import Roc
from fedprivacy.attacks.targets import FOLDS, Targets, draw_folds

FALSE_ALARM = 1e-6  # of each test of a coverage, with fixed seeds


def game(stream: np.random.Generator, members: int, others: int, gap: float, digits: int | None = None):
    truth = np.repeat([True, False], [members, others])
    scores = stream.normal(size=members + others) + gap * truth
    if digits is not None:
        scores = np.round(scores, digits)
    return Targets(scores, truth, draw_folds(len(truth), stream))


def balanced_threshold(members: np.ndarray, others: np.ndarray) -> float:
    return Roc.of(members, others).balanced_threshold


def tpr_at(targets: Targets, rate: float) -> RateAt | None:
    return measure(targets).tpr_at_fpr[f"{rate:g}"]


@pytest.mark.parametrize("digits", [None, 0])
def test_the_balanced_threshold_is_the_best_of_all(digits: int | None) -> None:
    targets = game(np.random.default_rng(1), 60, 140, 1.0, digits)
    members, others = targets.scores[targets.members], targets.scores[~targets.members]
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
@pytest.mark.parametrize("fold", range(FOLDS))
def test_poisoning_a_fold_changes_no_threshold_of_its_own(poison: str, fold: int) -> None:
    honest = game(np.random.default_rng(2), 400, 1400, 1.0)
    there = honest.folds == fold
    poisoned = (
        replace(honest, scores=np.where(there, -50 * honest.scores - 7, honest.scores))
        if poison == "scores"
        else replace(honest, members=honest.members ^ there)
    )
    for before, after in (
        (measure(honest).thresholds, measure(poisoned).thresholds),
        *((tpr_at(honest, rate).thresholds, tpr_at(poisoned, rate).thresholds) for rate in (0.1, 0.01)),
    ):
        assert before[fold] == after[fold]
        assert before != after
    # but what it is worth does change
    assert measure(honest).advantage.value > measure(poisoned).advantage.value + 0.05


def test_every_target_is_counted_once_at_the_threshold_of_its_fold() -> None:
    targets = game(np.random.default_rng(3), 200, 300, 1.5)
    measured = measure(targets)
    for thresholds, counts in (
        (measured.thresholds, measured.balanced),
        (measured.tpr_at_fpr["0.1"].thresholds, measured.tpr_at_fpr["0.1"].counts),
    ):
        above = targets.scores > np.array(thresholds)[targets.folds]
        assert (counts.members, counts.nonmembers) == (200, 300)
        assert counts.hits == (above & targets.members).sum()
        assert counts.alarms == (above & ~targets.members).sum()
    gain, accuracy, counts = measured.advantage, measured.balanced_accuracy, measured.balanced
    assert gain.value == pytest.approx(counts.hits / 200 - counts.alarms / 300)
    assert accuracy.value == pytest.approx((1 + gain.value) / 2)
    assert accuracy.low < accuracy.value < accuracy.high


def test_the_threshold_of_a_rate_is_that_of_a_conformal_p_value() -> None:
    """A fold's is the k-th largest of the n non-members in the others, k the whole part of FPR (n + 1)."""
    targets = game(np.random.default_rng(4), 100, 600, 1.0)
    for rate in (0.1, 0.01):
        for fold, threshold in enumerate(tpr_at(targets, rate).thresholds):
            known = np.sort(targets.scores[~targets.members & (targets.folds != fold)])[::-1]
            assert threshold == known[int(rate * (len(known) + 1)) - 1]


@pytest.mark.exhaustive(beyond=1)
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("gap", [0.0, 1.5])
def test_the_advantage_at_thresholds_of_folds_covers_their_mean(gap: float) -> None:
    """Of 100 + 200 targets; at least 94 %, false-alarm rate 1e-6: folds share too little to matter."""
    stream, runs = np.random.default_rng(5), 500
    missed = 0
    for _ in range(runs):
        targets = game(stream, 100, 200, gap)
        measured = measure(targets)
        at = np.array(measured.thresholds)
        members, others = (
            np.bincount(targets.folds[kind], minlength=FOLDS) / kind.sum()
            for kind in (targets.members, ~targets.members)
        )
        true = members @ norm.sf(at - gap) - others @ norm.sf(at)
        missed += not measured.advantage.low <= true <= measured.advantage.high
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.06)


@pytest.mark.parametrize(
    ("others", "rate", "there"),
    [(49, 0.1, False), (51, 0.1, True), (499, 0.01, False), (500, 0.01, True), (4999, 0.001, False)],
)
def test_too_few_nonmembers_have_no_tpr(others: int, rate: float, there: bool) -> None:
    targets = game(np.random.default_rng(6), 100, others, 1.0)
    assert (tpr_at(targets, rate) is not None) == there


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize(("gap", "rate", "others"), [(0.0, 0.01, 500), (2.0, 0.1, 120), (4.0, 0.01, 700)])
def test_the_wanted_fpr_is_not_exceeded_nor_the_tpr_overstated(
    gap: float, rate: float, others: int, digits: int | None
) -> None:
    """On average over 400 games; 5 deviations of the mean."""
    true = norm.sf(norm.isf(rate) - gap)
    if digits is not None:  # scores in steps of .1: the best threshold whose FPR is not above the rate
        threshold = np.ceil((norm.isf(rate) - 0.05) * 10 - 1e-9) / 10
        true = norm.sf(threshold + 0.05 - gap)
    stream, runs = np.random.default_rng(7), 400
    values, rates = [], []
    for _ in range(runs):
        found = tpr_at(game(stream, 100, others, gap, digits), rate)
        assert found is not None
        values.append(found.tpr.value)
        rates.append(found.fpr.value)
    spread = 5 / np.sqrt(runs)
    assert np.mean(rates) <= rate + spread * np.std(rates)
    assert np.mean(values) <= true + spread * np.std(values) + 0.01


def test_the_fpr_at_the_thresholds_has_the_exact_interval() -> None:
    targets = game(np.random.default_rng(9), 100, 400, 1.0)
    found = tpr_at(targets, 0.1)
    assert found is not None
    alarms, others = found.counts.alarms, 400
    assert found.fpr.value == alarms / others
    assert found.fpr.high == pytest.approx(beta.ppf(0.975, alarms + 1, others - alarms))
    assert found.fpr.low == pytest.approx(beta.ppf(0.025, alarms, others - alarms + 1))
