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
