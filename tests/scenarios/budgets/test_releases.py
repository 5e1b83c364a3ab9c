"""Budgets of pure mechanisms: epsilon to noise and back, and rounds."""

from __future__ import annotations

import math

import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import best_oracle
from scenarios.budgets.answers import CategoriesQuestion, RandomizedResponseQuestion
from scenarios.budgets.noise import GeometricQuestion, LaplaceQuestion, NormQuestion
from scenarios.budgets.selection import ExponentialQuestion, NoisyMaxQuestion

BACK = [
    (RandomizedResponseQuestion, {}, "gamma"),
    (LaplaceQuestion, {"histogram": True}, "scale"),
    (GeometricQuestion, {"count": True}, "scale"),
    (NormQuestion, {"dimension": 5, "order": "2"}, "scale"),
    (NormQuestion, {"dimension": 5, "order": "1"}, "scale"),
    (ExponentialQuestion, {}, "scale"),
    (NoisyMaxQuestion, {"adjacency": "add-remove"}, "scale"),
]


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize(("kind", "options", "back"), BACK)
@pytest.mark.parametrize(("rounds", "delta"), [(1, 0.0), (20, 0.0), (20, 1e-6)])
def test_the_noise_for_an_epsilon_costs_that_epsilon(kind, options, back, rounds, delta) -> None:
    shared = {**options, "rounds": rounds, "delta": delta}
    asked = kind(**shared, epsilon=2.0).document()
    assert 2.0 * 0.998 <= asked["epsilon"] <= 2.0 * (1 + 1e-12)
    again = kind(**shared, **{back: asked[back]}).document()
    assert again["epsilon"] == pytest.approx(asked["epsilon"], rel=1e-9)
    assert again["epsilon_of_one_round"] == pytest.approx(asked["epsilon_of_one_round"], rel=1e-9)
    if delta == 0:
        assert asked["epsilon_of_one_round"] == pytest.approx(2.0 / rounds)
    else:  # a delta lets each round spend more
        assert asked["epsilon_of_one_round"] > 2.0 / rounds * 1.1


SCALED = [(kind, options) for kind, options, back in BACK if back == "scale"]


@pytest.mark.parametrize(("kind", "options"), SCALED)
def test_a_scale_out_of_range_is_refused_with_the_range_of_scales(kind, options) -> None:
    unit = kind(**options, epsilon=1.0).document()["scale"]
    least, most = unit / 1e4, unit / 1e-6
    words = f"must be from {least:g} to {most:g}; it makes an epsilon from 1e-06 to 10000 in each release."
    for scale in (0.0, least * 0.999, most * 1.001, 1e15, math.inf, math.nan):
        with pytest.raises(InputError) as refused:
            kind(**options, scale=scale).document()
        assert str(refused.value) == f"--scale {scale}: {words}"
    for scale, epsilon in ((least, 1e4), (most, 1e-6)):
        assert kind(**options, scale=scale).document()["epsilon"] == pytest.approx(epsilon)


@pytest.mark.parametrize(("kind", "options", "back"), BACK)
def test_both_directions_at_once_are_refused(kind, options, back) -> None:
    with pytest.raises(InputError, match=f"--epsilon, --{back}: give exactly one"):
        kind(**options, epsilon=1.0, **{back: 0.3}).document()


def test_randomised_response_tells_truth_variance_error_and_how_many_clients() -> None:
    document = RandomizedResponseQuestion(gamma=0.25, clients=400, error=0.1).document()
    assert document["epsilon"] == pytest.approx(math.log(3))
    assert document["truth"] == 0.75
    assert document["variance_of_one_client"] == pytest.approx(1.0)
    assert document["standard_deviation"] == pytest.approx(0.05)
    assert document["clients_needed"] == RandomizedResponse.from_gamma(0.25).clients_needed(0.1)


