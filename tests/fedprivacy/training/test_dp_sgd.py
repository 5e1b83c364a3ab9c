"""DP-SGD inside the clients: the steps, the noise, and what an audit finds of both."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from dp_accounting import SelfComposedDpEvent
from scipy import stats
from torch import nn

from fedprivacy.accounting.epsilon import noise_multiplier
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound, threshold_bound
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import Batches, PoissonBatches, ReplacementBatches, ShuffledBatches
from fedprivacy.scenario import Cnn, Logistic, Mlp
from fedprivacy.training.dp_sgd import clipped_gradients, train_examples
from fedprivacy.training.task import LocalTraining, Task

STREAMS = Streams(7)
MODELS = {
    "logistic": Logistic(name="logistic"),
    "tanh": Mlp(name="mlp", hidden=(5,), activation="tanh"),
    "cnn": Cnn(name="cnn", channels=(3,), hidden=(4,)),  # 9 features are an image of 3 x 3
}
BATCHES: dict[str, Batches] = {
    "poisson": PoissonBatches(4, rate=0.4),
    "poisson by size": PoissonBatches(3, batch_size=3),
    "shuffled": ShuffledBatches(2, 4),
    "all": ShuffledBatches(3),
    "with-replacement": ReplacementBatches(3, 4),
    "one by one": ReplacementBatches(5, 1),
}
OPTIONS = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "decay": {"weight_decay": 0.3, "proximal": 0.4},
    "ball": {"projection": 0.5},
    "mean": {"averaging": True},
    "everything": {
        "momentum": 0.5,
        "weight_decay": 0.1,
        "proximal": 0.2,
        "projection": 0.8,
        "averaging": True,
    },
}


def loop(module, weights, x, y, own, client, agreed: int, options: LocalTraining, norm: float | None):
    """What the definition says, record by record."""
    stream = STREAMS.noise("batches", round=2, member=client)
    drawn = options.batches.at(agreed).draw(len(own), stream)
    at, velocity, iterates = weights.astype(np.float64), 0.0, []
    for rows in drawn:
        total = np.zeros(len(weights))
        for record in own[rows]:
            nn.utils.vector_to_parameters(torch.from_numpy(at.astype(np.float32)), module.parameters())
            loss = nn.functional.cross_entropy(module(x[record][None]), y[record][None])
            parts = torch.autograd.grad(loss, list(module.parameters()))
            gradient = torch.cat([part.reshape(-1) for part in parts]).double().numpy()
            total += gradient * (1 if norm is None else min(1, norm / np.linalg.norm(gradient)))
        step = total / options.batches.mean_size(agreed)
        step = step + options.proximal * (at - weights) + options.weight_decay * at
        velocity = options.momentum * velocity + step
        at = at - options.learning_rate * velocity
        if options.projection is not None:
            at = at * min(1, options.projection / np.linalg.norm(at))
        iterates.append(at)
    return (np.mean(iterates, axis=0) if options.averaging else at) - weights


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("norm", [0.3, None])
@pytest.mark.parametrize("extra", OPTIONS)
@pytest.mark.parametrize("sampler", BATCHES)
@pytest.mark.parametrize("model", MODELS)
def test_without_noise_it_is_a_loop_over_records(model: str, sampler: str, extra: str, norm) -> None:
    rng, sizes = np.random.default_rng(0), [6, 1, 11]
    x = torch.from_numpy(rng.standard_normal((sum(sizes), 9)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, sum(sizes)))
    module = build(MODELS[model], (9,), 3, seed=1)
    weights = flat_weights(module) + rng.normal(0, 0.1, len(flat_weights(module))).astype(np.float32)
    records = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    options = LocalTraining(BATCHES[sampler], 0.2, **OPTIONS[extra])
    clients, agreed = np.array([3, 5, 8]), np.array([6, 2, 10])
    task = Task(module, weights, x, y, records, clients, options, STREAMS, 2, agreed)
    updates, zeroed = train_examples(task, norm, None)
    assert zeroed.tolist() == [0, 0, 0]
    for update, own, client, size in zip(updates, records, clients, agreed, strict=True):
        expected = loop(module, weights, x, y, own, int(client), int(size), options, norm)
        assert np.abs(update.numpy() - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())


class Untouchable(nn.Module):
    """A model that fails on whatever it is given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("a client that failed asks its model again")


