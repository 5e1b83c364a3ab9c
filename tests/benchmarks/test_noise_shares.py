"""The benchmark of noise in shares: rows as they are stated, and vectors whose rounding varies most."""

from __future__ import annotations

import numpy as np
import pytest
from generators.noise_shares import calibrated

from benchmarks.noise_shares import half_integer_vector, main, measured, wrapped_per_million
from fedprivacy.mechanisms.skellam import Skellam
from fedprivacy.randomness.streams import Streams


def test_a_row() -> None:
    mechanism = Skellam(1.0, 1.2, 60, 10, 20, 20)
    row = measured(mechanism, 400, 50_000, Streams(1))
    assert row.message_kibibytes == 10 * 64 / 8 / 1024
    assert row.encoding_seconds > 0
    assert row.noise_seconds > 0
    assert abs(row.bias) < row.worst_bias + 0.02 < 0.05
    assert 0 <= row.wrapped_independent < row.wrapped_equal < 1e6 * mechanism.wrap_chance


@pytest.mark.exhaustive
def test_nothing_wraps_in_a_million_coordinates_of_independent_updates() -> None:
    """Their sum is far shorter than that of equal ones, for which the modulus has room."""
    mechanism = calibrated(1000, 1024, 8.0, 14)
    assert wrapped_per_million(mechanism, False, 10**6, Streams(2).stream("wraps")) == 0
    assert mechanism.wrap_chance < 0.005


@pytest.mark.parametrize("bits", [8, 10, 14])
def test_halves_fill_the_norm(bits: int) -> None:
    mechanism = Skellam(1.0, 1.2, 256, bits, 100, 100)
    vector = half_integer_vector(mechanism)
    norm = np.linalg.norm(vector)
    assert 0.9 * mechanism.scale < norm <= mechanism.scale
    assert set(np.abs(vector % 1)) <= {0.0, 0.5}


def test_it_prints_a_row_for_each_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("benchmarks.noise_shares.CASES", ((20, 60, 4.0, 10), (30, 8, 8.0, 12)))
    main(repeats=50, coordinates=1000)
    printed = capsys.readouterr().out
    assert printed.count("ms") == 4
