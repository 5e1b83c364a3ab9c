"""Reference models are shared by the runs for which they are the same to the bit, and by no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.attacks.released.attack import Released
from fedprivacy.attacks.released.references import Recipe, train_references
from fedprivacy.population.clients import population
from scenarios.attacks import reference_models as module
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.reference_models import ReferenceModels, reference_models, training_of
from tests.scenarios.attacks.test_released_model import scenario

LOCAL = 'privacy={{trust="local", clipping_norm=1.0, epsilon={}, delta=1e-4}}'
ROUNDS = 2


ATTACK = Released(kind="released", methods=("lira", "rmia", "shadow", "network-outputs"), references=8)
METHODS = set(ATTACK.methods)


def models_of(*overrides: str, **settings: object) -> tuple[ReferenceModels, GameSetup]:
    setup = GameSetup(scenario(f"server.rounds={ROUNDS + 2}", f"game.warm_up={ROUNDS}", *overrides))
    return reference_models(setup, ATTACK.model_copy(update=settings), METHODS, ROUNDS), setup


@pytest.fixture(autouse=True)
def nothing_shared():
    module._latest.clear()
    yield
    module._latest.clear()


def scores_of(models: ReferenceModels, setup: GameSetup) -> dict[str, np.ndarray]:
    game, weights = setup.game, models.battery.references.weights[0]
    places = np.searchsorted(models.pool, game.targets)
    run = models.battery.run(weights, game.members, game.folds, places)
    return {name: item.scores for name, item in run.items()}


def test_arms_that_train_alike_share_them_and_no_bit_of_a_score_changes() -> None:
    first, plain = models_of()
    for privacy in (LOCAL.format(2.0), LOCAL.format(8.0)):
        shared, setup = models_of(privacy)
        assert shared is first
        assert setup.fleet.streams.run != plain.fleet.streams.run  # noise of its own
    scores = scores_of(shared, setup)
    module._latest.clear()
    apart, setup = models_of(privacy)
    assert apart is not first
    assert apart.exposure("lira").to_json(50) == first.exposure("lira").to_json(50)
    expected = scores_of(apart, setup)
    assert expected.keys() == scores.keys() == METHODS
    assert all((expected[name] == scores[name]).all() for name in METHODS)


@pytest.mark.exhaustive
def test_they_depend_on_the_seed_of_a_run_and_on_nothing_else_of_its_streams() -> None:
    models, setup = models_of(LOCAL.format(2.0))
    battery = models.battery
    recipe = Recipe(
        setup.fleet.model.build,
        training_of(setup.scenario, ATTACK, float(setup.fleet.sizes.mean()), ROUNDS),
    )
    of_run = train_references(recipe, battery.x, battery.y, setup.fleet.streams, 8)
    assert (of_run.weights == battery.references.weights).all()
    assert (of_run.members == battery.references.members).all()
    with_run = replace(models, battery=replace(battery, streams=setup.fleet.streams))
    scores, expected = scores_of(models, setup), scores_of(with_run, setup)
    assert all((expected[name] == scores[name]).all() for name in METHODS)


@pytest.mark.parametrize(
    ("overrides", "settings"),
    [
        (("seed=2",), {}),
        (("training.learning_rate=0.1",), {}),
        (("model.hidden=[8]",), {}),
        (("data.flip=0.3",), {}),
        (("data.test_records=150",), {}),
        ((), {"gamma": 1.0}),
        ((), {"epochs": 3}),
    ],
)
def test_other_knowledge_has_other_models(overrides: tuple[str, ...], settings: dict[str, object]) -> None:
    first, _ = models_of()
    other, _ = models_of(*overrides, **settings)
    assert other is not first
    assert list(module._latest.values()) == [other]


def test_other_records_under_the_same_settings_have_other_models() -> None:
    first, setup = models_of()
    data = population(setup.scenario.data)
    x = data.dataset.x.copy()
    x[0, 0] = 1 - x[0, 0]
    changed = GameSetup(setup.scenario, people=replace(data, dataset=replace(data.dataset, x=x)))
    assert reference_models(changed, ATTACK, METHODS, ROUNDS) is not first


def test_models_are_shared_where_records_have_the_same_groups(tmp_path: Path) -> None:
    stream, path = np.random.default_rng(0), tmp_path / "ages.npz"
    x, y = stream.random((480, 3)), np.arange(480) % 4
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, feature_names=["age", "height", "weight"])
    data = f'data={{name="npz", path="{path}", partition="iid", clients=3, public_fraction=0.4}}'
    groups = 'evaluation={{groups=["age"], edges={{age=[{}]}}}}'
    first, _ = models_of(data, groups.format(0.5))
    assert [group.labels for group in first.groups] == [("below 0.5", "0.5 and above")]
    assert models_of(data, groups.format(0.5), LOCAL.format(2.0))[0] is first
    assert models_of(data, groups.format(0.6))[0] is not first


def test_models_larger_than_the_bound_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    models, _ = models_of()
    assert models.size > 480 * 60 * 4
    module._latest.clear()
    monkeypatch.setattr(module, "_SHARED", models.size - 1)
    models_of()
    assert not module._latest
