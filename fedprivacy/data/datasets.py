"""Data sets by name. Each is one array of records with labels, split into training and test."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz, storage
from fedprivacy.data.targets import TargetBounds
from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL, REGRESSION
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replacing
from fedprivacy.randomness.streams import Streams

_BLOCK = 262_144


@dataclass(frozen=True)
class Dataset:
    """Records and labels.

    Args:
        x: Training records, float32, shape (records, *features).
        y: Training labels, int64 in [0, classes), shape (records,); or scaled numbers or labels, float32,
            shape (records, targets).
        x_test: Held-out records that no client owns, float32, shape (test, *features).
        y_test: Their labels, int64, shape (test,), or targets, float32, shape (test, targets).
        classes: The number of classes, or of targets: that of a model's outputs.
        feature_names: The names of the columns of x; empty where they have none.
        class_names: The names of the classes, or targets; empty where they have none.
        task: What is predicted (`fedprivacy.data.tasks`).
        target_bounds: By which numbers were scaled; None for another task.
    """

    x: NDArray[np.float32]
    y: NDArray[Any]
    x_test: NDArray[np.float32]
    y_test: NDArray[Any]
    classes: int
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    task: str = CLASSIFICATION
    target_bounds: TargetBounds | None = None


def digits() -> Dataset:
    """The handwritten digits of scikit-learn: 1437 training and 360 test images of 8 x 8 pixels.

    Pixels are scaled to [0, 1] by their known range; the split is fixed and stratified. A copy in the cache
    folder saves the import of scikit-learn, which takes half a second.
    """
    arrays = _stored_digits()
    if arrays is None:
        arrays = _split_digits()
        _store_digits(arrays)
    x, y, x_test, y_test = arrays
    return Dataset(_pixels(x), y.astype(np.int64), _pixels(x_test), y_test.astype(np.int64), classes=10)


_DIGITS_PARTS = ("x", "y", "x_test", "y_test")
_DIGITS_DIGEST = "6eb2b89415a12a30e47f3ccc57f1dee6"  # of these arrays


def _pixels(levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = (levels / 16.0).astype(np.float32)
    return scaled


def _split_digits() -> tuple[NDArray[np.uint8], ...]:
    """Levels of pixels and labels, of training and test images."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = (array.astype(np.uint8) for array in load_digits(return_X_y=True))
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=360, stratify=y, random_state=0)
    return x_train, y_train, x_test, y_test


def _stored_digits() -> tuple[NDArray[np.uint8], ...] | None:
    """The copy in the cache folder; None where there is none, or not a whole one."""
    try:
        arrays = tuple(npz.array(str(_digits_file()), name) for name in _DIGITS_PARTS)
    except (InputError, RuntimeError):  # the latter where there is no home
        return None
    return arrays if _digest(arrays) == _DIGITS_DIGEST else None


def _store_digits(arrays: tuple[NDArray[np.uint8], ...]) -> None:
    # Another version of scikit-learn might split otherwise: its images are used, and not stored.
    if _digest(arrays) != _DIGITS_DIGEST:
        return
    with suppress(OSError, RuntimeError):  # it only saves time
        file = _digits_file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(file, storage.OWNER_ONLY) as opened:
            named: dict[str, Any] = dict(zip(_DIGITS_PARTS, arrays, strict=True))
            np.savez(opened, **named)


def _digits_file() -> Path:
    return storage.folder() / "digits.npz"


