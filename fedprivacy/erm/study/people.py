"""The records of a study: drawn from a logistic model, or table columns scaled by public bounds."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz
from fedprivacy.erm.losses import HuberSVM, Logistic, Loss, Squared
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.erm.sections import LogisticModel, NpzRecords

Vector = NDArray[np.float64]
_WITHOUT_EFFECT = ("name", "description", "duration", "tuning", "seed", "federation")

# The first coefficient of a table: the logit, or how far the target is above the middle of its bounds, where
# all features are in the middle of theirs.
AT_MIDDLE = "level at mid-range"


@dataclass(frozen=True)
class HeldOut:
    """The test records of a file, scaled as those that are fitted.

    Args:
        x: Features, shape (n, d).
        y: Targets, shape (n,).
        unit: What a scaled target is multiplied by to be in the target's own unit.
    """

    x: Vector
    y: Vector
    unit: float


@dataclass(frozen=True)
class Records:
    """The records to fit.

    Args:
        x: Features within the unit ball, shape (n, d); of a table the first is constant.
        y: Targets, shape (n,).
        names: Of each coordinate of theta.
        units: What each coordinate is multiplied by to be a change of the prediction for one more of the
            feature, in units of the target (log-odds or margins of classes), shape (d,).
        truth: The theta that made them; None where nobody knows.
        test: The test records of a regression's file, which no estimate is fitted on; None without any.
    """

    x: Vector
    y: Vector
    names: tuple[str, ...]
    units: Vector
    truth: Vector | None
    test: HeldOut | None = None

    @cached_property
    def digest(self) -> str:
        """Identifies these records among others."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.x, self.y):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def first(self, count: int) -> tuple[Vector, Vector]:
        """So many of them: an order that no study changes."""
        return self.x[:count], self.y[:count]


def records(scenario: ErmScenario) -> Records:
    """The records of a scenario, as many as its largest cell has.

    Raises:
        InputError: A file does not match the scenario.
    """
    most = max(scenario.study.records, default=scenario.population)
    if isinstance(scenario.data, LogisticModel):
        return _synthetic(scenario.data, most, units_of(scenario))
    return _from_file(scenario.data, scenario.objective.loss != "squared", most, units_of(scenario))


def _synthetic(data: LogisticModel, count: int, units: Vector) -> Records:
    """Uniform in the ball; y = 1 with probability 1/(1 + exp(-x.truth)), truth of alternating signs."""
    stream = Streams(data.seed).stream("erm/people")
    d = data.features
    x = stream.standard_normal((count, d))
    x *= (stream.random((count, 1)) ** (1 / d)) / np.linalg.norm(x, axis=1, keepdims=True)
    truth = data.strength / math.sqrt(d) * np.where(np.arange(d) % 2, -1.0, 1.0)
    y = np.where(stream.random(count) < 1 / (1 + np.exp(-x @ truth)), 1.0, -1.0)
    return Records(x, y, tuple(f"theta {i + 1}" for i in range(d)), units, truth)


def _from_file(data: NpzRecords, classes: bool, count: int, units: Vector) -> Records:
    whole = _table(data, "train")
    table = whole[Streams(0).stream("erm/order").permutation(len(whole))[:count]]
    if missing := int((~np.isfinite(table[:, -1])).sum()):
        raise InputError(
            f"{data.path}: {missing:,} of {len(table):,} records have no {data.target}, which is fitted. "
            "Leave them out of the file."
        )
    x, target = _scaled(data, table)
    y = np.where(target > 0, 1.0, -1.0) if classes else target
    test = None if classes else _test(data)
    return Records(x, y, (AT_MIDDLE, *data.features), units, None, test)


def _test(data: NpzRecords) -> HeldOut | None:
    """The test records that have a target; None without any."""
    table = _table(data, "test")
    x, y = _scaled(data, table[np.isfinite(table[:, -1])])
    return HeldOut(x, y, (data.target_high - data.target_low) / 2) if len(y) else None


def _scaled(data: NpzRecords, table: Vector) -> tuple[Vector, Vector]:
    """Features within the unit ball, the first constant, and targets in [-1, 1]; the target is the last."""
    low, high = np.array([*data.low, data.target_low]), np.array([*data.high, data.target_high])
    # A feature that is missing counts as the middle of its bounds, what lies beyond as the nearest bound.
    middle, half = (low + high) / 2, (high - low) / 2
    scaled = (np.clip(np.where(np.isfinite(table), table, middle), low, high) - middle) / half
    d = len(data.features) + 1
    x = np.concatenate([np.ones((len(table), 1)), scaled[:, :-1]], axis=1) / math.sqrt(d) / (1 + 1e-15)
    return x, scaled[:, -1]


def _table(data: NpzRecords, part: str) -> Vector:
    """The features and, last, the target of one part of the file, "train" or "test"."""
    facts = npz.facts(data.path)
    names = facts.feature_names or tuple(f"column {place}" for place in range(facts.features[0]))
    table = npz.array(data.path, f"x_{part}")
    columns_by_name = {name: table[:, place].astype(np.float64) for place, name in enumerate(names)}
    columns_by_name[data.label] = npz.array(data.path, f"y_{part}").astype(np.float64)
    return np.stack([columns_by_name[name] for name in (*data.features, data.target)], axis=1)


def dimension_of(data: LogisticModel | NpzRecords) -> int:
    """The number of coordinates of theta: of a table the first is constant."""
    return len(data.features) + 1 if isinstance(data, NpzRecords) else data.features


def units_of(scenario: ErmScenario) -> Vector:
    """The factor by which each coordinate is multiplied for display; see `Records`."""
    data, d = scenario.data, dimension_of(scenario.data)
    if not isinstance(data, NpzRecords):
        return np.ones(d)
    half = (np.array([*data.high, data.target_high]) - np.array([*data.low, data.target_low])) / 2
    units = np.concatenate([[1.0], 1 / half[:-1]]) / math.sqrt(d)
    return units if scenario.objective.loss != "squared" else units * half[-1]


def loss_of(scenario: ErmScenario) -> Loss:
    """The requested loss; the squared one is the square within the radius."""
    objective = scenario.objective
    if objective.loss == "squared":
        return Squared.within(objective.radius)
    return HuberSVM(objective.width) if objective.loss == "huber-svm" else Logistic()


def study_streams(scenario: ErmScenario, people: Records) -> Streams:
    """The streams of a scenario on its records: any other scenario or data has other noise."""
    settings = {key: value for key, value in scenario.tables().items() if key not in _WITHOUT_EFFECT}
    settings["data"].pop("path", None)  # the digest identifies the data, independently of their path
    settings["data"].pop("public", None)  # which decides about the page alone
    text = f"{sorted(settings.items())}/{people.digest}"
    return Streams(scenario.seed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
