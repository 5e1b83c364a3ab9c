"""Scores fitted or chosen on the calibration half: against scikit-learn, and without flattering themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from fedprivacy.attacks.combined_scores import choose_score, clustered, supervised
from fedprivacy.attacks.metrics import measure
from fedprivacy.attacks.targets import Targets, draw_calibration
from fedprivacy.errors import InputError

FALSE_ALARM = 1e-6


def game(seed: int, count: int, gap: float, columns: int = 3):
    stream = np.random.default_rng(seed)
    members = stream.random(count) < 0.5
    features = {f"f{c}": 10.0**c * (stream.normal(size=count) + gap * members) for c in range(columns)}
    return features, members, draw_calibration(count, stream)


def test_the_score_is_chosen_on_the_calibration_half() -> None:
    members = np.tile([True, False], 50)
    half = np.arange(100) < 50
    right = members.astype(float)
    candidates = {
        "constant": np.zeros(100),
        "good there": np.where(half, right, -right),
        "good here": np.where(half, -right, right),
        "as good": np.where(half, right, -right) * 2,
    }
    assert choose_score(candidates, members, half) == "good there"
    assert choose_score(candidates, members ^ ~half, half) == "good there"
    assert choose_score(candidates, members, ~half) == "good here"


def test_a_score_that_is_not_clearly_better_does_not_take_the_place_of_the_first() -> None:
    """Of three scores that know nothing the first is mostly chosen; not if another one knows."""
    first = []
    for seed in range(60):
        features, members, half = game(seed, 200, 0.0, columns=3)
        first.append(choose_score(features, members, half) == "f0")
        better = {**features, "knows": features["f0"] + 3.0 * members}
        assert choose_score(better, members, half) == "knows"
    assert np.mean(first) > 0.6


def test_supervised_scores_are_those_of_the_model_of_the_calibration_half() -> None:
    features, members, half = game(1, 400, 0.8)
    scores = supervised(features, members, half)
    table = np.column_stack(list(features.values()))
    scaled = (table - table[half].mean(axis=0)) / table[half].std(axis=0)
    model = LogisticRegression(max_iter=1000).fit(scaled[half], members[half])
    assert np.allclose(scores[~half], model.decision_function(scaled[~half]))
    assert measure(Targets(scores, members, half), fitted=True).auc.value > 0.75
    # what is in the evaluation half teaches nothing
    assert (supervised(features, members ^ ~half, half) == scores).all()


def test_supervised_scores_do_not_flatter_the_half_that_they_were_fitted_on() -> None:
    """60 features of noise, 100 known targets: the model tells those apart, the scores must not."""
    areas, fprs, balanced = [], [], []
    for seed in range(30):
        features, members, half = game(seed, 200, 0.0, columns=60)
        targets = Targets(supervised(features, members, half), members, half)
        areas.append(measure(Targets(targets.scores, members, ~half)).auc.value)  # on the known half
        found = measure(targets, fitted=True)
        balanced.append(found.balanced_accuracy.value)
        fprs.append(found.tpr_at_fpr["0.1"].fpr.value)
    # means of 30 with deviations of about .06: 5 deviations of the mean
    assert np.mean(areas) < 0.5 + 5 * 0.06 / np.sqrt(30)
    assert np.mean(balanced) == pytest.approx(0.5, abs=0.05)
    assert np.mean(fprs) == pytest.approx(0.1, abs=0.05)


def test_two_clusters_need_no_membership() -> None:
    features, members, half = game(2, 600, 3.0)
    scores = clustered(features, "f1")
    assert measure(Targets(scores, members, half)).auc.value > 0.98
    assert (clustered(features, "f1") == scores).all()
    upside_down = {"loss": -features["f0"], **features}
    assert measure(Targets(clustered(upside_down, "loss"), members, half)).auc.value < 0.02
    assert (clustered({"x": np.ones(5)}, "x") == 0).all()


def test_shuffled_memberships_give_one_half() -> None:
    """Whatever the score; each interval misses at most 7 %, false-alarm rate 1e-6."""
    runs, missed = 60, np.zeros(3)
    for seed in range(runs):
        features, members, half = game(seed, 300, 2.0)
        shuffled = np.random.default_rng(seed).permutation(members)
        found = [
            features[choose_score(features, shuffled, half)],
            supervised(features, shuffled, half),
            clustered(features, "f0"),
        ]
        for column, scores in enumerate(found):
            figure = measure(Targets(scores, shuffled, half), fitted=True).auc
            missed[column] += not figure.low <= 0.5 <= figure.high
    assert (missed <= binom.isf(FALSE_ALARM, runs, 0.07)).all()


def test_wrong_features_are_refused() -> None:
    features, members, half = game(3, 40, 1.0)
    with pytest.raises(InputError, match="none to choose"):
        choose_score({}, members, half)
    with pytest.raises(InputError, match="none to learn"):
        supervised({}, members, half)
    with pytest.raises(InputError, match="bad: 40 of 40 are NaN"):
        supervised({**features, "bad": np.full(40, np.nan)}, members, half)
    with pytest.raises(InputError, match="one number for each target"):
        supervised({**features, "short": np.zeros(3)}, members, half)
    with pytest.raises(InputError, match="must be one of f0, f1, f2"):
        clustered(features, "loss")
    single = np.arange(40) == np.flatnonzero(half)[0]
    with pytest.raises(InputError, match="two members and two non-members"):
        supervised(features, single | (~half & members), half)