def _digest(arrays: tuple[NDArray[Any], ...]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()


def purchase_like(
    *, records: int, test_records: int, features: int, classes: int, flip: float, seed: int
) -> Dataset:
    """Random bits around random prototypes: class c is its prototype with each bit flipped by a coin.

    Modelled on Purchase100 (Shokri et al. 2017), whose 600 bits record who bought what.
    """
    prototypes = (
        Streams(seed).stream("purchase-like/prototypes").integers(0, 2, (classes, features), dtype=np.int8)
    )

    def draw(count: int, purpose: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        x, y = np.empty((count, features), dtype=np.float32), np.empty(count, dtype=np.int64)
        rows = max(1, _BLOCK // features)
        for block, start in enumerate(range(0, count, rows)):
            stream = Streams(seed).stream(f"purchase-like/{purpose}", round=block)
            part = slice(start, min(start + rows, count))
            y[part] = stream.integers(0, classes, part.stop - part.start)
            flipped = stream.random((part.stop - part.start, features)) < flip
            x[part] = prototypes[y[part]] ^ flipped
        return x, y

    x, y = draw(records, "train")
    x_test, y_test = draw(test_records, "test")
    return Dataset(x, y, x_test, y_test, classes=classes)


def synthetic(*, records: int, test_records: int, features: int, signal: float, seed: int) -> Dataset:
    """A logistic model with known parameters: y ~ Bernoulli(sigmoid(x . theta)).

    x is standard normal; theta (`true_parameters`) has norm `signal`, so that the logit has
    standard deviation `signal` whatever the number of features. Written block by block, each from
    its own stream, so the first records are the same however many follow.
    """
    theta = true_parameters(features=features, signal=signal, seed=seed)

    def draw(count: int, purpose: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        x = np.empty((count, features), dtype=np.float32)
        y = np.empty(count, dtype=np.int64)
        for block, start in enumerate(range(0, count, _BLOCK)):
            stream = Streams(seed).stream(f"synthetic/{purpose}", round=block)
            rows = slice(start, min(start + _BLOCK, count))
            size = rows.stop - rows.start
            x[rows] = stream.standard_normal((size, features), dtype=np.float32)
            with np.errstate(over="ignore"):  # an infinite exponential is a chance of 0
                chance = 1.0 / (1.0 + np.exp(-(x[rows] @ theta.astype(np.float32))))
            y[rows] = stream.random(size) < chance
        return x, y

    x, y = draw(records, "train")
    x_test, y_test = draw(test_records, "test")
    return Dataset(x, y, x_test, y_test, classes=2)


def synthetic_targets(
    *,
    records: int,
    test_records: int,
    features: int,
    signal: float,
    targets: int,
    bounds: TargetBounds | None,
    seed: int,
) -> Dataset:
    """Linear models with known parameters: numbers x . theta + noise, or labels sigmoid(x . theta).

    x and the noise are standard normal; each target has a theta of norm `signal`, the first as `synthetic`.

    Args:
        records: Training records.
        test_records: Test records.
        features: The features of a record.
        signal: The norm of each target's parameters.
        targets: The numbers or labels of a record.
        bounds: By which numbers are scaled; None makes labels.
        seed: Draws all of it.
    """
    thetas = np.stack(
        [true_parameters(features=features, signal=signal, seed=seed, target=at) for at in range(targets)]
    )

    def draw(count: int, purpose: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        x = np.empty((count, features), dtype=np.float32)
        y = np.empty((count, targets), dtype=np.float32)
        for block, start in enumerate(range(0, count, _BLOCK)):
            stream = Streams(seed).stream(f"synthetic/{purpose}", round=block)
            rows = slice(start, min(start + _BLOCK, count))
            size = rows.stop - rows.start
            x[rows] = stream.standard_normal((size, features), dtype=np.float32)
            mean = x[rows] @ thetas.T.astype(np.float32)
            if bounds is None:
                with np.errstate(over="ignore"):  # an infinite exponential is a chance of 0
                    y[rows] = stream.random((size, targets)) < 1.0 / (1.0 + np.exp(-mean))
            else:
                numbers = mean + stream.standard_normal((size, targets))
                y[rows] = bounds.scaled(numbers)
        return x, y

    x, y = draw(records, "train")
    x_test, y_test = draw(test_records, "test")
    task = MULTI_LABEL if bounds is None else REGRESSION
    return Dataset(x, y, x_test, y_test, classes=targets, task=task, target_bounds=bounds)


def true_parameters(*, features: int, signal: float, seed: int, target: int = 0) -> NDArray[np.float64]:
    """The parameters theta of a synthetic model's target, shape (features,), of norm `signal`."""
    direction = Streams(seed).stream("synthetic/theta", round=target).standard_normal(features)
    return signal * direction / np.linalg.norm(direction)
