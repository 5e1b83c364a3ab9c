"""Calibrated noise: the reference table, never too little, hardly too much."""

from __future__ import annotations

import time
from collections.abc import Callable

import dp_accounting
import pytest
from dp_accounting import dp_event as dp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.accounting.events import RELATIONS
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.sampling.batches import Batches, PoissonBatches, ReplacementBatches, ShuffledBatches

DELTA = 1e-5
MakeEvent = Callable[[float], dp.DpEvent]


def poisson(rate: float = 0.1, rounds: int = 100) -> MakeEvent:
    return lambda z: dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z)), rounds)


def fixed(noise: float) -> dp.DpEvent:
    release = dp.SampledWithoutReplacementDpEvent(1000, 100, dp.GaussianDpEvent(noise))
    return dp.SelfComposedDpEvent(release, 100)


def everybody(rounds: int) -> MakeEvent:
    return lambda z: dp.SelfComposedDpEvent(dp.GaussianDpEvent(z), rounds)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("make_event", "adjacency", "table"),
    [
        (poisson(), "add-remove", (3.942, 2.248, 1.386, 0.936)),
        (poisson(), "replace-one", (7.458, 3.982, 2.158, 1.219)),
        (fixed, "replace-one", (8.227, 4.763, 2.947, 1.974)),
        (fixed, "zero-out", (5.362, 3.481, 2.401, 1.731)),
        (everybody(100), "add-remove", (37.31, 19.94, 10.81, 6.00)),
        (everybody(10), "replace-one", (23.6, 12.6, 6.84, 3.80)),
        (everybody(100), "replace-one", (74.6, 39.9, 21.6, 12.0)),
    ],
    ids=[
        "poisson-add-remove",
        "poisson-replace-one",
        "fixed-replace-one",
        "fixed-zero-out",
        "everybody",
        "local-10",
        "local-100",
    ],
)
def test_the_reference_table(make_event: MakeEvent, adjacency: str, table: tuple[float, ...]) -> None:
    for target, expected in zip((1, 2, 4, 8), table, strict=True):
        noise = noise_multiplier(make_event, target, DELTA, adjacency)
        printed = 0.5 * 10.0 ** -len(f"{expected:.4g}".partition(".")[2])  # half of the last printed digit
        assert noise == pytest.approx(expected, abs=max(1e-3 * expected, printed)), target
        assert epsilon(make_event(noise), DELTA, adjacency).epsilon <= target
        assert epsilon(make_event(noise * (1 - 1e-4)), DELTA, adjacency).epsilon > target


@pytest.mark.parametrize("target", [0.01, 0.5, 3.0, 40.0])
def test_one_gaussian_release_is_calibrated_exactly(target: float) -> None:
    sigma = dp_accounting.get_sigma_gaussian(target, 1e-6)
    assert noise_multiplier(dp.GaussianDpEvent, target, 1e-6, "add-remove") == pytest.approx(sigma, rel=1e-8)
    assert noise_multiplier(dp.GaussianDpEvent, target, 1e-6, "replace-one") == pytest.approx(
        2 * sigma, rel=1e-8
    )


@given(
    st.floats(0.05, 20.0),
    st.floats(0.002, 1.0),
    st.integers(1, 300),
    st.sampled_from(list(RELATIONS)),
    st.sampled_from([1e-7, 1e-5, 1e-3]),
)
@settings(max_examples=2, deadline=None)
def test_calibration_never_overspends_and_hardly_underspends(
    target: float, rate: float, rounds: int, adjacency: str, delta: float
) -> None:
    make_event = poisson(rate, rounds)
    noise = noise_multiplier(make_event, target, delta, adjacency)
    assert epsilon(make_event(noise), delta, adjacency).epsilon <= target
    assert epsilon(make_event(noise * (1 - 1e-3)), delta, adjacency).epsilon > target


def test_a_part_with_its_own_noise_is_respected() -> None:
    def make_event(noise: float) -> dp.DpEvent:
        return dp.ComposedDpEvent([everybody(10)(noise), dp.GaussianDpEvent(5.0)])

    noise = noise_multiplier(make_event, 2.0, DELTA, "replace-one")
    assert noise > noise_multiplier(everybody(10), 2.0, DELTA, "replace-one")
    assert epsilon(make_event(noise), DELTA, "replace-one").epsilon == pytest.approx(2.0, rel=1e-6)
    with pytest.raises(InputError, match="cannot be reached"):
        noise_multiplier(make_event, 0.5, DELTA, "replace-one")


def test_what_noise_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be reached"):
        noise_multiplier(lambda z: dp.NonPrivateDpEvent(), 1.0, DELTA, "replace-one")
    with pytest.raises(InputError, match="less noise"):
        noise_multiplier(dp.GaussianDpEvent, 1e12, DELTA, "replace-one")
    with pytest.raises(UnsupportedEvent, match="fixed size"):
        noise_multiplier(fixed, 1.0, DELTA, "add-remove")
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="epsilon"):
            noise_multiplier(dp.GaussianDpEvent, wrong, DELTA, "replace-one")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("make_event", "target", "delta", "seconds"),
    [(poisson(), 2.01, DELTA, 3.0), (poisson(0.01, 100), 8.01, 1e-7, 6.0)],
)
def test_calibration_does_not_keep_anybody_waiting(
    make_event: MakeEvent, target: float, delta: float, seconds: float
) -> None:
    start = time.process_time()  # of this process, so that a busy machine does not fail the test
    noise_multiplier(make_event, target, delta, "replace-one")
    assert time.process_time() - start < seconds


@pytest.mark.parametrize("target", [0.02, 0.1, 0.19, 1.0])
def test_fixed_size_sampling_is_calibrated_at_small_epsilon_too(target: float) -> None:
    def make_event(noise: float) -> dp.DpEvent:
        release = dp.SampledWithoutReplacementDpEvent(100, 55, dp.GaussianDpEvent(noise))
        return dp.SelfComposedDpEvent(release, 3)

    noise = noise_multiplier(make_event, target, 1.5e-6, "replace-one")
    assert 0.998 * target < epsilon(make_event(noise), 1.5e-6, "replace-one").epsilon <= target
    assert epsilon(make_event(0.99 * noise), 1.5e-6, "replace-one").epsilon > target


BATCHES = [PoissonBatches(1000, rate=0.01), PoissonBatches(300, batch_size=32), ShuffledBatches(5, 32),
           ShuffledBatches(5), ReplacementBatches(1000, 1), ReplacementBatches(1000, 10)]  # fmt: skip


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_every_way_to_draw_batches_is_calibrated_soon(batches: Batches) -> None:
    def make_event(noise: float) -> dp.DpEvent:
        return batches.event(dp.GaussianDpEvent(noise), 1000)

    for target in (0.5, 8.0):
        start = time.process_time()
        noise = noise_multiplier(make_event, target, DELTA, "replace-one")
        assert time.process_time() - start < 6
        assert epsilon(make_event(noise), DELTA, "replace-one").epsilon <= target
        assert epsilon(make_event(noise * (1 - 2e-4)), DELTA, "replace-one").epsilon > target
