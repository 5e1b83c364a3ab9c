"""The sampler decides as exact arithmetic does. Statistical tests have fixed seeds; false-alarm rate 1e-6 each."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from claims.checks import FALSE_ALARM, fits
from scipy import stats

from fedprivacy.mechanisms import exact_sampling
from fedprivacy.mechanisms.exact_sampling import LogConcave, _steps
from fedprivacy.mechanisms.integer_noise import DiscreteGaussianLaw, Poisson
from fedprivacy.randomness.streams import Streams

LAWS = [
    *(Poisson(mean) for mean in (1e-3, 0.4, 1.0, 5.5, 37.0, 1e3, 4.4e7, 2.0**52)),
    *(DiscreteGaussianLaw(variance) for variance in (0.1, 1.0, 90.0, 2.0**40)),
]
IDS = [f"{type(law).__name__} {law.variance:g}" for law in LAWS]


@pytest.mark.parametrize("law", LAWS, ids=IDS)
def test_the_staircase_is_above_the_distribution(law: LogConcave) -> None:
    """Where the tail is thickest: over every integer of small steps, and near both ends of large ones."""
    ends = np.arange(-40, 41)[:, None] * law.width + np.array([-1, 0, 1, law.width // 2])
    offsets = np.unique(np.concatenate([np.arange(-2000, 2000), ends.reshape(-1)]))
    offsets = offsets[[law.possible(law.mode + int(offset)) for offset in offsets]]
    steps = np.where(offsets < 0, -1 - offsets, offsets) // law.width
    heights = law.log_ratio(law.mode + offsets) + steps * math.log(2)
    assert heights.max() <= law.bound
    assert heights.max() > law.bound - 1e-6  # and touches it
    assert law.width == 1 or 0.6 <= law.width / math.sqrt(law.variance) < 1.2


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("law", LAWS, ids=IDS)
def test_exact_decisions_are_those_in_floating_point(
    law: LogConcave, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = law.draw(100, Streams(1).stream("draws"))
    monkeypatch.setattr(exact_sampling, "SLACK", 2.0)  # nothing is certain
    assert np.array_equal(law.draw(100, Streams(1).stream("draws")), fast)


@pytest.mark.parametrize("law", LAWS, ids=IDS)
def test_a_table_changes_no_draw(law: LogConcave, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = law.draw(20_000, Streams(2).stream("draws"))
    monkeypatch.setattr(exact_sampling, "_WIDEST", 0)
    assert np.array_equal(law.draw(20_000, Streams(2).stream("draws")), fast)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("law", [Poisson(37.0), DiscreteGaussianLaw(90.0)], ids=["Poisson", "Gaussian"])
@pytest.mark.parametrize("offset", [3, -5])
def test_a_number_too_near_to_call_gets_further_bits(law: LogConcave, offset: int) -> None:
    """Of uniform numbers whose first 64 bits are those of r, the part of r beyond these bits is accepted."""
    step = (offset if offset >= 0 else -1 - offset) // law.width
    with localcontext() as context:
        context.prec = 80
        exact = (law.exact_log_ratio(law.mode + offset) + step * Decimal(2).ln() - Decimal(law.bound)).exp()
        word, part = divmod(exact * 2**64, 1)
    stream = Streams(3).stream("bits")
    accepted = sum(law.accepts(offset, int(word), stream) for _ in range(200))
    assert stats.binomtest(accepted, 200, float(part)).pvalue > FALSE_ALARM
    assert law.accepts(offset, int(word) - 1, stream)
    assert not law.accepts(offset, int(word) + 1, stream)


def test_steps_halve_whatever_the_first_bits_are() -> None:
    stream = Streams(4).stream("steps")
    first = stream.integers(0, 1 << 31, 200_000, dtype=np.uint64)
    halves = 0.5 ** np.arange(1, 41)
    fits(np.bincount(_steps(first, stream), minlength=41), np.append(halves, 1 - halves.sum()))
    # 31 zeros leave everything to the words that follow.
    longer = _steps(np.zeros(200_000, dtype=np.uint64), stream) - 31
    fits(np.bincount(longer, minlength=41), np.append(halves, 1 - halves.sum()))


def test_what_cannot_be_is_never_drawn() -> None:
    assert Poisson(0.4).draw(100_000, Streams(5).stream("small")).min() == 0
    assert not Poisson(0.4).accepts(-1, 0, Streams(5).stream("small"))
