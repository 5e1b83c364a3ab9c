from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.data.scaling import Scaling, moments, per_image, per_record
from fedprivacy.errors import InputError

X = np.random.default_rng(1).normal(1000, [1, 5, 20], size=(300, 3))


def holes(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[::3, 1] = np.nan
    x[5, 2] = np.inf
    return x


def test_moments_are_those_of_all_blocks_together() -> None:
    mean, deviation = moments([X[:7], X[7:200], X[200:200], X[200:]])
    assert mean == pytest.approx(X.mean(axis=0), rel=1e-12)
    assert deviation == pytest.approx(X.std(axis=0), rel=1e-9)


def test_moments_leave_missing_values_out_and_a_constant_has_deviation_one() -> None:
    x = holes(X)
    mean, deviation = moments([x[:50], x[50:]])
    known = np.where(np.isfinite(x), x, np.nan)
    assert mean == pytest.approx(np.nanmean(known, axis=0), rel=1e-12)
    assert deviation == pytest.approx(np.nanstd(known, axis=0), rel=1e-9)
    assert moments([np.full((4, 2), 7)])[1].tolist() == [1, 1]


def test_bounds_become_zero_and_one_and_values_beyond_are_cut() -> None:
    scaled = Scaling("bounds", low=np.array([0.0, 10.0]), width=np.array([2.0, 10.0]))
    assert scaled(np.array([[-1, 15], [1, 10], [5, 99]])).tolist() == [[0, 0.5], [0.5, 0], [1, 1]]


def test_public_scaling_is_cut_at_the_given_deviations() -> None:
    scaled = Scaling("public", low=np.array([10.0]), width=np.array([2.0]), cut=3.0)
    assert scaled(np.array([[10], [12], [100], [-100]])).tolist() == [[0], [1], [3], [-3]]


@pytest.mark.parametrize("shape", [(64,), (8, 8), (8, 8, 3)])
def test_images_are_standardised_without_most_of_what_a_column_of_pixels_shares(shape) -> None:
    x = np.random.default_rng(2).normal(5, 3, size=(20, *shape)).astype(np.float32)
    images = x.reshape(20, 8, 8, -1).astype(np.float64)
    for image, scaled in zip(images, per_image(x).reshape(20, 8, 8, -1), strict=True):
        standard = (image - image.mean()) / image.std()
        left = standard - 2 / 3 * standard.mean(axis=0)
        assert scaled == pytest.approx((left - left.mean()) / left.std(), abs=1e-5)
    assert np.array_equal(per_image(x[:3]), per_image(x)[:3])  # nothing but the record
    assert np.all(per_image(np.ones_like(x)) == 0)


@pytest.mark.parametrize("value", [0.0, 255.3, 1e6 + 1 / 3, 5592405.67, 3e38])
def test_a_constant_record_becomes_zero_however_large(value: float) -> None:
    x = np.full((2, 16), value, np.float32)
    x[1, 3] = 0.5 * x[1, 3] + 1
    for scaled in (per_record(x), per_image(x)):
        assert np.all(scaled[0] == 0)
        assert np.isfinite(scaled).all()
        assert scaled[1].std() == pytest.approx(1.0, abs=1e-3)


def test_a_missing_pixel_counts_for_nothing() -> None:
    x = np.random.default_rng(2).random((1, 4, 4), dtype=np.float32)
    other, there = x.copy(), np.ones_like(x, bool)
    other[0, 1, 2], there[0, 1, 2] = 9.0, False
    assert np.array_equal(per_image(x, there), per_image(other, there))
    assert per_image(x, there)[0, 1, 2] == 0
    with pytest.raises(ValueError, match="no square images"):
        per_image(np.ones((2, 3), np.float32))


def test_columns_are_taken_in_the_given_order_before_scaling() -> None:
    assert Scaling(columns=(2, 0))(np.array([[1, 2, 3]])).tolist() == [[3, 1]]


@pytest.mark.parametrize("how", ["none", "per-record", "bounds", "public"])
def test_a_missing_value_is_an_error_or_becomes_zero_after_scaling(how: str) -> None:
    x = holes(X)
    with pytest.raises(InputError, match="missing"):
        Scaling(how)(x)
    low, width = np.array([900.0] * 3), np.array([100.0] * 3)
    scaled = Scaling(how, fill=True, low=low, width=width)(x)
    assert scaled.dtype == np.float32
    assert np.all(scaled[~np.isfinite(x)] == 0)
    whole = np.isfinite(x).all(axis=1)
    assert scaled[whole] == pytest.approx(Scaling(how, low=low, width=width)(X[whole]), abs=1e-3)


def test_a_value_beyond_float32_counts_as_missing() -> None:
    assert Scaling(fill=True)(np.array([[1e300, 1.0]])).tolist() == [[0, 1]]


def test_per_record_scaling_has_mean_zero_and_deviation_one_also_with_values_missing() -> None:
    scaled = per_record(X.astype(np.float32))
    assert scaled.mean(axis=1) == pytest.approx(0, abs=1e-3)
    assert scaled.std(axis=1) == pytest.approx(1, abs=1e-3)
    x = holes(X)
    filled = Scaling("per-record", fill=True)(x)
    for row, record in zip(filled, np.isfinite(x), strict=True):
        assert row[record].mean() == pytest.approx(0, abs=1e-3)
        assert row[record].std() == pytest.approx(1, abs=1e-3)
    assert Scaling("per-record", fill=True)(np.full((1, 3), np.nan)).tolist() == [[0, 0, 0]]


def test_the_key_tells_scalings_apart() -> None:
    made = [
        Scaling(),
        Scaling("per-record"),
        Scaling(fill=True),
        Scaling(columns=(1,)),
        Scaling("bounds", low=np.array(0.0), width=np.array(2.0)),
        Scaling("bounds", low=np.array(0.0), width=np.array(3.0)),
        Scaling("public", cut=2.0),
    ]
    assert len({scaling.key for scaling in made}) == len(made)
