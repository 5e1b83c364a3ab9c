"""Streams of the operating system: never the same twice, not even in a process that was forked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedprivacy.errors import InputError
from fedprivacy.io.processes import pool
from fedprivacy.randomness.streams import Streams
from fedprivacy.randomness.system import SystemStreams, check_noise, fresh, streams_for


def _draw(number: int) -> float:
    return SystemStreams(1).noise("local", round=0, member=0).standard_normal()


def test_no_two_draws_are_the_same_in_any_process() -> None:
    with pool(2) as processes:
        drawn = [*processes.map(_draw, range(40)), *map(_draw, range(40))]
    streams = SystemStreams(1)
    drawn += [stream.standard_normal() for stream in streams.noises("batches", range(40), round=1)]
    drawn += [streams.cohort(3).standard_normal() for _ in range(40)]
    assert len(set(drawn)) == 160
    assert stats.kstest(drawn, "norm").pvalue > 1e-6


def test_what_is_no_secret_stays_seeded() -> None:
    system, seeded = SystemStreams(5, "run"), Streams(5, "run")
    assert system.torch_seed("model") == seeded.torch_seed("model")
    assert system.stream("order", round=2).random() == seeded.stream("order", round=2).random()
    pairs = zip(system.streams("batches", range(3)), seeded.streams("batches", range(3)), strict=True)
    assert all(one.random() == other.random() for one, other in pairs)


def test_a_seeded_cohort_is_that_of_every_earlier_version() -> None:
    streams = Streams(7)
    assert streams.cohort(3).random() == streams.stream("cohort", round=3).random()


def test_each_generator_has_a_state_of_its_own() -> None:
    states = [fresh().bit_generator.state["state"] for _ in range(100)]
    assert len({state["key"].tobytes() for state in states}) == 100
    assert len({state["counter"].tobytes() for state in states}) == 100


def test_where_noise_comes_from_is_one_of_two_words() -> None:
    assert type(streams_for("seeded", Streams(1))) is Streams
    assert type(streams_for("system", Streams(1))) is SystemStreams
    for wrong in ("System", True, "", None):
        with pytest.raises(InputError, match='must be "system"'):
            check_noise(wrong, "run config")


def test_fresh_generators_fill_both_halves_of_what_they_draw() -> None:
    """Of 64 bits each is a fair coin: off by 0.2 in one of 64 about once in 10^7 times."""
    words = np.array([fresh().integers(2**64, dtype=np.uint64) for _ in range(1000)])
    bits = np.unpackbits(words.view(np.uint8).reshape(len(words), -1), axis=1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.1