@pytest.mark.parametrize(("items", "epsilon"), [(3, 1.0), (10, 1.0), (11, 1.0), (1000, 4.0)])
def test_categories_choose_as_auto_does(items: int, epsilon: float) -> None:
    document = CategoriesQuestion(items=items, epsilon=epsilon, clients=100).document()
    assert document["chosen"] == best_oracle(items, epsilon).name
    rows = {row["mechanism"]: row["variance_of_one_client"] for row in document["table"]}
    assert len(rows) == 4
    assert rows[document["chosen"]] == min(rows.values())
    assert "what auto takes" in document["words"]


def test_reports_of_several_rounds_are_composed_for_each_mechanism() -> None:
    document = CategoriesQuestion(items=100, epsilon=4.0, rounds=10, delta=1e-6).document()
    for row in document["table"]:
        assert row["epsilon_of_one_report"] > 0.4
    assert document["epsilon"] <= 4.0 * (1 + 1e-12)


def test_laplace_on_first_names() -> None:
    """The lectures' histogram of 10,000 names at epsilon 0.1: 192 under add-remove, twice that otherwise."""
    asked = {"epsilon": 0.1, "histogram": True, "cells": 10_000, "confidence": 1 - math.exp(-10)}
    added = LaplaceQuestion(**asked, adjacency="add-remove").document()
    replaced = LaplaceQuestion(**asked, adjacency="replace-one").document()
    assert round(added["largest_error"]) == 192
    assert round(replaced["largest_error"]) == 384
    assert (added["sensitivity"], replaced["sensitivity"]) == (1, 2)


def test_counts_are_monotone_unless_a_client_is_replaced() -> None:
    assert NoisyMaxQuestion(epsilon=0.1, adjacency="add-remove").document()["scale"] == pytest.approx(10)
    assert NoisyMaxQuestion(epsilon=0.1, adjacency="replace-one").document()["scale"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (LaplaceQuestion(epsilon=1.0), "--sensitivity, --count, --histogram: give exactly one"),
        (LaplaceQuestion(epsilon=1.0, count=True, sensitivity=1.0), "give exactly one"),
        (GeometricQuestion(epsilon=1.0, sensitivity=1.5), "--sensitivity 1.5: must be a whole number"),
        (GeometricQuestion(epsilon=1.0, sensitivity=math.inf), "--sensitivity inf: must be from 1 to 1e+09"),
        (GeometricQuestion(epsilon=1.0, sensitivity=math.nan), "--sensitivity nan: must be from 1 to 1e+09"),
        (NormQuestion(epsilon=1.0, dimension=3, order="3"), "--order 3: must be one of 1, 2, inf"),
        (NormQuestion(epsilon=1.0, dimension=0), "--dimension 0: must be from 1"),
        (NoisyMaxQuestion(epsilon=1.0, noise="cauchy"), "--noise cauchy: must be one of laplace, gumbel"),
        (ExponentialQuestion(epsilon=1.0, monotone=True), "--monotone: under replace-one"),
        (RandomizedResponseQuestion(gamma=0.5), "--gamma 0.5: must be between 0 and 0.5"),
        (RandomizedResponseQuestion(epsilon=26.0), "--epsilon 26.0: must be from 1e-06 to 25"),
        (RandomizedResponseQuestion(epsilon=1e-6, rounds=10), "makes epsilon = 1e-07 for each of 10 rounds"),
        (CategoriesQuestion(epsilon=1.0, items=1), "--items 1: must be from 2"),
        (LaplaceQuestion(epsilon=1.0, count=True, rounds=0, adjacency="x"), "--rounds 0: must be from 1"),
    ],
)
def test_what_is_wrong_is_said(question, message: str) -> None:
    with pytest.raises(InputError) as refused:
        question.document()
    assert message in str(refused.value)


def test_a_budget_beyond_what_one_answer_may_cost_is_not_used_up() -> None:
    document = RandomizedResponseQuestion(epsilon=1000.0, rounds=100, delta=1e-6).document()
    assert document["epsilon_of_one_round"] <= 25.0
    assert document["epsilon"] <= 1000.0
