"""A scenario whose records are on nodes: what it says, and what it cannot be used for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.data.npz import NpzError
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.population.on_nodes import for_server, known, of_node
from fedprivacy.scenario import Scenario
from scenarios.authoring.new import new
from scenarios.experiments.comparison import compare
from scenarios.runner import run

EXAMPLE = ("privacy.unit=example", "privacy.delta=1e-4")


@pytest.fixture
def make(make_scenario, on_nodes_text):
    return lambda *overrides: make_scenario(*overrides, text=on_nodes_text)


@pytest.mark.parametrize(
    "setting",
    [
        "data.features=[28, 28]",
        "data.classes=['cat', 'dog', 'bird']",
        "data.records_per_client=[10, 20, 30]",
        "data.test=public.npz",
    ],
)
def test_it_reads_back_what_it_wrote(make, setting: str) -> None:
    own = make(setting)
    assert Scenario.from_text(own.to_toml()) == own
    assert own.population == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["data.features=0"], "data.features=0: must be a number of columns"),
        (["data.features=[28, true]"], "must be a number of columns"),
        (["data.features=[]"], "must be a number of columns"),
        (["data.classes=1"], "must be the number of classes"),
        (["data.classes=['cat']"], "must be the number of classes"),
        (["data.classes=['cat', 'cat']"], "a list of different names"),
        (["data.records_per_client=[10, 20]"], "2 numbers for 3 clients"),
        (["data.records_per_client=0"], "must be a whole number from 1"),
        (EXAMPLE, "reckons with the records that each client is agreed to have"),
        ((*EXAMPLE, "data.records_per_client=4000"), "must be above 0 and below 1/(number of records)"),
        (["evaluation.on=public"], "none of them is public"),
        (["data.path=own.npz"], "has no effect with name = \"on-nodes\""),
        (["data.partition=iid"], "has no effect with name = \"on-nodes\""),
        (["federation.hosts=4"], "more hosts than the 3 clients"),
        (["privacy.delta=0.5"], "1/(number of clients) = 1/3"),
        (["data.features=5", "model={name='cnn', channels=[4]}"], "needs square images"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(make, settings, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        make(*settings)
    assert said in str(error.value)


def test_an_attack_needs_records_that_are_here(make) -> None:
    game = "[game]\nmembers = 10\nnonmembers = 10\n[attacks.passive]\nkind = 'passive'\nrounds = 1\n"
    from fedprivacy.scenario.loading import loads

    with pytest.raises(ScenarioError, match="and these are on nodes"):
        loads(make().to_toml() + game)


def test_it_runs_over_nodes_alone(make, tmp_path: Path) -> None:
    for start in (run, partial(compare, workers=1)):
        with pytest.raises(InputError, match="the records of this scenario are on nodes") as error:
            start(make(), tmp_path / "runs")
        assert error.value.exit_code == 2
    with pytest.raises(InputError, match="--engine superlink"):
        population(make().data)
    assert not (tmp_path / "runs").exists()


def test_a_copy_for_somebody_else_explains_every_key(make, tmp_path: Path) -> None:
    source = tmp_path / "source.toml"
    source.write_text(make().to_toml())
    new("mine", source, "source.toml", tmp_path / "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    assert "# records_per_client = 1000" in text
    assert Scenario.read(tmp_path / "mine.toml").data == make().data


def test_server_and_nodes_make_the_same_plan_without_a_record(make) -> None:
    """Nor is the server's file of held-out records read, which nodes do not have."""
    by_size = "training={batches='with-replacement', batch_size=5, steps=2, learning_rate=0.5}"
    own = make(*EXAMPLE, "data.records_per_client=[10, 20, 30]", "data.test=/nowhere.npz", by_size)
    plan = plan_of(own)
    assert plan.least_records == 10
    assert known(own.data).partition.sizes.tolist() == [10, 20, 30]
    with pytest.raises(NpzError, match="no such file"):
        for_server(own.data)


def test_a_file_that_serves_a_simulation_serves_a_node(make, tmp_path: Path) -> None:
    x = np.arange(24, dtype=np.uint8).reshape(6, 4)
    arrays = {
        "x_train": x,
        "y_train": np.array([0, 1, 1, 0, 1, 0]),
        "x_test": x[:2],
        "y_test": np.array([1, 0]),
    }
    np.savez(tmp_path / "own.npz", **arrays, user_train=np.array(["Ada"] * 6))
    people = of_node(make().data, str(tmp_path / "own.npz"), np.array([1]), exact=False)
    assert people.partition.sizes.tolist() == [0, 6, 0]
    assert people.dataset.x[people.partition.records(1)].tolist() == x.tolist()
    served = for_server(make(f"data.test={tmp_path / 'own.npz'}").data)
    assert served.held_out("test")[1].tolist() == [1, 0]
    assert len(served.dataset.x) == 0


def test_records_of_several_clients_go_to_their_own(make, tmp_path: Path) -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    owners = np.array([2, 0, 2, 0, 0, 2])
    np.savez(tmp_path / "own.npz", x_train=x, y_train=np.zeros(6, np.int64), user_train=owners)
    people = of_node(make().data, str(tmp_path / "own.npz"), np.array([0, 2]), exact=False)
    for client in (0, 2):
        assert people.dataset.x[people.partition.records(client)].tolist() == x[owners == client].tolist()
