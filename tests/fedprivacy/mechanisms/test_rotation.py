"""A rotation keeps norms, spreads one coordinate over all, and is undone."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.mechanisms.rotation import padded, random_signs, rotate, rotate_back
from fedprivacy.randomness.streams import Streams


@pytest.mark.parametrize(
    ("dimension", "size"), [(1, 1), (2, 2), (3, 4), (650, 1024), (1024, 1024), (1025, 2048)]
)
def test_a_rotation_pads_keeps_inner_products_and_is_undone(dimension: int, size: int) -> None:
    stream = Streams(1).stream("rotation")
    signs = random_signs(dimension, stream)
    first, second = stream.standard_normal((2, dimension))
    assert padded(dimension) == size
    rotated = rotate(first, signs)
    assert rotated.shape == (size,)
    assert rotated @ rotate(second, signs) == pytest.approx(first @ second)
    assert rotate_back(rotated, signs, dimension) == pytest.approx(first)


def test_one_coordinate_is_spread_evenly() -> None:
    update = np.zeros(100)
    update[7] = 3.0
    rotated = rotate(update, random_signs(100, Streams(1).stream("rotation")))
    assert np.abs(rotated) == pytest.approx(3 / np.sqrt(128))


def test_another_stream_is_another_rotation() -> None:
    first, second = (random_signs(64, Streams(1).stream("rotation", round=each)) for each in (1, 2))
    assert set(first) == {-1.0, 1.0}
    assert not np.array_equal(first, second)
