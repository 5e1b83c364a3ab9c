"""The strategy matrix and the noise that it makes; the claim of the mechanism is in `claims`."""

from __future__ import annotations

import doctest
import itertools

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms import strategy_matrix
from fedprivacy.mechanisms.banded import BandedGaussian, CorrelatedNoise
from fedprivacy.mechanisms.combinations import BANDS_CAN_BE_SEARCHED, MOST_WORK, Terms
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.strategy_matrix import Strategy, best_strategy, square_root
from fedprivacy.randomness.streams import Streams
from fedprivacy.randomness.system import SystemStreams

SIZES = [(1, 1, 0.0), (5, 9, 0.0), (12, 3, 0.0), (12, 4, 0.9), (60, 8, 0.5)]


def squared_error(matrix: np.ndarray, momentum: float = 0.0) -> float:
    """The squared error of all models, by dense matrices."""
    rounds = len(matrix)
    steps = np.subtract.outer(np.arange(rounds), np.arange(rounds))
    gains = np.where(steps >= 0, sum(momentum**power * (steps >= power) for power in range(rounds)), 0.0)
    return float(np.sum((gains @ np.linalg.inv(matrix)) ** 2))


@pytest.mark.parametrize(("rounds", "bands", "momentum"), SIZES)
def test_a_strategy_is_lower_triangular_banded_and_of_columns_of_norm_1(rounds, bands, momentum) -> None:
    matrix = best_strategy(rounds, bands, momentum).matrix()
    later = np.subtract.outer(np.arange(rounds), np.arange(rounds))
    assert (matrix[(later < 0) | (later >= bands)] == 0).all()
    assert np.abs(np.linalg.norm(matrix, axis=0) - 1).max() < 1e-12
    apart = np.abs(later) >= bands
    assert ((matrix.T @ matrix)[apart] == 0).all()


def test_answers_that_lie_closer_than_the_bands_cost_more_than_they_are_charged() -> None:
    """Why the separation is kept: with one round less between them two answers add up."""
    matrix = best_strategy(12, 4).matrix()
    worst = {
        apart: max(
            np.linalg.norm(matrix[:, [first, first + apart]] @ signs)
            for first in range(12 - apart)
            for signs in itertools.product((1, -1), repeat=2)
        )
        for apart in (3, 4)
    }
    assert worst[4] == pytest.approx(np.sqrt(2), abs=1e-12)
    assert worst[3] > 1.05 * np.sqrt(2)


@pytest.mark.parametrize(("rounds", "bands", "momentum"), SIZES[1:])
def test_the_best_strategy_beats_the_square_root_and_its_own_neighbours(rounds, bands, momentum) -> None:
    """It minimises the error of the Toeplitz matrix; dividing by equal norms at the end too comes on top."""
    best = best_strategy(rounds, bands, momentum)

    def searched(c: np.ndarray) -> float:
        dense = sum(np.diag(np.full(rounds - lag, value), -lag) for lag, value in enumerate(c))
        return float(c @ c) * squared_error(dense, momentum)

    least = searched(best.coefficients)
    assert squared_error(best.matrix(), momentum) <= least
    assert searched(square_root(rounds, bands, momentum).coefficients) > least
    for seed in range(20):
        moved = best.coefficients + 0.01 * np.random.default_rng(seed).normal(size=best.bands)
        assert searched(moved) > least


def test_more_bands_leave_less_noise_in_the_models() -> None:
    errors = [squared_error(best_strategy(60, bands).matrix()) for bands in (1, 2, 4, 8, 16, 60)]
    assert errors[0] == pytest.approx(60 * 61 / 2)
    assert (np.diff(errors) < 0).all()
    assert errors[3] < errors[0] / 4
    # As docs/less-loss.md has it.
    left = [np.sqrt(squared_error(best_strategy(40, bands).matrix()) / 40) for bands in (1, 8, 40)]
    assert np.round(left, 2).tolist() == [4.53, 2.27, 1.99]


def test_a_known_strategy_is_found_to_the_last_digit() -> None:
    """Another machine has to find the same one, or a run would go on with other noise than it began with."""
    c = best_strategy(40, 4).coefficients
    assert (c / c[0]).round(4).tolist() == KNOWN


KNOWN = [1.0, 0.6303, 0.5127, 0.4296]


