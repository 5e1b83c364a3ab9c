"""Conditions that do not hold are named, and nothing is forced unless it is asked for, and then said."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from fedprivacy.erm import (
    GradientPerturbation,
    GridExponential,
    HuberSVM,
    Logistic,
    Objective,
    ObjectivePerturbation,
    OneShotAverage,
    OutputPerturbation,
    SiloGradients,
    Squared,
    SufficientStatistics,
    regular_grid,
)
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.conditions import checked_rows
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams

STREAM = Streams(3).stream("conditions")
X = np.array([[0.6, 0.8], [0.3, -0.1], [0.0, 0.0]])
Y = np.array([1.0, -1.0, 1.0])
SQUARE, LOGISTIC = Objective(Squared.within(1.0), 0.1, 3, 2), Objective(Logistic(), 0.1, 3, 2)


def test_rows_longer_than_one_are_refused_by_name_and_scaled_only_when_asked() -> None:
    with pytest.raises(InputError, match=r"condition \|\|x\|\| <= 1 does not hold for 2 of 3 rows"):
        checked_rows(2 * X + 0.5, Y, 2, signs=True)
    scaled, _ = checked_rows(2 * X, Y, 2, signs=True, clip=True)
    assert np.allclose(scaled, [[0.6, 0.8], [0.6, -0.2], [0, 0]])
    assert np.linalg.norm(scaled, axis=1).max() <= 1
    checked_rows(X / np.linalg.norm(X[0]), Y, 2, signs=True)  # rounding alone is no long row


def test_each_record_is_clipped_by_itself() -> None:
    many = STREAM.normal(size=(50, 2)) * 3
    targets = STREAM.normal(size=50) * 2
    together = checked_rows(many, targets, 2, signs=False, clip=True)
    for i in range(50):
        x, y = checked_rows(many[i : i + 1], targets[i : i + 1], 2, signs=False, clip=True)
        assert (x[0] == together[0][i]).all()
        assert y[0] == together[1][i]


def test_rows_of_any_finite_length_are_scaled_and_none_is_longer_than_one() -> None:
    """Squares of numbers beyond 1e154 overflow, which made such rows 0; rounding left rows longer than 1."""
    long = np.array([[3e200, -4e200], [1.7e308, 1.7e308], [1e308, 0.0], [5e-324, 0.0], [3e-170, 4e-170]])
    scaled, _ = checked_rows(long, np.ones(5), 2, signs=True, clip=True)
    assert np.allclose(scaled[:3], [[0.6, -0.8], [0.5**0.5, 0.5**0.5], [1, 0]], atol=1e-11)
    assert (scaled[3:] == long[3:]).all()
    with pytest.raises(InputError, match=r"for 3 of 5 rows \(the largest norm is inf\)"):
        checked_rows(long, np.ones(5), 2, signs=True)
    many = STREAM.normal(size=(2000, 7))
    unit = many / np.linalg.norm(many, axis=1)[:, None] * (1 + 0.9e-12)
    for clip in (False, True):
        short, _ = checked_rows(unit, np.ones(2000), 7, signs=True, clip=clip)
        exact = [sum(Fraction(v) ** 2 for v in row) for row in short[:200].tolist()]
        assert max(exact) <= 1
        assert np.allclose(short, unit, atol=3e-12)


def test_the_result_says_that_rows_were_scaled() -> None:
    plain = OutputPerturbation(LOGISTIC, 1.0).fit(X, Y, STREAM)
    clipped = OutputPerturbation(LOGISTIC, 1.0, clip=True).fit(9 * X, Y, STREAM)
    assert ErmAssumption.CLIPPED not in plain.guarantee.assumptions
    assert ErmAssumption.CLIPPED in clipped.guarantee.assumptions
    assert "scaled to norm 1" in clipped.guarantee.words


def test_what_is_promised_of_an_estimate_names_the_randomness() -> None:
    approach = OutputPerturbation(LOGISTIC, 1.0)
    assert ErmAssumption.DRAWN not in approach.guarantee.assumptions
    assert ErmAssumption.DRAWN in approach.fit(X, Y, STREAM).guarantee.assumptions
    told = OneShotAverage(approach, (len(X),)).fit([(X, Y)], Streams(1)).guarantees
    assert [one.assumptions.count(ErmAssumption.DRAWN) for one in told] == [1, 1, 1]
    gradients = SiloGradients(GradientPerturbation(LOGISTIC, 1.0, 1e-5, steps=2), trust="central")
    told = gradients.fit([(X, Y)], Streams(1)).guarantees
    assert [one.assumptions.count(ErmAssumption.DRAWN) for one in told] == [
        one.epsilon is not None for one in told
    ]
    assert {one.epsilon is None for one in told} == {True, False}


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        (X[:, :1], Y, r"must be \(records, 2\)"),
        (X, Y[:2], "one for each row"),
        (X * np.nan, Y, "x: holds NaN"),
        (X, Y / 0.5, "must be -1 or 1"),
        (X, (Y + 1) / 2, "must be -1 or 1"),
        (X[:2], Y[:2], "their number is public"),
    ],
)
def test_records_that_are_wrong(x: np.ndarray, y: np.ndarray, match: str) -> None:
    with pytest.raises(InputError, match=match):
        OutputPerturbation(LOGISTIC, 1.0).fit(x, y, STREAM)


def test_numbers_as_targets_must_be_bounded() -> None:
    with pytest.raises(InputError, match=r"\|y\| <= 1 does not hold \(the largest is 2\)"):
        SufficientStatistics(SQUARE, 1.0).fit(X, 2 * Y, STREAM)
    SufficientStatistics(SQUARE, 1.0, clip=True).fit(X, 2 * Y, STREAM)


def test_the_number_of_records_is_private_under_add_remove_alone() -> None:
    for adjacency in ("replace-one", "zero-out"):
        with pytest.raises(InputError, match="is public, and must be the same"):
            OutputPerturbation(LOGISTIC, 1.0, adjacency=adjacency).fit(X[:2], Y[:2], STREAM)
    found = OutputPerturbation(LOGISTIC, 1.0, adjacency="add-remove").fit(X[:2], Y[:2], STREAM)
    assert "is a public guess" in found.guarantee.words


def test_conditions_of_the_theorems() -> None:
    flat = Objective(Logistic(), 0.0, 3, 2)
    for approach in (OutputPerturbation, ObjectivePerturbation):
        with pytest.raises(InputError, match="strong convexity does not hold"):
            approach(flat, 1.0)
    GradientPerturbation(flat, 1.0, 1e-3)  # needs none
    with pytest.raises(
        InputError, match=r"lambda > beta/\(m \(e\^epsilon - 1\)\) does not hold.*at least 0.1[0-9]+"
    ):
        ObjectivePerturbation(Objective(Logistic(), 0.001, 3, 2), 1.0)
    with pytest.raises(InputError, match="sufficient for the squared loss alone"):
        SufficientStatistics(LOGISTIC, 1.0)
    with pytest.raises(InputError, match=r"Take Squared.within\(3\)"):
        SufficientStatistics(SQUARE, 1.0, radius=3.0)
    with pytest.raises(InputError, match="no epsilon without a delta"):
        GradientPerturbation(LOGISTIC, 1.0)
    grid = regular_grid(1.0, 3, 2)
    with pytest.raises(InputError, match="condition of a public grid is not stated"):
        GridExponential(LOGISTIC, 1.0, candidates=grid)
    for wrong in (grid[:, :1], grid[:0], ()):
        with pytest.raises(InputError, match=r"must be \(k, 2\)"):
            GridExponential(LOGISTIC, 1.0, candidates=wrong, public=True)
    with pytest.raises(InputError, match="finite"):
        GridExponential(LOGISTIC, 1.0, candidates=grid + np.inf, public=True)


def test_regularisation_is_raised_only_when_asked_and_the_result_says_so() -> None:
    little = Objective(HuberSVM(0.5), 0.001, 3, 2)
    approach = ObjectivePerturbation(little, 1.0, raise_regularisation=True)
    assert approach.hessian_cost(approach.solved) == pytest.approx(0.99 / 2)
    assert "was raised to 0.52" in approach.fit(X, Y, STREAM).guarantee.words
    enough = ObjectivePerturbation(Objective(HuberSVM(0.5), 10.0, 3, 2), 1.0, raise_regularisation=True)
    assert enough.solved is enough.objective
    assert "raised" not in enough.fit(X, Y, STREAM).guarantee.words


def test_values_out_of_range() -> None:
    for epsilon in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="epsilon"):
            OutputPerturbation(LOGISTIC, epsilon)
    for delta in (-0.1, 1.0):
        with pytest.raises(InputError, match="delta"):
            OutputPerturbation(LOGISTIC, 1.0, delta)
    with pytest.raises(InputError, match=r"below 1/\(number of records\) = 0.33"):
        OutputPerturbation(LOGISTIC, 1.0, 0.4)
    with pytest.raises(InputError, match="adjacency"):
        OutputPerturbation(LOGISTIC, 1.0, adjacency="swap")
    for tolerance in (0.0, 2.0):
        with pytest.raises(InputError, match="tolerance"):
            OutputPerturbation(LOGISTIC, 1.0, tolerance=tolerance)
    for share in (0.0, 1.0):
        with pytest.raises(InputError, match="solver_share"):
            ObjectivePerturbation(LOGISTIC, 1.0, solver_share=share)
    for changes in (
        {"radius": 0.0}, {"radius": 1e-320}, {"radius": 1e300}, {"steps": 0}, {"rate": 0.0}, {"rate": 1.5},
        {"step_size": -1.0}, {"step_size": 1e-320}, {"step_size": math.inf},
    ):  # fmt: skip
        with pytest.raises(InputError, match=next(iter(changes))):
            GradientPerturbation(LOGISTIC, 1.0, 1e-3, **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"raise_regularisation.*asks for a regularisation of 3.37e\+13"):
        ObjectivePerturbation(
            Objective(HuberSVM(1e-8), 0.1, 3, 2), 1e-6, raise_regularisation=True
        )  # and blames no regularisation that was set
    for changes in (
        {"regularisation": -1.0},
        {"regularisation": 1e-300},
        {"records": 0},
        {"dimension": 0},
        {"records": 10**10},
    ):
        with pytest.raises(InputError, match=next(iter(changes))):
            Objective(**{"loss": Logistic(), "regularisation": 0.1, "records": 3, "dimension": 2, **changes})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="few dimensions"):
        regular_grid(1.0, 100, 5)
