"""No target is scored by a model that saw its fold, nor in a direction by one that saw what this measures."""

from __future__ import annotations

import numpy as np

from fedprivacy.attacks.cross_fitting import cross_fitted
from fedprivacy.attacks.targets import FOLDS, KNOWN_FOLDS, draw_folds, measured_by_direction


def test_what_each_score_has_seen() -> None:
    """The model is the list of its folds, as a number: a bit for each."""
    stream = np.random.default_rng(1)
    members, folds = stream.random(100) < 0.5, draw_folds(100, stream)
    directions = []

    def fit(known: np.ndarray, direction: int) -> np.ndarray:
        directions.append(direction)
        seen = np.unique(folds[known])
        assert known.sum() == np.isin(folds, seen).sum()
        return np.full(100, float((1 << seen).sum()))

    scores = cross_fitted(fit, members, folds)
    assert scores.shape == (FOLDS + 1, 100)
    assert sorted(set(directions)) == list(range(FOLDS + 1))
    for direction, measured in enumerate(measured_by_direction(folds)):
        known = {fold for fold in range(FOLDS) if not measured[folds == fold].any()}
        for fold in range(FOLDS):
            expected = sum(1 << other for other in known - {fold})
            assert set(scores[direction, folds == fold]) == {float(expected)}
    assert set(scores[-1, folds >= KNOWN_FOLDS]) == {3.0}


def test_without_members_nothing_is_learned() -> None:
    folds = np.arange(50) // 2 % FOLDS
    members = (np.arange(50) % 2 == 0) & (folds != 0)
    scores = cross_fitted(lambda known, _: np.full(50, 7.0), members, folds)
    assert (scores[-1, folds == 1] == 0).all()  # known are the folds 0 and 1
    assert (scores[-1, folds == 0] == 7).all()
    assert (scores[:FOLDS] == 7).all()


def test_a_fit_that_depends_on_no_direction_is_called_once_for_each_set_of_known_targets() -> None:
    """Five of four folds, ten of three, and of the single direction one of two folds and two of one."""
    stream = np.random.default_rng(2)
    members, folds = stream.random(100) < 0.5, draw_folds(100, stream)
    calls: list[bytes] = []

    def fit(known: np.ndarray, _: int) -> np.ndarray:
        calls.append(known.tobytes())
        return known * 1.0 + known.sum() + np.arange(100)

    apart = cross_fitted(fit, members, folds)
    assert (len(calls), len(set(calls))) == (28, 18)
    calls.clear()
    assert (cross_fitted(fit, members, folds, by_direction=False) == apart).all()
    assert (len(calls), len(set(calls))) == (18, 18)
