from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json
from fedprivacy.guarantees.per_client import client_events, per_client
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.sampling.batches import PoissonBatches, ShuffledBatches

STEP = Gaussian(1.0, 4.0).event()


def told(batches, sizes: np.ndarray, answers: np.ndarray) -> dict:
    groups = client_events(batches, STEP, sizes, answers.astype(np.int32))
    found = per_client({"clients": groups, "delta": 1e-5, "adjacency": "add-remove"})
    assert found is not None
    return found


def test_each_client_has_the_epsilon_of_its_own_rounds_and_rate() -> None:
    batches = PoissonBatches(3, batch_size=10)
    sizes, answers = np.array([50, 100, 100, 400]), np.array([2, 2, 5, 0])
    found = told(batches, sizes, answers)
    by_client = [
        epsilon(from_json(one["event"]), 1e-5, "add-remove").epsilon
        for one in client_events(batches, STEP, sizes, answers.astype(np.int32))
    ]
    assert sorted(by_client) == [group["epsilon"] for group in found["groups"]]
    assert {(g["records"], g["answers"]): g["clients"] for g in found["groups"]} == {
        (50, 2): 1, (100, 2): 1, (100, 5): 1, (400, 0): 1,
    }  # fmt: skip
    assert found["groups"][0]["epsilon"] == 0  # never asked, nothing told
    assert found["largest"] == found["groups"][-1]["epsilon"]
    assert found["median"] == found["groups"][2]["epsilon"]


def test_where_the_size_costs_nothing_it_makes_no_group() -> None:
    found = told(ShuffledBatches(2), np.arange(1, 9), np.full(8, 3))
    assert [(g["clients"], g["records"], g["answers"]) for g in found["groups"]] == [(8, None, 3)]


@pytest.mark.exhaustive
def test_of_many_sizes_near_ones_share_a_group_that_is_no_cheaper() -> None:
    rng = np.random.default_rng(0)
    batches = PoissonBatches(2, batch_size=5)
    sizes, answers = rng.integers(10, 500, 60), rng.integers(0, 40, 60)
    found = told(batches, sizes, answers)
    assert sum(group["clients"] for group in found["groups"]) == 60
    assert len(found["groups"]) <= 36

    def cost(size: int, often: int) -> float:
        group = client_events(batches, STEP, np.array([size]), np.array([often], np.int32))
        return per_client({"clients": group, "delta": 1e-5, "adjacency": "add-remove"})["largest"]

    exact = sorted(cost(int(size), int(often)) for size, often in zip(sizes, answers, strict=True))
    stated = np.sort(
        np.repeat([g["epsilon"] for g in found["groups"]], [g["clients"] for g in found["groups"]])
    )
    assert (stated >= np.array(exact) - 1e-9).all()
    assert found["median"] >= exact[30] - 1e-9


def test_a_ledger_without_steps_has_none() -> None:
    assert per_client({"claims": []}) is None
