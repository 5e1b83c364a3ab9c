"""The informed attack against the product's noise: near the bound under zero-out, and never above it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

from fedprivacy.attacks.reconstruction.bound import success_bound
from fedprivacy.attacks.reconstruction.informed import pick
from fedprivacy.attacks.tradeoff import from_event
from fedprivacy.mechanisms.gaussian import Gaussian

NORM, DIMENSION, TRIALS = 2.5, 40, 40_000
RIGHT = {
    "zero-out": (0.148, 0.200, 0.317, 0.565, 0.888),
    "replace-one": (0.122, 0.144, 0.190, 0.290, 0.492),
}


def orthogonal_success(distance: float, candidates: int) -> float:
    """How often `pick` is right among orthogonal candidates of one norm, under Gaussian noise.

    Args:
        distance: The norm of a candidate divided by the noise's standard deviation.
        candidates: Their number.
    """

    def right(z: float) -> float:
        return float(np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * ndtr(z + distance) ** (candidates - 1))

    return float(integrate.quad(right, -12, 12, limit=200)[0])


def rate(mechanism: Gaussian, candidates: np.ndarray, stream: np.random.Generator) -> float:
    truth = stream.integers(len(candidates), size=TRIALS)
    streams = [stream] * TRIALS
    released = mechanism.randomise_all(candidates[truth], streams)
    return float((pick(released, candidates) == truth).mean())


@pytest.mark.parametrize("adjacency", RIGHT)
def test_ten_orthogonal_candidates_at_five_epsilons(adjacency: str) -> None:
    """Four standard deviations of 40,000 trials: .01; false alarms below 1e-3 in all."""
    candidates = NORM * np.eye(DIMENSION)[:10]
    for seed, (epsilon, expected) in enumerate(zip((1, 2, 4, 8, 16), RIGHT[adjacency], strict=True)):
        mechanism = Gaussian.calibrated(epsilon, 1e-5, adjacency, NORM)
        measured = rate(mechanism, candidates, np.random.default_rng(seed))
        distance = NORM / mechanism.standard_deviation
        assert measured == pytest.approx(orthogonal_success(distance, 10), abs=0.01)
        assert measured == pytest.approx(expected, abs=0.011)
        bound = success_bound(from_event(mechanism.event(), adjacency), 0.1)
        assert measured < bound + 0.006
        if adjacency == "zero-out":
            assert measured > 0.85 * bound


def test_a_candidate_of_greater_length_is_no_favourite() -> None:
    candidates = np.array([[1.0, 0.0], [3.0, 0.0]])
    assert pick(np.array([1.5, 0.0]), candidates) == 0
    assert pick(np.array([[2.5, 0.0], [0.9, 5.0]]), candidates).tolist() == [1, 0]
