"""Scores chosen or learned without the fold that they judge: against scikit-learn, and without flattery."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fedprivacy.attacks.combined_scores import _standardised, choose_score, clustered, supervised
from fedprivacy.attacks.metrics import area, known_areas, measure
from fedprivacy.attacks.targets import FOLDS, KNOWN_FOLDS, Targets, draw_folds
from fedprivacy.errors import InputError

FALSE_ALARM = 1e-6


def game(seed: int, count: int, gap: float, columns: int = 3):
    stream = np.random.default_rng(seed)
    members = stream.random(count) < 0.5
    features = {f"f{c}": 10.0**c * (stream.normal(size=count) + gap * members) for c in range(columns)}
    return features, members, draw_folds(count, stream)


def test_each_fold_has_the_score_that_is_best_on_the_others() -> None:
    members, folds = np.tile([True, False], 50), np.arange(100) // 2 % FOLDS
    right = members.astype(float)
    candidates = {
        "constant": np.zeros(100),
        "wrong in 4": np.where(folds == 4, -right, right),
        "as good": np.where(folds == 4, -right, right) * 2,
        "good in 4": np.where(folds == 4, right, 0.0),
    }
    chosen = choose_score(candidates, members, folds)
    assert chosen.names == ("wrong in 4",) * 5
    first = {"late": np.where(folds >= 2, right, 0.0), "early": np.where(folds < 2, right, 0.0)}
    both = choose_score(first, members, folds)
    assert (both.names, both.single) == (("late",) * 5, "early")  # the single direction knows two folds
    rows = {**candidates, "right": right}
    assert choose_score(rows, members, folds).names == ("right",) * 4 + ("wrong in 4",)
    # what a fold has decides nothing for itself
    for fold in range(FOLDS):
        poisoned = choose_score(rows, members ^ (folds == fold), folds)
        assert poisoned.names[fold] == choose_score(rows, members, folds).names[fold]


def test_the_scores_of_a_direction_are_those_of_its_choice() -> None:
    features, members, folds = game(4, 200, 0.3)
    by_direction = np.tile(features["f0"], (FOLDS + 1, 1)) + np.arange(FOLDS + 1)[:, None]
    candidates = {**features, "learned": by_direction + 5 * members}
    chosen = choose_score(candidates, members, folds)
    assert chosen.names == ("learned",) * FOLDS
    assert (chosen.scores == candidates["learned"]).all()
    first = choose_score({"f0": features["f0"]}, members, folds)
    assert (first.scores == features["f0"]).all()
    assert first.scores.shape == (FOLDS + 1, 200)


def test_a_score_that_is_not_clearly_better_does_not_take_the_place_of_the_first() -> None:
    """Of three scores that know nothing the first is mostly chosen; not if another one knows."""
    first = []
    for seed in range(30):
        features, members, folds = game(seed, 200, 0.0, columns=3)
        first += [name == "f0" for name in choose_score(features, members, folds).names]
        better = {**features, "knows": features["f0"] + 3.0 * members}
        assert choose_score(better, members, folds).names == ("knows",) * FOLDS
    assert np.mean(first) > 0.6


def test_supervised_scores_are_those_of_models_of_other_folds() -> None:
    features, members, folds = game(1, 400, 0.8)
    scores = supervised(features, members, folds)
    table = np.column_stack(list(features.values()))

    def scored(known: np.ndarray) -> np.ndarray:
        scaled = (table - table[known].mean(axis=0)) / table[known].std(axis=0)
        slope = LogisticRegression(max_iter=1000).fit(scaled[known], members[known]).coef_[0]
        return scaled @ slope / np.linalg.norm(slope)

    at = folds == 3
    assert np.allclose(scores[3, at], scored(~at)[at])
    other = folds == 1
    assert np.allclose(scores[3, other], scored(~at & ~other)[other])  # for thresholds of fold 3
    single = folds >= KNOWN_FOLDS
    assert np.allclose(scores[-1, single], scored(~single)[single])
    assert measure(Targets(scores, members, folds)).auc.value > 0.75
    # what is in a fold teaches its own scores nothing, and all scores that measure others something
    poisoned = supervised(features, members ^ at, folds)
    assert (poisoned[3] == scores[3]).all()
    assert all((poisoned[fold] != scores[fold]).any() for fold in range(FOLDS) if fold != 3)
    assert (supervised(features, members ^ single, folds)[-1] == scores[-1]).all()


def test_a_learned_feature_has_a_model_for_each_direction() -> None:
    """Else the folds of the first direction would be scored with features that saw the fold of another."""
    features, members, folds = game(6, 200, 0.8)
    stream = np.random.default_rng(7)
    learned = {**features, "learned": stream.normal(size=(FOLDS + 1, 200))}
    scores = supervised(learned, members, folds)
    for direction in range(FOLDS + 1):
        fixed = {**features, "learned": learned["learned"][direction]}
        assert (supervised(fixed, members, folds)[direction] == scores[direction]).all()


def test_standardised_columns_have_the_bits_of_scikit_learn() -> None:
    stream = np.random.default_rng(5)
    for count in (2, 7, 64, 320):
        columns = [10.0**c * (stream.normal(size=count) + c) for c in range(-6, 7)]
        constant = [np.zeros(count), np.full(count, 0.1), 1e6 + 1e-12 * stream.normal(size=count)]
        table = np.column_stack([*columns, *constant])
        known = np.arange(count) % 3 != 1
        expected = StandardScaler().fit(table[known]).transform(table)
        assert (_standardised(table, known) == expected).all()


@pytest.mark.exhaustive
def test_supervised_scores_do_not_flatter_the_targets_that_they_were_fitted_on() -> None:
    """60 features of noise, 160 known targets: the model tells those apart, the scores must not."""
    areas, fprs, balanced = [], [], []
    for seed in range(8):
        features, members, folds = game(seed, 200, 0.0, columns=60)
        targets = Targets(supervised(features, members, folds), members, folds)
        areas.append(np.mean([known.value for known in known_areas(targets)]))
        found = measure(targets)
        balanced.append(found.balanced_accuracy.value)
        fprs.append(found.tpr_at_fpr["0.1"].fpr.value)
    # means of 8 with deviations of about .05: 5 deviations of the mean
    assert np.mean(areas) < 0.5 + 5 * 0.05 / np.sqrt(8)
    assert np.mean(balanced) == pytest.approx(0.5, abs=0.05)
    assert np.mean(fprs) == pytest.approx(0.1, abs=0.035)


def test_two_clusters_need_no_membership() -> None:
    features, members, folds = game(2, 600, 3.0)
    scores = clustered(features, "f1")
    assert measure(Targets(scores, members, folds)).auc.value > 0.98
    assert (clustered(features, "f1") == scores).all()
    upside_down = {"loss": -features["f0"], **features}
    assert measure(Targets(clustered(upside_down, "loss"), members, folds)).auc.value < 0.02
    assert (clustered({"x": np.ones(5)}, "x") == 0).all()


@pytest.mark.exhaustive
@pytest.mark.slow
def test_shuffled_memberships_give_one_half() -> None:
    """Whatever the score; each interval misses at most 7 %, false-alarm rate 1e-6."""
    runs, missed = 25, np.zeros(3)
    for seed in range(runs):
        features, members, folds = game(seed, 300, 2.0)
        shuffled = np.random.default_rng(seed).permutation(members)
        found = [
            choose_score(features, shuffled, folds).scores,
            supervised(features, shuffled, folds),
            clustered(features, "f0"),
        ]
        for column, scores in enumerate(found):
            figure = area(Targets(scores, shuffled, folds))
            missed[column] += not figure.low <= 0.5 <= figure.high
    assert (missed <= binom.isf(FALSE_ALARM, runs, 0.07)).all()


def test_wrong_features_are_refused() -> None:
    features, members, folds = game(3, 40, 1.0)
    with pytest.raises(InputError, match="none to choose"):
        choose_score({}, members, folds)
    with pytest.raises(InputError, match="none to learn"):
        supervised({}, members, folds)
    with pytest.raises(InputError, match="bad: 40 of 40 are NaN"):
        supervised({**features, "bad": np.full(40, np.nan)}, members, folds)
    with pytest.raises(InputError, match="one number for each target"):
        supervised({**features, "short": np.zeros(3)}, members, folds)
    with pytest.raises(InputError, match="must be one of f0, f1, f2"):
        clustered(features, "loss")
    with pytest.raises(InputError, match="there are no members"):
        supervised(features, members & (folds == 0), folds)
