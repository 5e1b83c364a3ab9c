"""Metrics of numbers: against scikit-learn, with a mean far from zero, and where one is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from fedprivacy.models.metrics.numbers import R2, MeanAbsoluteError, Rmse
from fedprivacy.models.metrics.registry import measure
from fedprivacy.models.prediction import Predictions

ALL = (R2, Rmse, MeanAbsoluteError)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_metrics_are_those_of_scikit_learn(targets: int, mean: float) -> None:
    stream = np.random.default_rng(1)
    y = mean + stream.normal(size=(300, targets)) * np.arange(1, targets + 1)
    named = y + stream.normal(size=(300, targets))
    found = measure(ALL, [(Predictions(named), y)])
    assert found["r2"] == pytest.approx(r2_score(y, named), rel=1e-9)
    if targets == 1:
        assert found["rmse"] == pytest.approx(root_mean_squared_error(y, named))
        assert found["mean_absolute_error"] == pytest.approx(mean_absolute_error(y, named))
    else:  # a mean of different units has none
        assert (found["rmse"], found["mean_absolute_error"]) == (None, None)


def test_the_mean_of_the_targets_explains_nothing() -> None:
    y = np.array([[1.0], [2.0], [3.0]])
    assert measure([R2], [(Predictions(np.full((3, 1), 2.0)), y)])["r2"] == pytest.approx(0.0, abs=1e-12)
    assert measure([R2], [(Predictions(y), y)])["r2"] == 1.0


def test_where_one_is_not_defined() -> None:
    y = np.full((4, 1), 0.5)
    assert measure([R2], [(Predictions(y), y)])["r2"] is None
    diverged = Predictions(np.array([[np.nan], [1.0]]))
    assert set(measure(ALL, [(diverged, np.array([[0.0], [1.0]]))]).values()) == {None}
    endless = Predictions(np.array([[1e300], [np.inf]]))
    assert set(measure(ALL, [(endless, np.array([[0.0], [1.0]]))]).values()) == {None}
