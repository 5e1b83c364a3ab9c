"""ROC curves and the area under them, against scikit-learn, brute force and simulated coverage."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score, roc_curve

from fedprivacy.attacks.combined_scores import choose_score
from fedprivacy.attacks.cross_fitting import cross_fitted
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.metrics import area
from fedprivacy.attacks.roc import Counts, Roc, auc, auc_within, mean_curve
from fedprivacy.attacks.targets import Targets, draw_folds
from fedprivacy.errors import InputError

FALSE_ALARM = 1e-6  # of each test of a coverage, with fixed seeds
Draw = Callable[[np.random.Generator, int], np.ndarray]
Fitted = Callable[[np.random.Generator, float, np.ndarray, np.ndarray], np.ndarray]


FOLDED = ((0, 20, 90), (1, 30, 70), (2, 7, 50))  # number, members and non-members of a fold


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
    found, curve = auc(members, others), roc.curve
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
        point = int((roc.thresholds > threshold).sum())
        assert (roc.hits[point], 30, roc.alarms[point], 50) == above
        assert Counts.above(threshold, members, others) == Counts(*above)


def test_areas_within_folds_count_pairs_of_the_same_fold_alone() -> None:
    """The mean over members of the share of non-members of their fold that they are above."""
    stream = np.random.default_rng(5)
    folds = [(stream.normal(10.0 * k, 1, m), stream.normal(10.0 * k, 1, n)) for k, m, n in FOLDED]
    found = auc_within([*folds, (np.array([99.0]), np.array([]))])  # a fold of one kind counts for nothing
    shares = np.concatenate([(members[:, None] > others).mean(axis=1) for members, others in folds])
    assert found.value == pytest.approx(shares.mean())
    assert found.low < found.value < found.high
    every = auc(*(np.concatenate([fold[kind] for fold in folds]) for kind in (0, 1)))
    assert every.value != pytest.approx(found.value, abs=0.02)  # scores of folds are not comparable
    with pytest.raises(InputError, match="no fold has both"):
        auc_within([(np.array([1.0]), np.array([])), (np.array([]), np.array([1.0]))])


def test_the_mean_curve_has_the_mean_area() -> None:
    stream = np.random.default_rng(6)
    folds = [(np.round(stream.normal(1, 1, m), 1), np.round(stream.normal(size=n), 1)) for _, m, n in FOLDED]
    curve = mean_curve([Roc.of(*fold).curve for fold in folds], [len(members) for members, _ in folds])
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(auc_within(folds).value, abs=1e-12)
    shares = np.array([len(members) for members, _ in folds]) / 57
    for fpr in (0.0, 0.013, 0.2, 0.5, 0.77, 1.0):
        each = [Roc.of(*fold).curve.at(fpr) for fold in folds]
        assert curve.at(fpr) == pytest.approx(shares @ each)
    single = Roc.of(*folds[0]).curve
    assert mean_curve([single, single], [1, 3]) == single


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


@pytest.mark.exhaustive(every=17)
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


def chosen(stream: np.random.Generator, gap: float, members: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Of ten scores, of which the last one tells something."""
    scores = stream.normal(size=(10, len(members)))
    scores[-1] += gap * members
    return choose_score({str(number): score for number, score in enumerate(scores)}, members, folds).scores


def learned(stream: np.random.Generator, gap: float, members: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """By least squares on ten features, of which the first one tells something."""
    table = np.column_stack([np.ones(len(members)), stream.normal(size=(len(members), 10))])
    table[:, 1] += gap * members

    def fit(known: np.ndarray, _: int) -> np.ndarray:
        rows = table[known]
        return table @ np.linalg.solve(rows.T @ rows, rows.T @ members[known])

    return cross_fitted(fit, members, folds)


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(
    ("score", "gap", "runs"),
    [
        *((chosen, 0.0, 100), (learned, 2.0, 40)),
        *((chosen, 0.0, 1000), (learned, 0.0, 1000), (chosen, 2.0, 100), (learned, 2.0, 100)),
    ],
)
def test_the_interval_covers_the_area_of_fitted_scores(score: Fitted, gap: float, runs: int) -> None:
    """At least 93 %, and at most 4 % are above one half by chance; false-alarm rate 1e-3.

    The true area of a strong score is the mean of all runs, whose error is small beside an interval.
    """
    stream, found = np.random.default_rng(12), []
    for _ in range(runs):
        members, folds = stream.permutation(100) % 2 == 0, draw_folds(100, stream)
        found.append(area(Targets(score(stream, gap, members, folds), members, folds)))
    true = 0.5 if gap == 0 else np.mean([figure.value for figure in found])
    missed = sum(not figure.low <= true <= figure.high for figure in found)
    assert missed <= binom.isf(1e-3, len(found), 0.07)
    if gap == 0:
        assert sum(figure.low > 0.5 for figure in found) <= binom.isf(1e-3, len(found), 0.04)


def test_a_figure_says_what_its_interval_covers() -> None:
    assert Figure(0.5, 0.4, 0.6).to_json() == {"value": 0.5, "low": 0.4, "high": 0.6, "covers": "targets"}
