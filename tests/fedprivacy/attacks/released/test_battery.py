"""The attacks on small models that were really trained: who works, and what each may look at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedprivacy.attacks.metrics import area, known_areas
from fedprivacy.attacks.released.battery import ATTACKS, FITTED, THRESHOLDS, Battery, features
from fedprivacy.attacks.released.network import Fitting
from fedprivacy.attacks.released.references import Models, Recipe, draw_coins, train, train_references
from fedprivacy.attacks.targets import FOLDS, Targets, draw_folds
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import build
from fedprivacy.models.evaluation import evaluate
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.model import Mlp
from fedprivacy.training.task import LocalTraining

POOL, OTHERS, FEATURES, CLASSES = 400, 300, 60, 10
QUICK = Fitting(epochs=6, filters=4)


def make(seed: int):
    return build(Mlp(name="mlp", hidden=(32,), activation="tanh"), (FEATURES,), CLASSES, seed=seed)


def records(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Bits around a prototype for each class; some records are near it, some hardly more than noise."""
    stream = np.random.default_rng(0)
    prototypes, y = stream.integers(0, 2, (CLASSES, FEATURES)), stream.integers(0, CLASSES, count)
    flipped = stream.random((count, FEATURES)) < stream.uniform(0.1, 0.5, count)[:, None]
    return torch.from_numpy((prototypes[y] ^ flipped).astype(np.float32)), torch.from_numpy(y)


@pytest.fixture(scope="module")
def trained() -> tuple[Battery, Models]:
    """Two targets and 32 references that know all of their records, and others less well."""
    streams = Streams(1)
    x, y = records(POOL + OTHERS)
    x, y, others = x[:POOL], y[:POOL], (x[POOL:], y[POOL:])
    recipe = Recipe(make, LocalTraining(ShuffledBatches(15, 32), 0.2, momentum=0.9))
    coins = draw_coins(2, POOL, streams.stream("coins"))
    targets = train(recipe, x, y, coins, streams, "targets")
    references = train_references(recipe, x, y, streams, models=32)
    return Battery(make(0), x, y, others, references, streams, fitting=QUICK), targets


@pytest.fixture(scope="module")
def scored(trained):
    battery, targets = trained
    found = []
    for weights, members in zip(targets.weights, targets.members, strict=True):
        folds = draw_folds(POOL, Streams(2).stream("folds"))
        found.append((battery.run(weights, members, folds), members, folds))
    return found


def areas(scored) -> dict[str, float]:
    """The mean area of each attack over both targets."""
    return {
        name: np.mean([area(Targets(found[name].scores, *rest)).value for found, *rest in scored])
        for name in ATTACKS
    }


def test_targets_know_their_records_and_others_less_well(trained) -> None:
    battery, targets = trained
    x, y = battery.x.numpy(), battery.y.numpy()
    for weights, members in zip(targets.weights.numpy(), targets.members, strict=True):
        assert evaluate(make(0), weights, x[members], y[members]).accuracy == 1.0
        assert 0.5 < evaluate(make(0), weights, x[~members], y[~members]).accuracy < 0.9


def test_every_attack_works_and_lira_beats_each_threshold(scored) -> None:
    found = areas(scored)
    assert min(found.values()) > 0.6
    assert min(found["lira"], found["lira-global"], found["rmia"]) > 0.78
    assert found["lira"] > 0.1 + max(found[name] for name in THRESHOLDS)


def test_scores_have_the_shape_that_judgements_take(scored) -> None:
    for found, *_ in scored:
        assert list(found) == list(ATTACKS)
        for name, values in features(found).items():
            assert values.shape == ((FOLDS + 1, POOL) if name in FITTED else (POOL,))
            assert values.dtype == np.float64
            assert np.isfinite(values).all()


def test_memberships_of_a_fold_teach_its_own_scores_nothing_and_those_of_others_the_networks(
    trained, scored
) -> None:
    battery, targets = trained
    found, members, folds = scored[0]
    swapped = battery.run(targets.weights[0], members ^ (folds == 2), folds)
    for name, one in found.items():
        same, fitted = swapped[name].scores == one.scores, name in FITTED
        assert (same[2] if fitted else same).all(), name
        assert not fitted or not any(same[fold].all() for fold in (0, 1, 3, 4)), name


@pytest.mark.exhaustive
def test_a_network_does_not_flatter_the_targets_that_it_was_fitted_on(trained, scored) -> None:
    """Coins that have nothing to do with the model: the deviation of an area of 400 is .029."""
    battery, targets = trained
    _, _, folds = scored[0]
    coins = Streams(9).stream("coins").random(POOL) < 0.5
    some = Battery(
        battery.module,
        battery.x,
        battery.y,
        battery.population,
        battery.references,
        battery.streams,
        ["network-gradients"],
        fitting=QUICK,
    )
    judged = Targets(some.run(targets.weights[0], coins, folds)["network-gradients"].scores, coins, folds)
    for figure in (area(judged), *known_areas(judged)[:FOLDS]):
        assert figure.value == pytest.approx(0.5, abs=5 * 0.033)


@pytest.mark.parametrize("name", ["lira", "lira-global", "lira-offline", "rmia", "rmia-offline", "shadow"])
def test_records_that_no_target_saw_are_at_chance(trained, scored, name: str) -> None:
    """Coins without effect; the deviation of the mean area of two of 400 is .029/sqrt(2)."""
    coins = Streams(8).stream("coins").random((2, POOL)) < 0.5
    values = [
        area(Targets(found[name].scores, own, folds)).value
        for (found, _, folds), own in zip(scored, coins, strict=True)
    ]
    assert np.mean(values) == pytest.approx(0.5, abs=5 * 0.029 / np.sqrt(2))


def test_records_may_be_judged_in_any_order_and_number(trained, scored) -> None:
    battery, targets = trained
    found, members, folds = scored[0]
    places = np.random.default_rng(0).permutation(POOL)[:150]
    part = battery.run(targets.weights[0], members[places], folds[places], places)
    for name, one in found.items():
        if name not in FITTED:  # what is fitted is so on fewer known memberships
            assert np.allclose(part[name].scores, one.scores[places], rtol=1e-4, atol=1e-4), name


def test_an_unknown_attack_is_refused(trained) -> None:
    battery, _ = trained
    with pytest.raises(InputError, match="no mia; there are lira"):
        Battery(
            battery.module, battery.x, battery.y, battery.population, battery.references, Streams(1), ["mia"]
        )