def silent(clients: int, options: LocalTraining, noise: Gaussian | None, *, weights=None, round: int = 0):
    """Updates of clients none of whose records has a gradient: noise, and what is made of it."""
    module = nn.Sequential(nn.Linear(4, 3), Untouchable())
    start = np.zeros(15, np.float32) if weights is None else weights
    x, y, records = torch.ones(4, 4), torch.zeros(4, dtype=torch.int64), [np.arange(4)] * clients
    task = Task(module, start, x, y, records, np.arange(clients), options, STREAMS, round)
    return train_examples(task, 2.0, noise, blank=True)[0].numpy()


@pytest.mark.parametrize("sampler", [ShuffledBatches(1), ShuffledBatches(2, 2), PoissonBatches(3, rate=0.5)])
def test_each_step_of_each_client_has_noise_of_its_own(sampler: Batches) -> None:
    """Over T steps it adds up to a deviation of lr z C sqrt(T) / (mean batch size); false alarms: 1e-6."""
    options, noise = LocalTraining(sampler, 0.5), Gaussian(2.0, 3.0)
    updates = silent(2000, options, noise)
    steps = len(sampler.draw(4, np.random.default_rng(0)))
    deviation = 0.5 * 6.0 * math.sqrt(steps) / sampler.mean_size(4)
    assert stats.kstest(updates.reshape(-1), "norm", args=(0, deviation)).pvalue > 1e-6
    assert len(np.unique(updates)) == updates.size
    assert not np.isin(silent(50, options, noise, round=1), updates).any()


def test_weights_of_a_server_that_attacks_do_not_swallow_the_noise() -> None:
    """In float32 a step of 0.1 from 1e8 is none at all."""
    options, noise = LocalTraining(ShuffledBatches(2), 0.1), Gaussian(2.0, 1.0)
    updates = silent(500, options, noise, weights=np.full(15, 1e8, np.float32))
    assert stats.kstest(updates.reshape(-1), "norm", args=(0, 0.1 * 2.0 * math.sqrt(2) / 4)).pvalue > 1e-6


@pytest.mark.parametrize("start", [0.0, 3e38, np.inf, np.nan])
def test_weights_beyond_all_numbers_raise_nothing_and_warn_of_nothing(start: float) -> None:
    extra = {"momentum": 0.9, "weight_decay": 1.0, "proximal": 1.0, "projection": 1.0, "averaging": True}
    options = LocalTraining(ShuffledBatches(5), 1e200, **extra)
    updates = silent(2, options, Gaussian(2.0, 1.0), weights=np.full(15, start, np.float32))
    assert updates.shape == (2, 15)


def test_a_record_without_a_finite_gradient_counts_as_none() -> None:
    x, y = torch.ones(4, 9), torch.tensor([0, 1, 2, 0])
    module = build(MODELS["tanh"], (9,), 3, seed=1)
    options = LocalTraining(ShuffledBatches(2), 0.1)

    def train(records: list[int]):
        rows, client, agreed = [np.array(records)], np.arange(1), np.array([4])
        task = Task(module, flat_weights(module), x, y, rows, client, options, STREAMS, 0, agreed)
        return train_examples(task, 1.0, None)

    x[3] = float("nan")
    updates, zeroed = train([0, 1, 2, 3])
    assert zeroed.tolist() == [2]  # once a step
    assert torch.allclose(updates, train([0, 1, 2])[0], atol=1e-7)


