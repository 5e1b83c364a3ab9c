"""The made-up purchases, and the copy of the digits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.data import datasets
from fedprivacy.data.datasets import digits, purchase_like


def options(**keys: Any) -> dict[str, Any]:
    base = {"records": 3000, "test_records": 500, "classes": 10, "features": 60, "flip": 0.2, "seed": 0}
    return {**base, **keys}


def test_bits_are_flipped_at_the_stated_rate_around_one_prototype_for_each_class() -> None:
    """Each rate within five standard deviations: false-alarm rate 4e-4 over 600 bits."""
    data = purchase_like(**options())
    assert data.x.shape == (3000, 60)
    assert data.x.dtype == np.float32
    assert data.y.dtype == np.int64
    assert set(np.unique(data.x)) == {0.0, 1.0}
    assert set(data.y.tolist()) == set(range(10)) == set(data.y_test.tolist())
    assert data.classes == 10
    for label in range(10):
        rows = data.x[data.y == label]
        prototype = rows.mean(axis=0) > 0.5
        rates = (rows != prototype).mean(axis=0)
        assert np.abs(rates - 0.2).max() < 5 * 0.4 / np.sqrt(len(rows))
        apart = (data.x_test[data.y_test == label] != prototype).mean()
        assert abs(apart - 0.2) < 0.04  # the test part is around the same prototypes


def test_prototypes_and_records_are_fair_coins_of_their_own() -> None:
    data = purchase_like(**options(flip=0.0, classes=100))
    prototypes = np.unique(np.column_stack([data.y, data.x]), axis=0)
    assert len(prototypes) == 100  # without flips a class is one record
    assert abs(prototypes[:, 1:].mean() - 0.5) < 5 * 0.5 / np.sqrt(100 * 60)
    noise = purchase_like(**options(flip=0.5))
    assert abs(np.corrcoef(noise.x[:-1, 0], noise.x[1:, 0])[0, 1]) < 5 / np.sqrt(3000)


def test_the_seed_says_all_and_longer_data_begin_alike(monkeypatch) -> None:
    first, again, other = (purchase_like(**options(seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.x, again.x)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.x, other.x)
    assert not np.array_equal(first.x[:500], first.x_test)
    monkeypatch.setattr(datasets, "_BLOCK", 60 * 100)  # many blocks
    cut = purchase_like(**options(seed=1))
    assert cut.x.shape == first.x.shape
    assert len(np.unique(cut.x, axis=0)) == len(cut.x)  # no block repeats another
    assert np.array_equal(cut.x[:2500], purchase_like(**options(seed=1, records=2500)).x)


def test_digits_of_the_copy_are_those_of_scikit_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, copy = digits(), tmp_path / "fedprivacy" / "digits.npz"
    assert copy.stat().st_mode & 0o077 == 0
    # Without scikit-learn: only the copy is read.
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    second = digits()
    assert second.x.flags.c_contiguous
    for name in ("x", "y", "x_test", "y_test"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "a folder"])
def test_a_damaged_copy_of_the_digits_is_not_believed(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    true, copy = digits(), tmp_path / "fedprivacy" / "digits.npz"
    if damage == "changed":
        with np.load(copy) as stored:
            arrays = dict(stored)
        arrays["y"][0] ^= 1
        np.savez(copy, **arrays)
    elif damage == "a folder":
        copy.unlink()
        copy.mkdir()
    else:
        copy.write_bytes(copy.read_bytes()[: 0 if damage == "empty" else 5000])
    assert np.array_equal(digits().y, true.y)
    if damage != "a folder":
        monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
        assert np.array_equal(digits().y, true.y)  # the copy was made anew


def test_digits_need_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("fedprivacy.data.storage.folder", no_home)
    assert digits().x.shape == (1437, 64)


def test_digits_need_no_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert digits().x.shape == (1437, 64)
