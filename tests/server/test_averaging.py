"""Averages of iterates: known means, the released model of a run, and no claim changed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.models.evaluation import evaluate
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.game_setup import GameSetup
from scenarios.runner import resume, run
from server.averaging import ExponentialAverage, TailAverage, released_weights

ITERATES = np.random.default_rng(0).standard_normal((10, 4))
WAYS = {
    "tail": ["server.averaging=tail", "server.averaging_share=0.4"],
    "exponential": ["server.averaging=exponential", "server.averaging_decay=0.7"],
}
GAME = """name = "g"
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
[training]
learning_rate = 0.5
[server]
rounds = 6
averaging = "tail"
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 10
nonmembers = 10
[attacks.outside]
kind = "released"
"""


def expected(way: str, iterates: np.ndarray) -> np.ndarray:
    """The average by its definition, over all iterates at once."""
    if way == "tail":
        return iterates[-4:].mean(axis=0)
    weights = 0.7 ** np.arange(len(iterates))[::-1]
    return weights @ iterates / weights.sum()


@pytest.mark.parametrize("way", WAYS)
def test_a_running_mean_is_the_mean_by_its_definition(way: str) -> None:
    average = TailAverage(0.4, 10, 4) if way == "tail" else ExponentialAverage(0.7, 4)
    last = np.full(4, 9.0)
    assert np.array_equal(average.of(last), last)  # nothing is in it yet
    for number, weights in enumerate(ITERATES):
        average.add(number, weights)
    assert np.allclose(average.of(last), expected(way, ITERATES), rtol=1e-12)


@pytest.mark.parametrize(
    ("share", "rounds", "first"), [(0.1, 30, 27), (0.1, 31, 27), (1.0, 7, 0), (1e-9, 7, 6), (0.3, 10, 7)]
)
def test_a_tail_is_a_whole_number_of_rounds_and_at_least_one(share: float, rounds: int, first: int) -> None:
    average = TailAverage(share, rounds, 1)
    for number in range(rounds):
        average.add(number, np.full(1, float(number)))
    assert average.of(np.zeros(1)) == pytest.approx(np.arange(first, rounds).mean())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("trust", ["central", "local"])
def test_participants_receive_the_iterates_and_outsiders_their_mean(
    make_scenario, trial, way: str, trust: str
) -> None:
    changes = [f"privacy.trust={trust}", "server.rounds=10"]
    plain, other = (trial(make_scenario(*changes, *more)) for more in ([], WAYS[way]))
    other.federation.streams = plain.federation.streams  # another scenario has other noise
    other.fleet.__dict__["streams"] = plain.fleet.streams
    iterates = []
    for number in range(10):
        plain.federation.round(number)
        other.federation.round(number)
        iterates.append(plain.federation.weights)
        assert np.array_equal(plain.federation.model, other.federation.model)
        assert np.array_equal(plain.federation.released, plain.federation.model)
    mean = expected(way, np.array(iterates))
    assert np.allclose(other.federation.released, mean, rtol=1e-6)
    assert not np.allclose(mean, iterates[-1], rtol=1e-3)
    assert np.array_equal(released_weights(other.federation.state()), other.federation.released)
    assert np.array_equal(released_weights(plain.federation.state()), plain.federation.model)
    ledgers = [json.dumps(run.ledger.to_json()) for run in (plain, other)]
    assert ledgers[0] == ledgers[1]
    assert guarantees(plain.ledger.to_json()) == guarantees(other.ledger.to_json())


def test_a_void_round_adds_no_model(make_scenario, trial) -> None:
    played = trial(make_scenario("server.averaging=exponential", "server.rounds=3"))
    played.federation.round(0)
    before = played.federation.released
    real = played.federation.total

    def void(number: int, cohort: np.ndarray):
        total = real(number, cohort)
        total.void = True
        return total

    played.federation.total = void
    played.federation.round(1)
    assert np.array_equal(played.federation.released, before)
    assert played.federation.average.state["count"] == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_releases_the_same_mean(make_scenario, tmp_path: Path, way: str) -> None:
    asked = make_scenario(*WAYS[way], "server.rounds=10")
    whole = run(asked, tmp_path / "whole", report=False)

    def stop(event: dict) -> None:
        if event["round"] == 7:  # in the middle of the tail
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "broken", on_round=stop, report=False)
    (path,) = (tmp_path / "broken").iterdir()
    resumed = resume(path, report=False)
    kept, same = (RunDirectory(Path(each["path"])).load_checkpoint().tensors for each in (whole, resumed))
    assert {"average/mean", "average/count"} <= kept.keys() == same.keys()
    assert all(np.array_equal(kept[name], same[name]) for name in kept)
    assert resumed["final"] == whole["final"]
    assert resumed["ledger"] == whole["ledger"]


def test_what_is_measured_is_the_mean(make_scenario, tmp_path: Path, trial) -> None:
    asked = make_scenario(*WAYS["tail"], "server.rounds=10", "data.test_records=500")
    document = run(asked, tmp_path, report=False)
    tensors = RunDirectory(Path(document["path"])).load_checkpoint().tensors
    module, people = trial(asked).fleet.module, population(asked.data)
    losses = [
        evaluate(module, weights.astype(np.float32), *people.held_out("test")).loss
        for weights in (tensors["average/mean"], tensors["weights"])
    ]
    assert document["final"]["loss"] == pytest.approx(losses[0], rel=1e-6)
    assert losses[0] != pytest.approx(losses[1], rel=1e-6)


def test_a_game_attacks_the_mean() -> None:
    setup = GameSetup(AttackScenario.from_text(GAME))
    tensors = setup.warm_up()
    assert tensors["average/count"] == 3
    released = released_weights(tensors)
    assert np.array_equal(released, tensors["average/mean"].astype(np.float32))
    assert setup.accuracies(released) is not None


@pytest.mark.parametrize("warm_up", [3, 4, 5])
def test_a_game_that_ends_training_before_the_tail_is_over_is_refused(warm_up: int) -> None:
    early = GAME.replace("[game]", f"[game]\nwarm_up = {warm_up}")
    message = rf"covers the last of 6 planned rounds, and training ends after {warm_up}.*exponential"
    with pytest.raises(InputError, match=message):
        AttackScenario.from_text(early)
    assert AttackScenario.from_text(early.replace('"tail"', '"exponential"')).warm_up == warm_up
    assert AttackScenario.from_text(GAME.replace("[game]", "[game]\nwarm_up = 6")).warm_up == 6


def test_the_noise_of_runs_without_an_average_stays(make_scenario) -> None:
    plain, other = make_scenario(), make_scenario("server.averaging=tail")
    people = population(plain.data)
    assert run_streams(plain, people).run != run_streams(other, people).run
    assert run_streams(make_scenario("server.averaging=none"), people).run == run_streams(plain, people).run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["server.averaging_share=0.5"], r"averaging_share=0.5: has no effect with averaging = .none"),
        (["server.averaging=tail", "server.averaging_decay=0.5"], r"averaging_decay=0.5: has no effect with"),
        (
            ["server.averaging=exponential", "server.averaging_share=0.5"],
            r"averaging_share=0.5: has no effect",
        ),
        (["server.averaging=tails"], r"unknown average of iterates.*tail"),
        (["server.averaging=tail", "server.averaging_share=0.0"], "above 0"),
        (["server.averaging=exponential", "server.averaging_decay=1.0"], "below 1"),
        (
            [
                "server.averaging=tail",
                "server.patience=1",
                "data.public_fraction=0.2",
                "evaluation.on=public",
            ],
            "covers the last of the planned rounds",
        ),
    ],
)
def test_an_average_that_cannot_be_is_refused(make_scenario, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*changes)
