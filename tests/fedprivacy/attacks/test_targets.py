"""The halves of the targets, and input that no figure can be made of."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.targets import Targets, draw_calibration
from fedprivacy.errors import InputError

SCORES, MEMBERS, HALF = np.arange(8.0), np.arange(8) % 2 == 0, np.arange(8) < 4


def test_the_calibration_half_is_a_random_half_that_knows_no_membership() -> None:
    flags = np.array([draw_calibration(11, np.random.default_rng(seed)) for seed in range(4000)])
    assert (flags.sum(axis=1) == 5).all()
    # each target as often as any other: 5 deviations, false-alarm rate 1e-5
    assert np.abs(flags.mean(axis=0) - 5 / 11).max() < 5 * 0.5 / np.sqrt(4000)
    assert (draw_calibration(11, np.random.default_rng(1)) == flags[1]).all()


def test_scores_by_half_and_membership() -> None:
    targets = Targets(SCORES, MEMBERS, HALF)
    assert targets.of(member=True, calibration=True).tolist() == [0, 2]
    assert targets.of(member=False, calibration=False).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("scores", "members", "calibration", "classes", "message"),
    [
        (np.where(SCORES == 3, np.nan, SCORES), MEMBERS, HALF, None, "1 of 8 are NaN or infinite"),
        (np.where(SCORES == 3, -np.inf, SCORES), MEMBERS, HALF, None, "1 of 8 are NaN or infinite"),
        (SCORES[:0], MEMBERS[:0], HALF[:0], None, "one number for each target"),
        (SCORES.reshape(2, 4), MEMBERS, HALF, None, "one number for each target"),
        (SCORES, MEMBERS[:7], HALF, None, "members: must be true or false for each of 8"),
        (SCORES, MEMBERS, HALF.astype(int), None, "calibration: must be true or false"),
        (SCORES, MEMBERS, HALF, np.zeros(3), "classes: shape"),
        (SCORES, MEMBERS & False, HALF, None, "calibration half holds no members"),
        (SCORES, MEMBERS | True, HALF, None, "calibration half holds no non-members"),
        (SCORES, MEMBERS & HALF, HALF, None, "evaluation half holds no members"),
        (SCORES, MEMBERS, HALF | True, None, "evaluation half holds no members"),
    ],
)
def test_what_no_figure_can_be_made_of_is_refused(scores, members, calibration, classes, message) -> None:
    with pytest.raises(InputError, match=message):
        Targets(scores, members, calibration, classes)
