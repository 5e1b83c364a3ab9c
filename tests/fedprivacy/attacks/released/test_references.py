"""Reference models: whose halves they have, and that they are trained as the same models one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binom

from fedprivacy.attacks.released.references import (
    Models,
    Recipe,
    draw_coins,
    draw_halves,
    train,
    train_references,
)
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import build, flat_weights, unflatten
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.model import Mlp
from fedprivacy.training.task import LocalTraining

FALSE_ALARM = 1e-6
ROUNDING = 1e-5


def make(seed: int):
    return build(Mlp(name="mlp", hidden=(6,)), (5,), 3, seed=seed)


def recipe(together: int = 4, batch_size: int | None = None, learning_rate: float = 0.2) -> Recipe:
    return Recipe(make, LocalTraining(ShuffledBatches(8, batch_size), learning_rate, momentum=0.5), together)


@pytest.fixture
def pool() -> tuple[torch.Tensor, torch.Tensor]:
    stream = np.random.default_rng(0)
    x = torch.from_numpy(stream.normal(size=(40, 5)).astype(np.float32))
    return x, torch.from_numpy(stream.integers(0, 3, 40))


@pytest.mark.parametrize("models", [2, 7, 64])
def test_half_of_all_models_have_a_record_and_a_model_has_it_by_a_fair_coin(models: int) -> None:
    records = 2000
    members = draw_halves(models, records, np.random.default_rng(3))
    within = members.sum(axis=0)
    assert set(within) == {models // 2, -(-models // 2)}
    low, high = binom.ppf([FALSE_ALARM / models, 1 - FALSE_ALARM / models], records, 0.5)
    assert ((members.sum(axis=1) >= low) & (members.sum(axis=1) <= high)).all()
    # two records are in a model together as often as by independent coins
    both = (members[:, ::2] & members[:, 1::2]).sum()
    pairs = models * records // 2
    assert abs(both - pairs / 4) < 5 * np.sqrt(pairs * 3 / 16)


def test_targets_have_coins_of_their_own() -> None:
    coins = draw_coins(8, 5000, np.random.default_rng(4))
    assert set(coins.sum(axis=0)) == set(range(9))  # nobody balances them
    assert abs(coins.sum() - 20_000) < 5 * 100


def test_a_model_is_trained_as_by_a_plain_loop_on_its_own_records(pool) -> None:
    x, y = pool
    streams = Streams(5)
    found = train_references(recipe(), x, y, streams, models=6)
    assert found.weights.shape == (6, len(flat_weights(make(0))))
    own = Streams(streams.torch_seed("released/references"))
    for number in range(6):
        first = number - number % 4
        model = make(int(own.stream("initial", member=first).integers(2**63)))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
        mine = torch.from_numpy(found.members[number])
        for _ in range(8):  # all records at once: no order to be drawn
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x[mine]), y[mine]).backward()
            optimiser.step()
        assert np.allclose(found.weights[number], flat_weights(model), atol=ROUNDING)


def test_a_record_changes_those_models_alone_that_have_it(pool) -> None:
    x, y = pool
    members = draw_halves(6, 40, np.random.default_rng(1))
    before = train(recipe(batch_size=8), x, y, members, Streams(1), "targets").weights
    moved = x.clone()
    moved[7] += 3.0
    after = train(recipe(batch_size=8), moved, y, members, Streams(1), "targets").weights
    assert ((before != after).any(dim=1).numpy() == members[:, 7]).all()


def test_models_differ_by_purpose_and_by_seed_and_repeat(pool) -> None:
    x, y = pool
    members = np.ones((2, 40), dtype=bool)
    asked = [(1, "targets"), (1, "references"), (2, "targets"), (1, "targets")]
    found = [train(recipe(1), x, y, members, Streams(seed), what).weights for seed, what in asked]
    assert torch.equal(found[0], found[3])
    assert not torch.allclose(found[0], found[1])
    assert not torch.allclose(found[0], found[2])
    assert not torch.allclose(found[0][0], found[0][1])  # initial weights of their own


def test_what_cannot_be_trained_is_refused(pool) -> None:
    x, y = pool
    with pytest.raises(InputError, match="at least 2"):
        train_references(recipe(), x, y, Streams(1), models=1)
    with pytest.raises(InputError, match="the pool has 40"):
        train(recipe(), x, y, np.ones((2, 39), dtype=bool), Streams(1), "targets")
    with pytest.raises(InputError, match="without any record"):
        train(recipe(), x, y, np.zeros((2, 40), dtype=bool), Streams(1), "targets")
    with pytest.raises(InputError, match="diverged"):
        train(recipe(learning_rate=1e30), x, y, np.ones((2, 40), dtype=bool), Streams(1), "targets")
    with pytest.raises(InputError, match="each of 3 models"):
        Models(torch.zeros(3, 5), np.ones((2, 40), dtype=bool))


def test_the_weights_are_those_of_the_module(pool) -> None:
    x, y = pool
    found = train_references(recipe(), x, y, Streams(1), models=2)
    logits = torch.func.functional_call(make(0), unflatten(make(0), found.weights[0]), x)
    mine = torch.from_numpy(found.members[0])
    right = (logits.argmax(dim=1) == y)[mine].float().mean()
    assert right > 0.5
