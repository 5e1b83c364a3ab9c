"""The figures of a final model by group and by held-out user, and over the seeds of a comparison."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.data.groups import Grouping
from fedprivacy.records.final_evaluation import LEAST_USERS, by_group, by_user
from fedprivacy.records.quality_statistics import quality_over_seeds


def wilson(hits: int, trials: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The interval by Wilson's formula (1927)."""
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def grouping(*sizes: int) -> Grouping:
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return Grouping("race", tuple("abcdefgh"[: len(sizes)]), codes)


def test_each_group_has_its_accuracy_interval_and_gap() -> None:
    y = np.tile([0, 1], 65)
    named = y.copy()
    named[:20] = 1 - named[:20]  # of group a, 20 of 60 are wrong
    named[100:104] = 1 - named[100:104]  # of group b, 4 of 50
    groups = by_group(grouping(60, 50, 20), y, named)["groups"]
    assert [group["group"] for group in groups] == ["a", "b", "c"]
    assert [group["records"] for group in groups] == [60, 50, 20]
    assert [group["accuracy"] for group in groups] == pytest.approx([40 / 60, 46 / 50, 1.0])
    # Group c is perfect and too small: it is neither compared, nor what others are compared with.
    assert [group["few"] for group in groups] == [False, False, True]
    assert groups[0]["gap"] == pytest.approx(46 / 50 - 40 / 60)
    assert (groups[1]["gap"], groups[2]["gap"]) == (0.0, None)
    for group, hits in zip(groups, (40, 46, 20), strict=True):
        assert (group["low"], group["high"]) == pytest.approx(wilson(hits, group["records"]))


def test_balanced_accuracy_is_of_the_classes_of_a_group() -> None:
    y = np.array([0] * 90 + [1] * 10 + [1] * 40)
    groups = by_group(grouping(100, 40), y, np.zeros(140, int))["groups"]
    assert [group["balanced_accuracy"] for group in groups] == [0.5, 0.0]
    assert groups[0]["accuracy"] == 0.9


def test_a_group_without_records_and_groups_that_are_all_too_small() -> None:
    y = np.zeros(25, int)
    groups = by_group(grouping(20, 0, 5), y, y)["groups"]
    assert [(group["records"], group["few"]) for group in groups] == [(20, True), (0, True), (5, True)]
    assert "accuracy" not in groups[1]
    assert [groups[at]["gap"] for at in (0, 2)] == [None, None]


def test_the_worst_tenth_of_users() -> None:
    users = np.repeat([f"u{at:02d}" for at in range(25)], 10)
    right = np.ones(250, bool)
    for user, wrong in ((3, 10), (7, 8), (9, 6), (11, 1)):
        right[10 * user : 10 * user + wrong] = False
    found = by_user(users, right)
    assert (found["users"], found["worst_users"]) == (25, 3)  # 2.5 rounded up
    assert found["worst"] == pytest.approx((0.0 + 0.2 + 0.4) / 3)
    assert found["mean"] == pytest.approx((21 + 0.0 + 0.2 + 0.4 + 0.9) / 25)
    shares = {each["share"]: each["accuracy"] for each in found["quantiles"]}
    assert (shares[0.0], shares[0.1], shares[0.15], shares[0.5], shares[1.0]) == (0.0, 0.4, 0.9, 1.0, 1.0)


def test_users_that_chance_alone_tells_apart() -> None:
    stream = np.random.default_rng(0)
    users = np.repeat(np.arange(400).astype(str), 20)
    found = by_user(users, stream.random(8000) < 0.8)
    # At 400 users the mean of the worst tenth has a deviation of 0.01.
    assert found["worst"] == pytest.approx(found["worst_by_chance"], abs=0.04)
    assert found["worst"] < 0.68 < 0.78 < found["mean"]
    uneven = by_user(users, np.repeat(np.arange(400) >= 40, 20))
    assert (uneven["worst"], uneven["mean"]) == (0.0, 0.9)
    assert uneven["worst_by_chance"] > 0.7


def test_of_few_users_there_is_no_tenth() -> None:
    users = np.arange(LEAST_USERS).astype(str)
    assert by_user(users, np.ones(LEAST_USERS, bool))["worst_users"] == 1
    assert by_user(users[1:], np.ones(LEAST_USERS - 1, bool)) is None


def final(accuracy: float, few: bool = False, area: float | None = 0.9) -> dict:
    group = {"group": "a", "records": 50, "accuracy": accuracy, "gap": None if few else 0.1, "few": few}
    measures = {
        "balanced_accuracy": accuracy,
        "f1": 0.5,
        "auroc": area,
        "calibration_error": 0.1,
        "brier": 0.2,
    }
    users = {"users": 20, "worst_users": 2, "mean": accuracy, "worst": accuracy - 0.5}
    groups = [{"column": "race", "edges": [], "groups": [group]}]
    return {"accuracy": accuracy, "measures": measures, "groups": groups, "users": users}


def test_a_cell_has_means_and_intervals_over_its_seeds() -> None:
    cell = quality_over_seeds([final(0.7), final(0.8), final(0.9)])
    [column] = cell["groups"]
    [group] = column["groups"]
    assert (column["column"], group["group"], group["records"]) == ("race", "a", 50)
    assert group["accuracy"]["mean"] == pytest.approx(0.8)
    half = 4.302652729911275 * 0.1 / np.sqrt(3)  # Student t with 2 degrees of freedom
    assert group["accuracy"]["low"] == pytest.approx(0.8 - half)
    assert cell["measures"]["balanced_accuracy"]["mean"] == pytest.approx(0.8)
    assert cell["users"]["worst"]["mean"] == pytest.approx(0.3)


def test_what_a_run_lacks_its_cell_lacks() -> None:
    old = {"accuracy": 0.5, "loss": 1.0, "per_class": None}
    assert quality_over_seeds([old, final(0.7)]) == {}
    cell = quality_over_seeds([final(0.7, area=None), final(0.8)])
    assert cell["measures"]["auroc"] is None
    assert cell["measures"]["f1"]["mean"] == 0.5
    assert quality_over_seeds([final(0.7, few=True)])["groups"][0]["groups"][0]["gap"] is None
