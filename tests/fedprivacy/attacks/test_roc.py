"""ROC curves and the area under them, against scikit-learn, brute force and simulated coverage."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score, roc_curve

from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.roc import Counts, Roc, auc

FALSE_ALARM = 1e-6  # of each test of a coverage, with fixed seeds
Draw = Callable[[np.random.Generator, int], np.ndarray]


def scores(kind: str, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(4)
    members, others = stream.normal(1.0, 2.0, m), stream.normal(size=n)
    if kind == "tied":
        members, others = np.round(members), np.round(others)
    if kind == "constant":
        members, others = np.full(m, 7.0), np.full(n, 7.0)
    return members, others


@pytest.mark.parametrize("kind", ["distinct", "tied", "constant"])
@pytest.mark.parametrize(("m", "n"), [(40, 90), (1, 1), (90, 3)])
def test_curve_and_area_are_those_of_scikit_learn(kind: str, m: int, n: int) -> None:
    members, others = scores(kind, m, n)
    labels, both = np.repeat([1, 0], [m, n]), np.concatenate([members, others])
    roc = Roc.of(members, others)
    found, curve = roc.auc, roc.curve
    assert found == auc(members, others)
    assert found.value == pytest.approx(roc_auc_score(labels, both), abs=1e-12)
    fpr, tpr, _ = roc_curve(labels, both, drop_intermediate=False)
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(found.value, abs=1e-12)
    # Each point of theirs lies on our polygon, and each corner of ours is one of their points.
    theirs = set(zip(fpr, tpr, strict=True))
    assert set(zip(curve.fpr, curve.tpr, strict=True)) <= theirs
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("kind", ["distinct", "tied", "constant"])
def test_each_threshold_counts_the_scores_above_it(kind: str) -> None:
    members, others = scores(kind, 30, 50)
    roc = Roc.of(members, others)
    for threshold in (*roc.thresholds[:-1], *(roc.thresholds[:-1] + 0.01), -99.0, 99.0):
        above = int((members > threshold).sum()), 30, int((others > threshold).sum()), 50
        assert roc.at(threshold) == Counts(*above)
    ranked = [roc.largest_nonmember(rank) for rank in range(1, 51)]
    assert ranked == np.sort(others)[::-1].tolist()


def test_the_area_counts_pairs() -> None:
    members, others = scores("tied", 30, 50)
    pairs = members[:, None] - others[None, :]
    assert auc(members, others).value == pytest.approx(np.mean((pairs > 0) + (pairs == 0) / 2))


def test_a_constant_score_has_one_half_and_a_perfect_one_is_not_certain() -> None:
    constant = auc(np.full(50, 3.0), np.full(250, 3.0))
    assert constant.value == 0.5
    assert constant.low < 0.42 < 0.58 < constant.high
    perfect = auc(np.arange(50.0) + 1000, np.arange(250.0))
    # As sure as 50 members out of 50 are: Wilson's interval for 50 trials.
    assert (perfect.value, perfect.high) == (1.0, pytest.approx(1.0))
    assert perfect.low == pytest.approx(50 / (50 + norm.isf(0.025) ** 2))


CASES: dict[str, tuple[Draw, float]] = {
    "nothing": (lambda s, m: s.normal(size=m), 0.5),
    "passive": (lambda s, m: s.normal(norm.ppf(0.77) * math.sqrt(2), 1, m), 0.77),
    "ascent": (lambda s, m: s.normal(norm.ppf(0.987) * math.sqrt(2), 1, m), 0.987),
    "isolated": (lambda s, m: s.normal(norm.ppf(0.996) * math.sqrt(2), 1, m), 0.996),
    "a fifth outed": (lambda s, m: s.normal(size=m) + 100 * (s.random(m) < 0.2), 0.6),
    "all but 3 % outed": (lambda s, m: s.normal(size=m) + 100 * (s.random(m) < 0.97), 0.985),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("m", "n"), [(50, 250), (250, 50), (10, 10)])
def test_the_interval_covers_the_true_area(case: str, m: int, n: int) -> None:
    """At least 93 % of the time; false-alarm rate 1e-6."""
    draw, true = CASES[case]
    stream, runs = np.random.default_rng(11), 1500
    missed = 0
    for _ in range(runs):
        found = auc(draw(stream, m), stream.normal(size=n))
        missed += not found.low <= true <= found.high
    assert missed <= binom.isf(FALSE_ALARM, runs, 0.07)


def test_a_figure_says_what_its_interval_covers() -> None:
    assert Figure(0.5, 0.4, 0.6).to_json() == {"value": 0.5, "low": 0.4, "high": 0.6, "covers": "targets"}
