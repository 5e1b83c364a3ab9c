"""Schedules of the server's learning rate: known values, and steps of exactly these."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from server.schedules import LearningRate

ROUNDS = 9


@pytest.mark.parametrize(
    ("schedule", "end", "expected"),
    [
        ("constant", 0.1, [2.0] * 9),
        ("linear", 0.0, [2.0 * (8 - t) / 8 for t in range(9)]),
        ("linear", 0.5, [2.0 - t / 8 for t in range(9)]),
        ("cosine", 0.0, [1 + math.cos(math.pi * t / 8) for t in range(9)]),
        ("cosine", 0.2, [0.4 + 0.8 * (1 + math.cos(math.pi * t / 8)) for t in range(9)]),
        ("inverse-sqrt", 0.1, [2.0 / math.sqrt(t + 1) for t in range(9)]),
    ],
)
def test_each_schedule_is_its_formula(schedule: str, end: float, expected: list[float]) -> None:
    rate = LearningRate(2.0, schedule, end, ROUNDS)
    assert [rate.at(number) for number in range(ROUNDS)] == pytest.approx(expected, abs=1e-12)


def test_later_rounds_and_a_single_one_have_a_rate() -> None:
    assert LearningRate(2.0, "cosine", 0.5, ROUNDS).at(50) == pytest.approx(1.0)
    assert LearningRate(2.0, "linear", 0.5, 1).at(0) == 2.0


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_step_is_that_of_the_optimizer_at_the_rounds_rate(make_scenario, trial, optimizer: str) -> None:
    asked = [f"server.optimizer={optimizer}", "server.rounds=4", "server.learning_rate=0.5"]
    plain = trial(make_scenario(*asked))
    other = trial(make_scenario(*asked, "server.schedule=linear", "server.schedule_end=0.0"))
    update, weights = np.array([1.0, -2.0, 3.0, 0.5, 0.0, 1.0]), np.zeros(6)
    for number, share in enumerate([1, 2 / 3, 1 / 3, 0]):
        steps = [one.federation.optimizer for one in (plain, other)]
        for one in steps:
            one.state = {key: value[:6] for key, value in one.state.items()}
        full, less = (one.step(weights, update, number) for one in steps)
        assert np.allclose(less, share * full, rtol=1e-12)


def test_a_schedule_changes_no_claim_and_a_constant_one_no_bit(make_scenario, trial) -> None:
    played = [
        trial(make_scenario(*more)) for more in ([], ["server.schedule=constant"], ["server.schedule=cosine"])
    ]
    models = [one.play() for one in played]
    assert np.array_equal(models[0], models[1])
    assert not np.array_equal(models[0], models[2])
    ledgers = {json.dumps(one.ledger.to_json()) for one in played}
    assert len(ledgers) == 1


@pytest.mark.parametrize(
    ("attack", "valid"), [('kind = "passive"\nseat = "server"', False), ('kind = "released"', True)]
)
def test_attacks_on_messages_have_one_learning_rate(attack: str, valid: bool) -> None:
    text = f"""name = "g"
[data]
name = "synthetic"
records = 120
test_records = 60
features = 4
partition = "iid"
clients = 4
public_fraction = 0.3
[model]
name = "logistic"
[server]
rounds = 6
schedule = "linear"
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 10
nonmembers = 10
warm_up = 3
[attacks.one]
{attack}
"""
    if valid:
        assert AttackScenario.from_text(text).server.schedule == "linear"
        return
    with pytest.raises(InputError, match="one learning rate"):
        AttackScenario.from_text(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["server.schedule_end=0.5"], r"schedule_end=0.5: has no effect with schedule = .constant"),
        (["server.schedule=inverse-sqrt", "server.schedule_end=0.5"], "schedule_end=0.5: has no effect"),
        (["server.schedule=cosin"], r"unknown schedule of the learning rate.*cosine"),
        (["server.schedule=linear", "server.schedule_end=1.5"], "at most 1"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(make_scenario, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*changes)
