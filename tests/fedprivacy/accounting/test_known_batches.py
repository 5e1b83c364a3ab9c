"""Batches drawn with replacement: the law of S by hand, epsilon by simulation, and nothing rounded down."""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy.stats import binom, norm

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_deltas, gaussian_epsilon
from fedprivacy.accounting.known_batches import _law, known_batches
from fedprivacy.errors import InputError, UnsupportedEvent

DELTA = 1e-5


def drawn(noise: float, records: int, batch: int, steps: int) -> dp.DpEvent:
    sample = dp.SampledWithReplacementDpEvent(records, batch, dp.GaussianDpEvent(noise))
    return dp.SelfComposedDpEvent(sample, steps)


def spent(event: dp.DpEvent, delta: float = DELTA, adjacency: str = "replace-one") -> float:
    found = epsilon(event, delta, adjacency)
    assert found.accountant == "known batches"
    return found.epsilon


@pytest.mark.parametrize(
    ("records", "batch", "steps"), [(3, 2, 3), (10, 4, 2), (2, 5, 4), (1, 3, 7), (50, 1, 6)]
)
def test_the_law_of_the_sum_of_squares_is_that_of_all_outcomes(records: int, batch: int, steps: int) -> None:
    once = binom.pmf(np.arange(batch + 1), batch, 1 / records).tolist()
    by_hand: dict[int, float] = defaultdict(float)
    for counts in itertools.product(range(batch + 1), repeat=steps):
        by_hand[sum(k * k for k in counts)] += math.prod(once[k] for k in counts)
    law = _law(records, batch, steps)
    assert (law.step, law.lost < 1e-25) == (1, True)
    assert law.mass.sum() == pytest.approx(1, rel=1e-12)
    for value, mass in zip(law.values, law.mass, strict=True):
        assert mass == pytest.approx(by_hand[int(value)], rel=1e-10, abs=1e-13)


@pytest.mark.parametrize(
    ("records", "batch", "steps"), [(10, 1000, 10**6), (100, 300, 10**6), (2, 10**8, 10)]
)
def test_on_a_coarser_grid_sums_are_rounded_up_and_hardly(records: int, batch: int, steps: int) -> None:
    law = _law(records, batch, steps)
    rate = 1 / records
    mean = steps * (batch * rate * (1 - rate) + (batch * rate) ** 2)
    assert law.step > 1
    assert mean * (1 - 1e-9) <= law.values @ law.mass <= mean * 1.001
    assert law.mass.sum() == pytest.approx(1, rel=1e-5)


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize(
    ("noise", "records", "batch", "steps", "delta"),
    [(1.0, 1000, 10, 100, 1e-2), (4.0, 100, 10, 100, 1e-3), (2.0, 1000, 50, 20, 1e-2), (40.0, 10, 30, 10, 1e-3),
     (0.7, 50, 1, 30, 1e-2), (25.0, 300, 32, 1000, 1e-4)],
)  # fmt: skip
@pytest.mark.parametrize(("adjacency", "sensitivity"), [("replace-one", 2.0), ("zero-out", 1.0)])
def test_epsilon_agrees_with_a_simulation_of_the_draws(
    noise: float, records: int, batch: int, steps: int, delta: float, adjacency: str, sensitivity: float
) -> None:
    """False-alarm rate below 1e-6 each: five standard errors of 100,000 simulated runs."""
    stream = np.random.default_rng(7)
    squares = np.zeros(100_000)
    for _ in range(steps):
        squares += stream.binomial(batch, 1 / records, size=len(squares)) ** 2
    mu = np.maximum(np.sqrt(squares) * sensitivity / noise, 1e-9)
    found = known_batches(((drawn(noise, records, batch, 1).event, steps),), delta, adjacency)
    deltas = norm.cdf(mu / 2 - found / mu) - np.exp(found + norm.logcdf(-mu / 2 - found / mu))
    assert deltas.mean() == pytest.approx(delta, abs=5 * deltas.std() / math.sqrt(len(mu)))


def test_a_single_record_stands_in_every_place() -> None:
    for adjacency, sensitivity in (("replace-one", 2), ("zero-out", 1)):
        exact = gaussian_epsilon(DELTA, 4 * math.sqrt(9) * sensitivity / 20)
        assert exact <= spent(drawn(20.0, 1, 4, 9), adjacency=adjacency) <= exact * (1 + 1e-5)


def test_many_steps_cost_what_their_mean_square_costs() -> None:
    rate, batch, steps = 1e-4, 100, 10**6
    mean = steps * (batch * rate * (1 - rate) + (batch * rate) ** 2)
    exact = gaussian_epsilon(DELTA, 2 * math.sqrt(mean) / 100)
    assert exact < spent(drawn(100.0, 10_000, batch, steps)) < 1.001 * exact


