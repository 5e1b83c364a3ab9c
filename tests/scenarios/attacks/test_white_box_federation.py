"""The lectures' attacks on a small network that trains on pictures, through the real apps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.attacks.game import draw_game
from fedprivacy.models.by_name import build
from fedprivacy.population.clients import population
from fedprivacy.report.attacks.published import FIGURES, POSITIONS
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import load
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.replay import replay
from scenarios.authoring.catalogue import ready

TINY = (
    *("data.clients=2", "data.records_per_client=20", "data.public_fraction=0.2", "model.channels=[4]"),
    *("model.hidden=[8]", "server.rounds=3", "game.members=20", "game.nonmembers=20", "game.repeats=1"),
    *("attacks.passive.rounds=2", "attacks.isolating.rounds=2", "attacks.participant.rounds=2"),
    *(f"attacks.{name}.targets_per_round=20" for name in ("ascent", "isolating-ascent", "participant-ascent")),
)  # fmt: skip


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Colour pictures of three classes, by noise around one picture each."""
    file = tmp_path_factory.mktemp("data") / "pictures.npz"
    draw = np.random.default_rng(0)
    classes = draw.integers(0, 256, (3, 8, 8, 3))
    y = draw.integers(0, 3, 260)
    x = np.clip(classes[y] + draw.normal(0, 60, (260, 8, 8, 3)), 0, 255).astype(np.uint8)
    np.savez(file, x_train=x[:200], y_train=y[:200], x_test=x[200:], y_test=y[200:])
    return file


def scenario(file: Path, *overrides: str) -> AttackScenario:
    result = load(ready()["white-box-federation"], [f'data.path="{file}"', *overrides])
    assert isinstance(result, AttackScenario)
    return result


@pytest.mark.exhaustive
def test_each_attack_of_the_published_table_runs_and_stands_beside_it(pictures: Path, tmp_path: Path) -> None:
    document = replay(scenario(pictures, *TINY), tmp_path, workers=1)
    positions = [
        (attack["seat"], attack["isolating"], attack["attack"])
        for attack in document["attacks"]
        if attack["seat"] != "outsider"
    ]
    assert positions == list(POSITIONS)
    assert not any(attack["targets_lost"] for attack in document["attacks"])
    page = (Path(document["path"]) / "report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    for printed in FIGURES["cifar100-alexnet"].right:
        assert f"{printed:.1f} %" in page
    assert "2 clients with 20 records each" in page
    checked_document(Path(document["path"]))


def test_records_that_are_left_out_are_nobodys(pictures: Path) -> None:
    asked = scenario(pictures, *TINY)
    people = population(asked.data)
    game = draw_game(people, 0, 20, 20, 1)
    assert list(people.partition.sizes) == [20, 20]
    assert len(people.partition.public) == 40
    pool = np.concatenate([people.partition.records(0), people.partition.public])
    assert set(game.targets) <= set(pool)
    assert set(game.people.partition.order) <= {*pool, *people.partition.records(1)}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_network_learns_its_pictures_by_heart(real_data) -> None:
    # On a seed for development; the ready scenario has others.
    setup = GameSetup(scenario(real_data("cifar100_subset.npz"), "seed=101").variants[0])
    train, test = setup.accuracies(setup.warm_up()["weights"].astype(np.float32))
    assert train >= 0.95 > 0.2 > test


def test_the_real_pictures_have_the_records_that_the_scenario_states(real_data) -> None:
    asked = scenario(real_data("cifar100_subset.npz"))
    people = population(asked.data)
    assert list(people.partition.sizes) == [asked.data.records_per_client] * 4
    module = build(asked.model, people.features, people.dataset.classes, seed=0)
    assert sum(parameter.numel() for parameter in module.parameters()) > 50_000
    assert asked.game.published == "cifar100-alexnet"
