"""The intervals are compared with curves whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from fedprivacy.forecast.curve import Curve, curve_of
from fedprivacy.forecast.law import Law

X = (9.0, 18.0, 36.0, 72.0, 144.0, 287.0, 574.0, 1149.0)
RECORDS = 1000


def measured(truth: Law, seed: int, *, spread: float = 0.015, repeats: int = 3) -> Curve:
    """A curve of repeats around a law, on development records of finite number that all share."""
    stream = np.random.default_rng(seed)
    expected = truth.accuracy(np.array(X))
    shared = stream.standard_normal() * np.sqrt(expected * (1 - expected) / RECORDS)
    drawn = expected[:, None] + shared[:, None] + spread * stream.standard_normal((len(X), repeats))
    points = [(x, list(values)) for x, values in zip(X, drawn, strict=True)]
    highest = min(1.0, float(np.asarray(truth.ceiling)) + 0.02)
    return curve_of(points, floor=truth.floor, highest=highest, records=RECORDS, seed=seed)


@pytest.mark.parametrize(
    ("truth", "target"), [(Law(0.1, 0.95, 100.0, 1.2), 0.8), (Law(0.5, 0.85, 300.0, 1.0), 0.75)]
)
def test_intervals_cover_the_truth(truth: Law, target: float) -> None:
    """Of 30 curves 23 or more are covered, which 95 % coverage misses with a chance of 1e-4."""
    assert binom.cdf(22, 30, 0.95) < 1e-4
    curves = [measured(truth, seed) for seed in range(30)]
    needed, level = float(truth.inverse(target)), float(truth.accuracy(200.0))
    ends = [curve.needed(target) for curve in curves]
    assert sum(low <= needed <= high for _, low, high in ends) >= 23
    accuracies = [curve.accuracy(200.0) for curve in curves]
    assert sum(low <= level <= high for _, low, high in accuracies) >= 23
    # An interval that covers by being useless would be no interval.
    assert np.median([high / low for _, low, high in ends]) < 5
    assert sum(curve.held_out.agrees for curve in curves) >= 23


def test_the_same_curve_has_the_same_interval() -> None:
    truth = Law(0.1, 0.95, 100.0, 1.2)
    first, again = measured(truth, 3), measured(truth, 3)
    assert first.needed(0.8) == again.needed(0.8)
    assert first.held_out == again.held_out
    assert first.needed(0.8) != replace(first, seed=4).needed(0.8)


def test_fewer_development_records_widen_the_interval() -> None:
    curve = measured(Law(0.1, 0.95, 100.0, 1.2), 1)
    _, low, high = curve.accuracy(200.0)
    _, lower, higher = replace(curve, records=50).accuracy(200.0)
    assert higher - lower > 2 * (high - low)


def test_a_curve_that_bends_another_way_is_not_extrapolated() -> None:
    truth = measured(Law(0.1, 0.95, 400.0, 1.2), 2, spread=0.002)
    assert truth.follows_the_law
    assert truth.limit == 4 * X[-1]
    # What was measured at the largest number is far above the law of the others.
    jumped = replace(truth, accuracies=(*truth.accuracies[:-2], (0.3, 0.31, 0.3), (0.9, 0.91, 0.9)))
    assert not jumped.held_out.agrees
    assert jumped.limit == X[-1]
    # Accuracy that falls with more clients.
    falling = replace(truth, accuracies=truth.accuracies[::-1])
    assert falling.fall > 3
    assert not falling.follows_the_law


def test_points_come_in_the_order_of_their_numbers() -> None:
    points = [(8.0, [0.3, 0.3]), (2.0, [0.1, 0.2]), (4.0, [0.2, 0.2]), (1.0, [0.1, 0.1])]
    curve = curve_of(points, floor=0.1, highest=1.0, records=100, seed=1)
    assert curve.x == (1.0, 2.0, 4.0, 8.0)
    assert curve.means.tolist() == pytest.approx([0.1, 0.15, 0.2, 0.3])
