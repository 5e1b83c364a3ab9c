"""Chances of the largest noisy score against closed forms, enumeration and the algorithms' own words."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from claims import checks

from fedprivacy.mechanisms import argmax

KINDS = (argmax.gumbel, argmax.exponential, argmax.laplace)
BELOW = np.array([0.0, -0.3, -1.0, -1.0, -4.0])


def permute_and_flip(below: np.ndarray) -> np.ndarray:
    """McKenna and Sheldon 2020, Algorithm 1, over all orders: accept a candidate with probability e^score."""
    chances = np.zeros(len(below))
    for order in itertools.permutations(range(len(below))):
        left = 1 / math.factorial(len(below))
        for candidate in order:
            chances[candidate] += left * math.exp(below[candidate])
            left *= -math.expm1(below[candidate])
    return chances


def test_exponential_noise_is_permute_and_flip() -> None:
    assert argmax.exponential(BELOW) == pytest.approx(permute_and_flip(BELOW), rel=1e-12)
    for size in (1, 2, 7):
        below = -np.arange(size) / 3.0
        assert argmax.exponential(below) == pytest.approx(permute_and_flip(below), rel=1e-12)


@pytest.mark.parametrize("gap", [0.0, 0.1, 1.0, 12.5, 100.0, 600.0])
def test_two_candidates_have_closed_forms(gap: float) -> None:
    below = np.array([-gap, 0.0])
    assert argmax.gumbel(below)[0] == pytest.approx(math.exp(-gap) / (1 + math.exp(-gap)), rel=1e-12)
    assert argmax.exponential(below)[0] == pytest.approx(math.exp(-gap) / 2, rel=1e-11)
    assert argmax.laplace(below)[0] == pytest.approx(math.exp(-gap) * (2 + gap) / 4, rel=1e-11)


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 40, 700])
@pytest.mark.parametrize("spread", [0.0, 0.01, 3.0, 200.0])
def test_chances_add_up_and_follow_the_order_of_the_scores(kind, size: int, spread: float) -> None:
    below = -spread * np.sort(checks.stream("spread").random(size))
    below -= below.max()
    chances = kind(below)
    assert chances.sum() == pytest.approx(1, abs=1e-11)
    assert (chances >= 0).all()
    assert (np.diff(chances) <= 1e-12).all()
    if spread == 0:
        assert chances == pytest.approx(np.full(size, 1 / size), rel=1e-10)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("kind", [argmax.gumbel, argmax.exponential])
def test_very_many_candidates(kind) -> None:
    chances = kind(np.concatenate([[0.0], np.full(200_000, -5.0)]))
    assert chances.sum() == pytest.approx(1, abs=1e-9)


def test_what_is_below_all_numbers_has_no_chance() -> None:
    for kind in KINDS:
        assert kind(np.array([0.0, -np.inf, -1e300]))[1:].max() < 1e-280
