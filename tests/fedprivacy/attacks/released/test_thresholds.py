"""Attacks at a threshold: against their definitions in probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.released import thresholds
from fedprivacy.attacks.roc import Roc
from fedprivacy.attacks.targets import FOLDS, draw_folds, measured_by_direction
from fedprivacy.errors import InputError


def outputs(records: int = 300, classes: int = 4, seed: int = 0):
    stream = np.random.default_rng(seed)
    logits = 3 * stream.normal(size=(records, classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return np.log(p), p, stream.integers(0, classes, records), stream


def test_scores_are_ordered_as_their_definitions() -> None:
    logs, p, y, _ = outputs()
    rows = np.arange(len(y))
    own = p[rows, y]
    entropies = -(p * np.log(p)).sum(axis=1)
    modified = -(1 - own) * np.log(own)
    for c in range(p.shape[1]):
        modified -= np.where(c == y, 0.0, p[:, c] * np.log(1 - p[:, c]))
    assert np.allclose(thresholds.loss(logs, y), np.log(own / (1 - own)))
    assert np.allclose(thresholds.confidence(logs), np.log(p.max(axis=1) / (1 - p.max(axis=1))))
    assert np.allclose(thresholds.entropy(logs), -np.log(entropies))
    assert np.allclose(thresholds.modified_entropy(logs, y), -np.log(modified))


def test_each_class_has_the_threshold_of_other_folds() -> None:
    logs, _, y, stream = outputs(600)
    scores = thresholds.loss(logs, y)
    members, folds = stream.random(600) < 0.5, draw_folds(600, stream)
    found = thresholds.by_class(scores, y, members, folds)
    assert found.shape == (FOLDS + 1, 600)
    for direction, measured in enumerate(measured_by_direction(folds)):
        for label in range(4):
            there = ~measured & (y == label)
            limit = Roc.of(scores[there & members], scores[there & ~members]).balanced_threshold
            here = measured & (y == label)
            assert np.allclose(found[direction, here], scores[here] - limit)
        # what is measured teaches nothing, and what is known does
        poisoned = thresholds.by_class(scores, y, members ^ measured, folds)
        assert (poisoned[direction] == found[direction]).all()
        assert (poisoned != found).any()


def test_a_class_without_known_members_has_the_threshold_of_all() -> None:
    logs, _, y, stream = outputs()
    scores = thresholds.loss(logs, y)
    members, folds = (stream.random(300) < 0.5) & (y != 2), draw_folds(300, stream)
    known, here = folds != 0, (folds == 0) & (y == 2)
    limit = Roc.of(scores[known & members], scores[known & ~members]).balanced_threshold
    found = thresholds.by_class(scores, y, members, folds)
    assert np.allclose(found[0, here], scores[here] - limit)
    with pytest.raises(InputError, match="there are no members"):
        thresholds.by_class(scores, y, np.zeros(300, dtype=bool), folds)
