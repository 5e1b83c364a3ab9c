"""The theorems side by side: the same releases, the same delta, each with its epsilon or its reason."""

from __future__ import annotations

import math

import pytest
from dp_accounting import dp_event as dp

from fedprivacy.accounting.composed import Bound, compositions, gaussian_compositions
from fedprivacy.accounting.composition import advanced, optimal
from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian

DELTA = 1e-5


def by_name(rows: list[Bound]) -> dict[str, Bound]:
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.source
        assert row.applies or row.note
        assert row.delta <= DELTA
    return {row.name: row for row in rows}


def test_pure_releases() -> None:
    rows = by_name(compositions(0.1, 0.0, 100, DELTA))
    found = {name: row.epsilon for name, row in rows.items()}
    assert found["basic"] == 10.0
    assert rows["basic"].delta == 0
    assert found["advanced"] == pytest.approx(5.85, abs=0.005)
    assert found["optimal"] == pytest.approx(4.31, abs=0.005)
    assert found["optimal"] <= found["PLD"] <= found["optimal"] * 1.01
    assert found["optimal"] < found["zCDP"] < found["advanced"]
    assert found["Gaussian"] is None
    assert "Gaussian noise alone" in rows["Gaussian"].note


def test_releases_with_a_delta_of_their_own() -> None:
    rows = by_name(compositions(0.1, 1e-8, 100, DELTA))
    pure = by_name(compositions(0.1, 0.0, 100, DELTA))
    assert rows["basic"].delta == pytest.approx(1e-6)
    assert "delta' = 9e-06" in rows["advanced"].note
    for name in ("advanced", "PLD", "optimal"):
        assert pure[name].epsilon < rows[name].epsilon < pure[name].epsilon * 1.02
    assert not rows["zCDP"].applies


def test_deltas_that_use_up_the_total_leave_no_answer_and_say_why() -> None:
    for row in compositions(0.1, 1e-6, 100, DELTA):
        assert not row.applies
        assert "leave nothing of 1e-05" in row.note or row.name in ("zCDP", "Gaussian")


def test_basic_composition_may_use_the_whole_delta() -> None:
    rows = by_name(compositions(0.1, 1e-7, 100, DELTA))
    assert rows["basic"].epsilon == 10.0
    assert not rows["advanced"].applies


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_gaussian_releases(adjacency: str) -> None:
    rows = by_name(gaussian_compositions(Gaussian(1.0, 10.0).mu(adjacency), 100, DELTA))
    exact = epsilon(dp.SelfComposedDpEvent(dp.GaussianDpEvent(10.0), 100), DELTA, adjacency).epsilon
    assert rows["Gaussian"].epsilon == pytest.approx(exact, rel=1e-9)
    for name in ("PLD", "RDP", "zCDP", "optimal", "advanced", "basic"):
        assert rows[name].epsilon >= exact * (1 - 1e-9), name
    assert rows["PLD"].epsilon < rows["RDP"].epsilon < rows["zCDP"].epsilon < rows["optimal"].epsilon
    # Each theorem of (epsilon, delta) sees one release at its part of delta, and nothing more.
    once = epsilon(dp.GaussianDpEvent(10.0), DELTA / 100, adjacency).epsilon
    assert rows["basic"].epsilon == pytest.approx(100 * once)
    half = epsilon(dp.GaussianDpEvent(10.0), DELTA / 200, adjacency).epsilon
    assert rows["advanced"].epsilon == pytest.approx(advanced(half, DELTA / 200, 100, DELTA / 2)[0])
    assert rows["optimal"].epsilon == pytest.approx(optimal(half, DELTA / 200, 100, DELTA), rel=1e-6)


def test_gaussian_releases_from_their_epsilon_and_delta() -> None:
    noise = noise_multiplier(dp.GaussianDpEvent, 0.1, 1e-7, "add-remove")
    known = by_name(gaussian_compositions(1 / noise, 100, DELTA))
    unknown = by_name(compositions(0.1, 1e-8, 100, DELTA))
    assert known["Gaussian"].epsilon < unknown["optimal"].epsilon  # who knows the noise can say more


def test_hardly_any_noise_has_reasons_instead_of_numbers() -> None:
    rows = by_name(gaussian_compositions(100.0, 10, DELTA))
    assert "more than epsilon = 500" in rows["basic"].note
    assert rows["Gaussian"].epsilon > 1e4
    for row in rows.values():
        assert row.epsilon is None or math.isfinite(row.epsilon)


def test_what_is_out_of_range_is_refused() -> None:
    for ask in (
        lambda: compositions(0.0, 0.0, 1, DELTA),
        lambda: compositions(1.0, 0.0, 0, DELTA),
        lambda: compositions(1.0, 0.0, 1, 0.0),
        lambda: gaussian_compositions(0.0, 1, DELTA),
        lambda: gaussian_compositions(1.0, 1, 1.0),
    ):
        with pytest.raises(InputError, match="must"):
            ask()