@pytest.mark.parametrize(
    ("coefficients", "says"),
    [
        ([], "from 1 to 3"),
        ([1.0, 1.0, 1.0, 1.0], "from 1 to 3"),
        ([1.0, np.nan], "finite"),
        ([1.0, np.inf], "finite"),
        ([[1.0]], "finite"),
        ([0.0, 1.0], "inverted"),
        ([-1.0, 1.0], "inverted"),
        ([1e-9, 1.0], "inverted"),
    ],
)
def test_what_is_no_strategy_is_refused(coefficients: list, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Strategy(np.array(coefficients), 3)


@pytest.mark.parametrize("asked", [(0, 1, 0.0), (3, 0, 0.0), (3, 2, 1.0), (10**6, 10**4, 0.0)])
def test_a_search_out_of_range_is_refused(asked: tuple) -> None:
    with pytest.raises(InputError, match="bands"):
        best_strategy(*asked)
    with pytest.raises(InputError, match="bands"):
        _ = BandedGaussian(1.0, 1.0, asked[1], asked[0], asked[2]).strategy


def test_a_plan_and_a_scenario_are_refused_where_the_search_is() -> None:
    rounds = 10**6
    most = MOST_WORK // rounds
    with pytest.raises(InputError, match="bands"):
        best_strategy(rounds, most + 1)
    assert BANDS_CAN_BE_SEARCHED.is_broken(Terms(bands=most + 1, rounds=rounds))
    assert not BANDS_CAN_BE_SEARCHED.is_broken(Terms(bands=most, rounds=rounds))


def test_a_search_that_fails_costs_accuracy_and_not_privacy(monkeypatch) -> None:
    class Failed:
        x, fun = np.full(3, np.nan), np.nan

    monkeypatch.setattr(strategy_matrix.scipy.optimize, "minimize", lambda *args, **options: Failed)
    found = best_strategy.__wrapped__(12, 4)
    assert np.abs(np.linalg.norm(found.matrix(), axis=0) - 1).max() < 1e-12
    assert np.allclose(found.matrix(), square_root(12, 4).matrix(), atol=1e-4)


@pytest.mark.parametrize(("rounds", "bands", "momentum"), SIZES)
def test_the_noise_is_the_inverse_of_the_matrix_times_independent_noise(rounds, bands, momentum) -> None:
    mechanism = BandedGaussian(0.5, 3.0, bands, rounds, momentum)
    noise = CorrelatedNoise(mechanism, 4)
    drawn = np.array([noise.draw(number, Streams(1)) for number in range(rounds)])
    white = np.array(
        [Streams(1).noise("central", round=number).standard_normal(4) for number in range(rounds)]
    )
    assert np.allclose(drawn, 1.5 * np.linalg.inv(mechanism.strategy.matrix()) @ white, atol=1e-10)


def test_one_band_is_the_gaussian_mechanism_bit_for_bit() -> None:
    noise = CorrelatedNoise(BandedGaussian(0.5, 3.0, 1, 4), 5)
    for number in range(4):
        stream = Streams(1).noise("central", round=number)
        assert np.array_equal(noise.draw(number, Streams(1)), Gaussian(0.5, 3.0).draw(5, stream))


def test_past_noise_is_drawn_again_to_the_same_bits() -> None:
    mechanism = BandedGaussian(1.0, 2.0, 4, 12)
    whole = CorrelatedNoise(mechanism, 7)
    first = [whole.draw(number, Streams(3)) for number in range(12)]
    for number in (11, 5, 5, 0, 3):  # after a break, backward, again
        assert np.array_equal(CorrelatedNoise(mechanism, 7).draw(number, Streams(3)), first[number])
        assert np.array_equal(whole.draw(number, Streams(3)), first[number])


def test_what_cannot_be_drawn_again_is_refused() -> None:
    noise = CorrelatedNoise(BandedGaussian(1.0, 2.0, 4, 12), 7)
    streams = SystemStreams(1)
    noise.draw(0, streams)
    noise.draw(1, streams)
    for number in (0, 1, 3):
        with pytest.raises(InputError, match="cannot be drawn again"):
            noise.draw(number, streams)
    for number in (-1, 12):
        with pytest.raises(InputError, match="rounds 0 to 11"):
            noise.draw(number, Streams(1))
    with pytest.raises(InputError, match="by itself"):
        BandedGaussian(1.0, 2.0, 4, 12).draw(7, Streams(1).noise("central"))


@pytest.mark.parametrize("wrong", [{"bands": 0}, {"rounds": 0}, {"momentum": 1.0}, {"momentum": -0.1}])
def test_what_is_no_banded_noise_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError, match="banded noise"):
        BandedGaussian(**{"clipping_norm": 1.0, "noise_multiplier": 1.0, "bands": 2, "rounds": 3, **wrong})


def test_the_examples_of_the_docstrings_hold() -> None:
    found = doctest.testmod(strategy_matrix)
    assert found.attempted > 0
    assert found.failed == 0
