"""Quality of a comparison's cell over its seeds."""

from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.records.quality_statistics import quality_over_seeds


def final(worst: float, **more: float) -> dict[str, Any]:
    return {"users": {"users": 30, "worst_users": 3, "mean": 0.8, "worst": worst, **more}}


def test_the_worst_tenth_of_users_is_beside_what_chance_makes_of_it() -> None:
    users = quality_over_seeds([final(0.5, worst_by_chance=0.6), final(0.6, worst_by_chance=0.64)])["users"]
    assert users["worst"]["mean"] == pytest.approx(0.55)
    assert users["worst_by_chance"]["mean"] == pytest.approx(0.62)
    assert users["worst_by_chance"]["low"] < 0.6 < 0.64 < users["worst_by_chance"]["high"]


def test_it_is_unknown_where_an_earlier_run_lacks_it() -> None:
    users = quality_over_seeds([final(0.5, worst_by_chance=0.6), final(0.6)])["users"]
    assert users["worst_by_chance"] is None


def test_an_interval_of_errors_in_units_of_the_target_may_end_above_1() -> None:
    runs = [{"measures": {"rmse": rmse, "f1": f1}} for rmse, f1 in ((7.0, 0.9), (7.4, 1.0))]
    measures = quality_over_seeds(runs)["measures"]
    assert measures["rmse"]["low"] < 7.2 < measures["rmse"]["high"]
    assert 9 < measures["rmse"]["high"] < 10
    assert measures["f1"]["high"] == 1.0
    apart = quality_over_seeds([{"measures": {"rmse": rmse}} for rmse in (0.1, 9.0)])["measures"]
    assert apart["rmse"]["low"] == 0.0