def test_gaussian_releases_of_everybody_add_up_with_the_batches() -> None:
    both = dp.ComposedDpEvent([drawn(20.0, 1, 4, 9), dp.SelfComposedDpEvent(dp.GaussianDpEvent(10.0), 4)])
    mu = 2 * math.sqrt(9 * 16 / 400 + 4 / 100)
    assert spent(both) == pytest.approx(gaussian_epsilon(DELTA, mu), rel=1e-5)
    assert spent(both) > gaussian_epsilon(DELTA, mu)


def test_batches_of_several_kinds_add_up_on_one_grid() -> None:
    once = spent(drawn(10.0, 100, 10, 200))
    halves = [drawn(noise, 100, 10, 100) for noise in (10.0, 10.0 * (1 + 1e-9))]
    assert once * (1 - 1e-6) <= spent(dp.ComposedDpEvent(halves)) <= once * 1.001
    other = dp.ComposedDpEvent([drawn(10.0, 100, 10, 200), drawn(10.0, 10**6, 10, 200)])
    assert once < spent(other) < once * 1.01


def test_a_sample_of_several_releases_is_one_of_all_their_information() -> None:
    pair = dp.SelfComposedDpEvent(dp.GaussianDpEvent(10.0), 2)
    sample = dp.SelfComposedDpEvent(dp.SampledWithReplacementDpEvent(100, 10, pair), 50)
    assert spent(sample) == pytest.approx(spent(drawn(10.0 / math.sqrt(2), 100, 10, 50)), rel=1e-7)


def test_one_place_is_known_to_be_one_of_a_sample_without_replacement_too() -> None:
    one = dp.SampledWithoutReplacementDpEvent(1000, 1, dp.GaussianDpEvent(0.2))
    event = dp.SelfComposedDpEvent(one, 100)
    assert spent(event, adjacency="zero-out") == pytest.approx(
        known_batches(((drawn(0.2, 1000, 1, 1).event, 100),), DELTA, "zero-out")
    )


def test_who_is_hardly_ever_drawn_is_hidden_by_delta_alone() -> None:
    assert spent(drawn(1e-3, 10**7, 1, 10), delta=1.01e-6) == 0
    assert spent(drawn(1e-3, 10**7, 1, 10), delta=0.99e-6) > 1000


def test_more_noise_steps_places_or_delta_go_the_right_way() -> None:
    base = spent(drawn(5.0, 100, 10, 50))
    assert spent(drawn(6.0, 100, 10, 50)) < base < spent(drawn(5.0, 100, 10, 60))
    assert spent(drawn(5.0, 110, 10, 50)) < base < spent(drawn(5.0, 100, 11, 50))
    assert spent(drawn(5.0, 100, 10, 50), 1e-4) < base
    assert spent(drawn(5.0, 100, 10, 50), adjacency="zero-out") < base


def test_neither_large_batches_nor_many_steps_keep_anybody_waiting() -> None:
    start = time.process_time()
    for records, batch, steps in ((2, 10**9, 10**6), (10, 1000, 10**9), (10**4, 100, 10**6)):
        assert spent(drawn(1e4, records, batch, steps)) > 0
    assert time.process_time() - start < 10


def test_what_cannot_be_accounted_for_is_refused() -> None:
    for event, delta, adjacency in (
        (drawn(5.0, 100, 10, 50), DELTA, "add-remove"),
        (drawn(5.0, 100, 10**9 + 1, 50), DELTA, "replace-one"),
        (drawn(5.0, 100, 10, 50), 1e-30, "replace-one"),
        (dp.SampledWithReplacementDpEvent(100, 10, dp.LaplaceDpEvent(2.0)), DELTA, "replace-one"),
        (dp.ComposedDpEvent([drawn(5.0, 9, 3, 2), dp.LaplaceDpEvent(2.0)]), DELTA, "replace-one"),
    ):
        with pytest.raises(UnsupportedEvent):
            epsilon(event, delta, adjacency)
    with pytest.raises(InputError, match="nothing to draw from"):
        from_json(to_json(drawn(5.0, 0, 10, 50)))
    assert epsilon(drawn(5.0, 0, 0, 50), DELTA, "replace-one").epsilon == 0


def test_many_gaussian_deltas_at_once_are_each_of_them() -> None:
    mu = np.array([0.0, 1e-200, 1e-4, 0.1, 1.0, 7.0, 90.0])
    for at in (0.0, 1e-4, 0.5, 20.0, 3000.0):
        expected = [gaussian_delta(at, float(one)) for one in mu]
        assert gaussian_deltas(at, mu) == pytest.approx(expected, rel=1e-9, abs=1e-300)
