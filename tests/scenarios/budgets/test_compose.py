"""`budget compose` and `budget group`: the theorems side by side, and groups."""

from __future__ import annotations

import math

import pytest

from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import printed
from fedprivacy.scenario.delta import LEAST_DELTA
from scenarios.budgets.compose import ComposeQuestion
from scenarios.budgets.gaussian import GaussianQuestion
from scenarios.budgets.group import GroupQuestion


def test_a_hundred_releases_at_a_tenth() -> None:
    document = ComposeQuestion(rounds=100, epsilon=0.1).document()
    rows = {row["name"]: row["epsilon"] for row in document["table"]}
    assert [round(rows[name], 2) for name in ("basic", "advanced", "optimal")] == [10.0, 5.85, 4.31]
    assert document["epsilon"] == min(value for value in rows.values() if value is not None)
    assert "epsilon = 4.307 at delta = 1e-05" in document["words"]
    assert "post-processing costs nothing" in document["words"]
    assert all(row["source"] for row in document["table"])


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_gaussian_releases_cost_what_budget_gaussian_says(adjacency: str) -> None:
    composed = ComposeQuestion(rounds=100, noise_multiplier=20.0, adjacency=adjacency).document()
    asked = GaussianQuestion(rounds=100, noise_multiplier=20.0, adjacency=adjacency).document()
    assert composed["epsilon"] == pytest.approx(asked["epsilon"], rel=1e-9)


def test_gaussian_releases_from_their_epsilon_and_delta() -> None:
    known = ComposeQuestion(rounds=50, epsilon=0.1, release_delta=1e-7, gaussian=True).document()
    unknown = ComposeQuestion(rounds=50, epsilon=0.1, release_delta=1e-7).document()
    assert known["epsilon"] < unknown["epsilon"]
    once = GaussianQuestion(epsilon=0.1, delta=1e-7).document()
    assert known["noise_multiplier"] == pytest.approx(once["noise_multiplier"], rel=1e-6)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"epsilon": 1.0, "gaussian": True}, "--gaussian: Gaussian noise has no epsilon at delta 0"),
        ({"noise_multiplier": 1.0, "release_delta": 1e-7}, "leave out --gaussian and --release-delta"),
        ({"epsilon": 1.0, "noise_multiplier": 1.0}, "--epsilon, --noise-multiplier: give exactly one"),
        ({"epsilon": 0.1, "release_delta": 0.1}, "no theorem applies: the deltas of the releases sum to 0.3"),
    ],
)
def test_what_contradicts_itself_is_refused(asked, message: str) -> None:
    with pytest.raises(InputError) as refused:
        ComposeQuestion(rounds=3, **asked).document()
    assert message in str(refused.value)


def test_a_group_of_four() -> None:
    document = GroupQuestion(size=4, epsilon=0.5, delta=1e-6).document()
    assert document["epsilon"] == 2.0
    assert document["delta"] == pytest.approx(4 * math.exp(1.5) * 1e-6)
    assert "all records of 4 clients together replaced by any others" in document["words"]
    exact = GroupQuestion(size=4, noise_multiplier=10.0, delta=1e-6, adjacency="add-remove").document()
    one = GaussianQuestion(noise_multiplier=2.5, delta=1e-6, adjacency="add-remove").document()
    assert exact["epsilon"] == pytest.approx(one["epsilon"], rel=1e-9)
    assert exact["delta"] == 1e-6


def test_a_group_that_is_promised_nothing_is_told_so() -> None:
    document = GroupQuestion(size=400, epsilon=1.0, delta=1e-6).document()
    assert document["delta"] == 1.0
    assert "promises nothing" in document["words"]
    with pytest.raises(InputError, match=r"--delta 0\.0"):
        GroupQuestion(size=4, noise_multiplier=10.0).document()


def test_releases_whose_deltas_make_far_more_than_the_total_are_refused() -> None:
    """A million of 1e-3: 1 - (1 - delta)^k is 1 but for e^-1000."""
    asked = ComposeQuestion(rounds=10**6, epsilon=0.1, release_delta=1e-3)
    with pytest.raises(InputError, match="no theorem applies: the deltas of the releases sum to 1e\\+03"):
        asked.document()


@pytest.mark.parametrize("delta", [LEAST_DELTA, 1e-300, 1e-307, 1e-310, 5e-324])
def test_the_least_deltas_are_printed(delta: float) -> None:
    assert delta <= float(printed(delta)) <= delta * 1.01
    group = GroupQuestion(size=2, epsilon=0.1, delta=delta)
    if delta < LEAST_DELTA:
        with pytest.raises(InputError, match="must be 0, or at least 1e-12 and below 1; 0 for pure epsilon"):
            group.document()
    else:
        document = group.document()
        assert f"at delta = {printed(document['delta'])} for all" in document["words"]