def test_a_trusted_server_gets_the_sum_of_clipped_gradients() -> None:
    rng = np.random.default_rng(3)
    x, y = torch.from_numpy(rng.standard_normal((9, 9)).astype(np.float32)), torch.arange(9) % 3
    module = build(MODELS["tanh"], (9,), 3, seed=1)
    records = [np.arange(5), np.arange(5, 9)]
    options = LocalTraining(PoissonBatches(1, rate=0.6), 0.1)
    task = Task(module, flat_weights(module), x, y, records, np.arange(2), options, STREAMS, 1)
    sums, _ = clipped_gradients(task, 0.1)
    index, used, _ = task.batches(secret=True)
    for row, total in enumerate(sums.numpy()):
        mine = index[row, 0][used[row, 0]]
        gradients = []
        for record in mine:
            loss = nn.functional.cross_entropy(module(x[record][None]), y[record][None])
            parts = torch.autograd.grad(loss, list(module.parameters()))
            gradient = torch.cat([part.reshape(-1) for part in parts]).numpy()
            gradients.append(gradient * min(1, 0.1 / np.linalg.norm(gradient)))
        assert np.allclose(total, -np.sum(gradients, axis=0), atol=1e-6)
    several = LocalTraining(PoissonBatches(2, rate=0.6), 0.1)
    with pytest.raises(ValueError, match="one step"):
        clipped_gradients(replace(task, options=several), 0.1)


# --- audit: two data sets that differ by a record as bad as can be -------------------------------------


def scores(label: int, sampler: Batches, noise: Gaussian, trials: int, first: int) -> np.ndarray:
    """What an observer of updates makes of them: how far they went the record's way.

    All records but the first have no gradient, so that its own, of the full norm C in every step, stands
    alone. The learning rate is so small that it stays what it is. Each client is a trial.
    """
    module = nn.Sequential(nn.Linear(1, 2, bias=False))
    x = torch.zeros(20, 1)
    x[0] = 1e3
    y = torch.full((20,), label)
    options, clients = LocalTraining(sampler, 1e-6), np.arange(first, first + trials)
    task = Task(module, np.zeros(2, np.float32), x, y, [np.arange(20)] * trials, clients, options, STREAMS, 0)
    updates, _ = train_examples(task, 1.0, noise)
    return (updates[:, 0] - updates[:, 1]).numpy()


TRIALS, DELTA = 4_000, 1e-5


def claimed(sampler: Batches, epsilon: float) -> Gaussian:
    """The noise at which a round of a client of 20 records claims epsilon under replace-one."""

    def event(z: float) -> SelfComposedDpEvent:
        return sampler.event(Gaussian(1.0, z).event(), 20)

    return Gaussian(1.0, noise_multiplier(event, epsilon, DELTA, "replace-one"))


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_audit_of_full_batches(epsilon: float) -> None:
    """Full-batch DP-GD has the largest effect that its claim allows; false alarms: 1e-6 for each bound."""
    sampler = ShuffledBatches(4)
    noise = claimed(sampler, epsilon)
    present, absent = scores(0, sampler, noise, TRIALS, 0), scores(1, sampler, noise, TRIALS, TRIALS)
    proved = gaussian_bound(present, absent, DELTA, 1 - 1e-6).epsilon
    assert epsilon / 2 < proved <= epsilon
    assert threshold_bound(present, absent, DELTA, 1 - 1e-6).epsilon <= epsilon
    # The audit has teeth: half the noise is found out.
    half = Gaussian(1.0, noise.noise_multiplier / 2)
    weak = [scores(label, sampler, half, TRIALS, 0) for label in (0, 1)]
    assert gaussian_bound(*weak, DELTA, 1 - 1e-6).epsilon > epsilon


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("sampler", "least"),
    [
        (PoissonBatches(10, rate=0.3), 1.0),
        (ShuffledBatches(4, 5), 0.2),  # three of four steps have noise alone
        (ReplacementBatches(10, 4), 0.0),
        (ReplacementBatches(20, 1), 0.0),
    ],
    ids=["poisson", "shuffled", "with replacement", "one by one"],
)
def test_audit_of_batches(sampler: Batches, least: float) -> None:
    """No sampler's claim is exceeded; false alarms: 1e-6 each."""
    noise = claimed(sampler, 4.0)
    present, absent = scores(0, sampler, noise, TRIALS, 0), scores(1, sampler, noise, TRIALS, TRIALS)
    proved = threshold_bound(present, absent, DELTA, 1 - 1e-6)
    assert least <= proved.epsilon <= 4.0 < proved.ceiling
