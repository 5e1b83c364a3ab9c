from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from fedprivacy.data import npz, storage
from fedprivacy.data.scaling import Scaling
from fedprivacy.errors import InputError

X = np.random.default_rng(2).normal(size=(1000, 6))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own cache folder, and a size from which on records are large that the test's file has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(storage, "LARGE", 1000)
    monkeypatch.setattr(npz, "_BLOCK_BYTES", 7 * 6 * 8)
    return tmp_path / "fedprivacy"


@pytest.fixture
def file(tmp_path: Path) -> str:
    np.savez_compressed(tmp_path / "d.npz", x_train=X)
    return str(tmp_path / "d.npz")


def test_large_records_come_from_the_cache_as_they_would_from_memory(cache, file, monkeypatch) -> None:
    scaling = Scaling("bounds", (4, 0), low=-1.0, width=2.0)
    large = storage.records(file, "x_train", scaling)
    [stored] = cache.iterdir()
    assert stored.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(storage, "LARGE", 10**9)
    small = storage.records(file, "x_train", scaling)
    assert large.dtype == small.dtype == np.float32
    assert np.array_equal(large, small)
    assert np.array_equal(np.load(stored), small)


def test_the_cache_is_written_once_for_one_file_and_scaling(cache, file) -> None:
    storage.records(file, "x_train", Scaling())
    [stored] = cache.iterdir()
    written = stored.stat().st_mtime_ns
    storage.records(file, "x_train", Scaling())
    assert stored.stat().st_mtime_ns == written
    storage.records(file, "x_train", Scaling("per-record"))
    assert len(list(cache.iterdir())) == 2


def test_another_file_at_the_same_place_is_read_anew(cache, file) -> None:
    first = storage.records(file, "x_train", Scaling())
    np.savez_compressed(file, x_train=X + 1)
    assert np.allclose(storage.records(file, "x_train", Scaling()), first + 1, atol=1e-5)


def test_torch_takes_the_mapped_records_without_a_copy_and_nothing_reaches_the_file(cache, file) -> None:
    x = storage.records(file, "x_train", Scaling())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = torch.from_numpy(x)
    assert tensor.data_ptr() == x.ctypes.data
    tensor[0] = 99
    assert not np.any(storage.records(file, "x_train", Scaling()) == 99)


def test_a_cache_that_could_not_be_finished_leaves_nothing_behind(cache, file) -> None:
    damaged = bytearray(Path(file).read_bytes())
    damaged[len(damaged) // 2] ^= 255
    Path(file).write_bytes(damaged)
    with pytest.raises(InputError, match=r"d\.npz: "):
        storage.records(file, "x_train", Scaling())
    assert list(cache.iterdir()) == []


def test_a_cache_folder_that_cannot_be_made_is_said_with_what_to_do(file, monkeypatch) -> None:
    monkeypatch.setattr(storage, "LARGE", 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", file)
    with pytest.raises(InputError, match="set XDG_CACHE_HOME to another folder"):
        storage.records(file, "x_train", Scaling())


def test_what_is_slow_to_unpack_is_kept_unpacked(real_data, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = str(real_data("cifar100_subset.npz"))
    x = storage.records(path, "x_test", Scaling())
    assert x.shape == (3000, 32, 32, 3)
    assert len(os.listdir(tmp_path / "fedprivacy")) == 1
