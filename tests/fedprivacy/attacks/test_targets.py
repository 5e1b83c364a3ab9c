"""The folds of the targets, and input that no figure can be made of."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.targets import FOLDS, KNOWN_FOLDS, Targets, draw_folds, measured_by_direction
from fedprivacy.errors import InputError

COUNT = 20
SCORES, MEMBERS, SPREAD = np.arange(float(COUNT)), np.arange(COUNT) % 2 == 0, np.arange(COUNT) // 2 % FOLDS


def test_folds_are_random_parts_of_equal_size_that_know_no_membership() -> None:
    drawn = np.array([draw_folds(11, np.random.default_rng(seed)) for seed in range(4000)])
    assert (np.sort(drawn, axis=1) == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]).all()
    # each target as often in a fold as any other: 5 deviations, false-alarm rate 1e-5
    assert np.abs((drawn == 1).mean(axis=0) - 2 / 11).max() < 5 * 0.5 / np.sqrt(4000)
    assert (draw_folds(11, np.random.default_rng(1)) == drawn[1]).all()


def test_each_target_is_measured_in_one_fold_and_the_single_direction_knows_the_first_ones() -> None:
    *each, single = measured_by_direction(SPREAD)
    assert (np.sum(each, axis=0) == 1).all()
    assert (single == (SPREAD >= KNOWN_FOLDS)).all()


def test_a_fixed_score_is_the_same_in_all_directions() -> None:
    targets = Targets(SCORES, MEMBERS, SPREAD)
    assert not targets.fitted
    first = targets.directions[0]
    assert (first.members.tolist(), first.nonmembers.tolist()) == ([0, 10], [1, 11])
    assert first.known_members.tolist() == [2, 4, 6, 8, 12, 14, 16, 18]
    assert targets.single.known_nonmembers.tolist() == [1, 3, 11, 13]
    assert (targets.held_out == SCORES).all()


def test_a_fitted_score_is_read_in_the_direction_that_measures() -> None:
    rows = SCORES + 100 * np.arange(FOLDS + 1)[:, None]
    targets = Targets(rows, MEMBERS, SPREAD)
    assert targets.fitted
    assert targets.held_out.tolist() == (SCORES + 100 * SPREAD).tolist()
    third = targets.directions[3]
    assert third.members.tolist() == [306, 316]
    assert third.known_members.min() == 300
    assert targets.single.members.min() >= 500
    some = targets[np.arange(COUNT) < 14]
    assert some.held_out.tolist() == targets.held_out[:14].tolist()


@pytest.mark.parametrize(
    ("scores", "members", "folds", "classes", "message"),
    [
        (np.where(SCORES == 3, np.nan, SCORES), MEMBERS, SPREAD, None, "1 of 20 are NaN or infinite"),
        (np.where(SCORES == 3, -np.inf, SCORES), MEMBERS, SPREAD, None, "1 of 20 are NaN or infinite"),
        (SCORES[:0], MEMBERS[:0], SPREAD[:0], None, "one number for each target"),
        (SCORES.reshape(4, 5), MEMBERS, SPREAD, None, "one number for each target"),
        (SCORES, MEMBERS[:7], SPREAD, None, "members: must be true or false for each of 20"),
        (SCORES, MEMBERS.astype(int), SPREAD, None, "members: must be true or false"),
        (SCORES, MEMBERS, SPREAD + 1, None, "folds: must be a number from 0 to 4"),
        (SCORES, MEMBERS, SPREAD[:7], None, "folds: must be a number"),
        (SCORES, MEMBERS, SPREAD, np.zeros(3), "classes: shape"),
        (SCORES, MEMBERS & False, SPREAD, None, "there are no members among"),
        (SCORES, MEMBERS | True, SPREAD, None, "there are no non-members among"),
        (SCORES, MEMBERS & (SPREAD == 0), SPREAD, None, "there are no members among"),
        (SCORES, MEMBERS & (SPREAD < KNOWN_FOLDS), SPREAD, None, "there are no members among"),
        (SCORES, MEMBERS | (SPREAD < KNOWN_FOLDS), SPREAD, None, "there are no non-members among"),
    ],
)
def test_what_no_figure_can_be_made_of_is_refused(scores, members, folds, classes, message) -> None:
    with pytest.raises(InputError, match=message):
        Targets(scores, members, folds, classes)
