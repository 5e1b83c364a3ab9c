"""The vectorised cohort equals a plain PyTorch loop, client by client."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario import Cnn, Logistic, Mlp
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.task import LocalTraining, Task

STREAMS = Streams(11)
MODELS = {
    "logistic": Logistic(name="logistic"),
    "relu": Mlp(name="mlp", hidden=(7,), activation="relu"),
    "tanh": Mlp(name="mlp", hidden=(6, 5), activation="tanh"),
    "cnn": Cnn(name="cnn", channels=(3,), hidden=(4,)),  # 9 features are an image of 3 x 3
}


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "options",
    [
        LocalTraining(ShuffledBatches(1, None), 0.5),
        LocalTraining(ShuffledBatches(3, None), 0.5),
        LocalTraining(ShuffledBatches(1, 4), 0.1),
        LocalTraining(ShuffledBatches(3, 4), 0.1),
        LocalTraining(ShuffledBatches(2, 1), 0.05),
        LocalTraining(ShuffledBatches(2, 1000), 0.1),
        LocalTraining(ShuffledBatches(3, 4), 0.1, momentum=0.9),
        LocalTraining(ShuffledBatches(3, 4), 0.1, weight_decay=0.3),
        LocalTraining(ShuffledBatches(3, 4), 0.1, proximal=0.7),
        LocalTraining(ShuffledBatches(3, 3), 0.05, momentum=0.5, weight_decay=0.1, proximal=2.0),
        LocalTraining(ShuffledBatches(4, None), 0.1, momentum=0.9, weight_decay=0.1, proximal=0.5),
    ],
)
@pytest.mark.parametrize("sizes", [[5, 5, 5], [1, 13, 4, 7, 8], [1], [11]])
def test_equal_to_a_plain_loop(plain_loop, model: str, options: LocalTraining, sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((sum(sizes), 9)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, sum(sizes)))
    module = build(MODELS[model], (9,), 3, seed=1)
    weights = flat_weights(module) + rng.normal(0, 0.1, len(flat_weights(module))).astype(np.float32)
    records = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    clients = np.arange(10, 10 + len(sizes))
    task = Task(module, weights, x, y, records, clients, options, STREAMS, 2)
    updates = train_cohort(task).stack()
    for update, expected in zip(updates, plain_loop(task), strict=True):
        assert np.abs(update.numpy() - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())


def test_a_broken_record_stays_with_its_own_client() -> None:
    x = torch.ones(6, 2)
    x[0] = float("nan")  # record 0 is what padding with zeros would index
    records = [np.array([0, 1]), np.array([2]), np.array([3, 4, 5])]
    module = build(MODELS["logistic"], (2,), 2, seed=1)
    y, options = torch.zeros(6, dtype=torch.int64), LocalTraining(ShuffledBatches(2, 2), 0.1)
    task = Task(module, flat_weights(module), x, y, records, np.arange(3), options, STREAMS, 0)
    updates = train_cohort(task).stack()
    assert torch.isnan(updates[0]).any()
    assert torch.isfinite(updates[1:]).all()


def test_a_client_without_batches_left_is_moved_by_nothing() -> None:
    """With one record it has one step, and others have nine: their steps are not its own."""
    x, y = torch.randn(10, 9, generator=torch.Generator().manual_seed(0)), torch.arange(10) % 3
    module = build(MODELS["tanh"], (9,), 3, seed=1)
    options = LocalTraining(ShuffledBatches(1, 1), 0.5, momentum=0.9, weight_decay=0.5, proximal=0.5)
    records = [np.arange(1), np.arange(1, 10)]
    task = Task(module, flat_weights(module), x, y, records, np.arange(2), options, STREAMS, 0)
    both = train_cohort(task).stack()
    alone = train_cohort(replace(task, records=records[:1], clients=np.arange(1))).stack()
    assert both[0].abs().max() > 0.01
    assert torch.allclose(both[0], alone[0], atol=1e-7)


def test_a_round_starts_without_the_momentum_of_the_last() -> None:
    x, y = torch.ones(4, 9), torch.zeros(4, dtype=torch.int64)
    module = build(MODELS["tanh"], (9,), 3, seed=1)
    options = LocalTraining(ShuffledBatches(1, None), 0.5, momentum=0.9)
    sent, records, client = flat_weights(module), [np.arange(4)], np.arange(1)
    first, second = (
        train_cohort(Task(module, sent, x, y, records, client, options, STREAMS, number)).stack()
        for number in (0, 1)
    )
    assert torch.equal(first, second)


def test_an_update_does_not_depend_on_who_else_is_in_the_chunk() -> None:
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.standard_normal((20, 4)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 2, 20))
    module = build(MODELS["tanh"], (4,), 2, seed=1)
    records, clients = [np.arange(3), np.arange(3, 20)], np.array([4, 9])
    options = LocalTraining(ShuffledBatches(2, 2), 0.1)

    def train(which: slice) -> torch.Tensor:
        sent = flat_weights(module)
        task = Task(module, sent, x, y, records[which], clients[which], options, STREAMS, 0)
        return train_cohort(task).stack()

    assert torch.allclose(train(slice(0, 2))[0], train(slice(0, 1))[0], atol=1e-7)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "weight_decay": 0.1, "proximal": 0.5}])
def test_a_gpu_trains_the_same_updates(model: str, options: dict[str, float]) -> None:
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.standard_normal((12, 9)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, 12))
    module, training = (
        build(MODELS[model], (9,), 3, seed=1),
        LocalTraining(ShuffledBatches(2, 3), 0.1, **options),
    )
    records = [np.arange(5), np.arange(5, 12)]
    here = Task(module, flat_weights(module), x, y, records, np.arange(2), training, STREAMS, 0)
    there = train_cohort(replace(here, x=x.cuda(), y=y.cuda()))
    assert torch.allclose(there.stack(), train_cohort(here).stack(), atol=1e-4)
    assert torch.allclose(there.clipped_total(0.1)[0], train_cohort(here).clipped_total(0.1)[0], atol=1e-4)
