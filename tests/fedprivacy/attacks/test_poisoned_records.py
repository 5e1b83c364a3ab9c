from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.poisoned_records import Backdoor, LabelFlip, Trigger, check_pixels
from fedprivacy.errors import InputError

X = np.random.default_rng(0).random((200, 6, 4), dtype=np.float32)
Y = np.arange(200, dtype=np.int64) % 5
TRIGGER = Trigger(((5, 3), (0, 1)), 2.0)


@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_trigger_sets_its_pixels_and_nothing_else(channels) -> None:
    x = np.random.default_rng(0).random((7, 6, 4, *channels), dtype=np.float32)
    before, stamped = x.copy(), TRIGGER.stamp(x)
    assert np.array_equal(x, before)
    assert (stamped[:, 5, 3] == 2.0).all()
    assert (stamped[:, 0, 1] == 2.0).all()
    assert (stamped != x).reshape(7, 6, 4, -1).any(axis=(0, 3)).sum() == 2


@pytest.mark.parametrize(
    ("features", "message"),
    [((6, 3), r"\[5, 3\] lies outside"), ((5, 4), r"from 0 to 4"), ((24,), "no pictures")],
)
def test_pixels_outside_the_picture_are_refused(features, message: str) -> None:
    with pytest.raises(InputError, match=f"^pixels: .*{message}"):
        check_pixels(TRIGGER.pixels, features)


def test_a_label_flip_changes_one_class_alone() -> None:
    flip = LabelFlip(source=1, target=4)
    x, y = flip.poison(X, Y, np.random.default_rng(0))
    assert np.array_equal(x, X)
    assert (y[Y == 1] == 4).all()
    assert np.array_equal(y[Y != 1], Y[Y != 1])
    assert np.array_equal(flip.probes(X, Y), X[Y == 1])


@pytest.mark.parametrize("source", [None, 2])
def test_a_backdoor_stamps_a_share_of_the_eligible_records(source: int | None) -> None:
    door = Backdoor(TRIGGER, target=3, share=0.5, source=source)
    x, y = door.poison(X, Y, np.random.default_rng(0))
    changed = (x != X).any(axis=(1, 2))
    eligible = Y != 3 if source is None else source == Y
    assert not changed[~eligible].any()
    assert 0.25 < changed[eligible].mean() < 0.75
    assert np.array_equal(y != Y, changed & (Y != 3))
    assert (y[changed] == 3).all()
    probes = door.probes(X, Y)
    assert len(probes) == eligible.sum()
    assert (probes[:, 5, 3] == 2.0).all()


def test_a_backdoor_of_all_records_has_no_clean_one() -> None:
    x, y = Backdoor(TRIGGER, target=3, share=1.0).poison(X, Y, np.random.default_rng(0))
    assert ((x[:, 5, 3] == 2.0) == (Y != 3)).all()
    assert (y == 3).all()
