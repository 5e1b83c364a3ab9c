"""Adversarial regularisation: equal to a plain loop with torch's own layers, and it takes from an attack."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.released.signals import confidences
from fedprivacy.attacks.roc import auc
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario import Cnn, Mlp
from fedprivacy.training.adversarial import BATCH, BLOCK, _lessons
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.membership_regulariser import LEARNING_RATE, WIDTHS
from fedprivacy.training.task import Adversarial, LocalTraining, Task

STREAMS = Streams(11)
CLASSES = 3
TANH = Mlp(name="mlp", hidden=(6, 5), activation="tanh")


def make_task(
    options: LocalTraining, sizes: list[int], model: Mlp | Cnn = TANH, streams: Streams = STREAMS
) -> Task:
    rng = np.random.default_rng(0)
    count = sum(sizes) + 20
    x = torch.from_numpy(rng.standard_normal((count, 9)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, CLASSES, count))
    module = build(model, (9,), CLASSES, seed=1)
    *records, references = np.split(rng.permutation(count), np.cumsum(sizes))
    clients = np.arange(10, 10 + len(sizes))
    return Task(
        module, flat_weights(module), x, y, records, clients, options, streams, 2, references=references
    )


def plain(task: Task, at: int) -> np.ndarray:
    """One client by itself, the inference network built of torch's own layers."""
    options, own, client = task.options, task.records[at], int(task.clients[at])
    how, others = options.adversarial, task.references
    assert how is not None
    assert others is not None
    module = task.module
    nn.utils.vector_to_parameters(torch.from_numpy(task.weights.copy()), module.parameters())
    mine = torch.optim.SGD(
        module.parameters(), options.learning_rate, options.momentum, weight_decay=options.weight_decay
    )
    drawn = task.streams.stream("adversarial/network", round=task.round, member=client)
    layers: list[nn.Module] = []
    sizes = (2 * CLASSES + 1, *WIDTHS, 1)
    for a, b in pairwise(sizes):
        layer = nn.Linear(a, b)
        nn.init.zeros_(layer.bias)
        start = torch.from_numpy(drawn.standard_normal((a, b), np.float32)) * (2 / a) ** 0.5
        layer.weight.data = start.T.contiguous()
        layers += [layer, nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    theirs = torch.optim.Adam(network.parameters(), LEARNING_RATE)

    def seen(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logs = torch.log_softmax(logits, 1)
        return torch.cat([logs.exp(), torch.eye(CLASSES)[y], logs[torch.arange(len(y)), y][:, None]], 1)

    size = options.batches.batch_size or len(own)
    order = task.streams.stream("batches", round=task.round, member=client)
    batches = []
    for _ in range(options.batches.epochs):
        shuffled = order.permutation(own) if len(own) > size else own
        batches += [shuffled[start : start + size] for start in range(0, len(own), size)]
    lessons = task.streams.stream("adversarial/lessons", round=task.round, member=client)
    lessons = iter(lessons.random((how.first + how.steps * len(batches), 2, BATCH)))
    for step, rows in enumerate(batches):
        for _ in range(how.steps + (0 if step else how.first)):
            inside, outside = next(lessons)
            known, unknown = own[(inside * len(own)).astype(int)], others[(outside * len(others)).astype(int)]
            theirs.zero_grad()
            told = network(seen(module(task.x[known]).detach(), task.y[known]))
            other = network(seen(module(task.x[unknown]).detach(), task.y[unknown]))
            gain = torch.sigmoid(told).log().mean() / 2 + (1 - torch.sigmoid(other)).log().mean() / 2
            (-gain).backward()
            theirs.step()
        mine.zero_grad()
        logits, labels = module(task.x[rows]), task.y[rows]
        fooled = torch.sigmoid(network(seen(logits, labels))).log().mean()
        (nn.functional.cross_entropy(logits, labels) + how.gain * fooled).backward()
        mine.step()
    return flat_weights(module) - task.weights


@pytest.mark.exhaustive(beyond=3)
@pytest.mark.parametrize(
    "options",
    [
        LocalTraining(ShuffledBatches(3, 4), 0.3, adversarial=Adversarial(2.0)),
        LocalTraining(ShuffledBatches(2, None), 0.3, adversarial=Adversarial(5.0, steps=3, first=7)),
        LocalTraining(ShuffledBatches(1, None), 0.3, adversarial=Adversarial(1.0, first=2 * BLOCK + 3)),
        LocalTraining(
            ShuffledBatches(3, 4), 0.3, momentum=0.5, weight_decay=0.1, adversarial=Adversarial(1.0, 2)
        ),
    ],
)
@pytest.mark.parametrize("sizes", [[11], [5, 5, 5], [1, 13, 4]])
def test_equal_to_a_plain_loop(options: LocalTraining, sizes: list[int]) -> None:
    task = make_task(options, sizes)
    updates = train_cohort(task).stack()
    bare = train_cohort(replace(task, options=replace(options, adversarial=None))).stack()
    for at, update in enumerate(updates):
        expected = plain(task, at)
        assert np.abs(update.numpy() - expected).max() <= 1e-4 * max(1.0, np.abs(expected).max())
        assert np.abs(update.numpy() - bare[at].numpy()).max() > 1e-3  # it does something


def test_a_convolutional_model_is_trained_too() -> None:
    options = LocalTraining(ShuffledBatches(2, 4), 0.1, adversarial=Adversarial(2.0))
    task = make_task(options, [5, 9], Cnn(name="cnn", channels=(3,), hidden=(4,)))
    for at, update in enumerate(train_cohort(task).stack()):
        assert np.abs(update.numpy() - plain(task, at)).max() <= 1e-4


def test_an_update_depends_on_the_seed_the_round_and_the_client_and_on_nobody_else() -> None:
    options = LocalTraining(ShuffledBatches(2, 4), 0.3, adversarial=Adversarial(3.0))
    task = make_task(options, [5, 9, 7])
    together = train_cohort(task).stack()
    for at in range(3):
        single = replace(task, records=task.records[at : at + 1], clients=task.clients[at : at + 1])
        assert torch.allclose(train_cohort(single).stack()[0], together[at], atol=1e-6)
        assert torch.equal(train_cohort(single).stack(), train_cohort(single).stack())
        for other in (replace(single, round=3), replace(single, streams=Streams(12))):
            assert not torch.allclose(train_cohort(other).stack()[0], together[at], atol=1e-5)


def test_a_broken_record_stays_with_its_own_client() -> None:
    task = make_task(LocalTraining(ShuffledBatches(2, 4), 0.3, adversarial=Adversarial(3.0)), [5, 9])
    task.x[task.records[0][0]] = float("nan")
    updates = train_cohort(task).stack()
    assert torch.isnan(updates[0]).any()
    assert torch.isfinite(updates[1]).all()


def test_however_many_steps_the_network_makes_only_some_are_drawn_at_once() -> None:
    options = LocalTraining(ShuffledBatches(2, 4), 0.1, adversarial=Adversarial(2.0))
    task = make_task(options, [5, 9])
    short, endless = _lessons(task, 1), _lessons(task, 10**12)  # at once these would be a petabyte
    one = next(short)
    assert np.array_equal(one, next(endless))
    assert next(short, None) is None
    assert one.shape == (2, 2 * BATCH)


def test_without_references_nothing_is_trained() -> None:
    task = make_task(LocalTraining(ShuffledBatches(1, 4), 0.3, adversarial=Adversarial(3.0)), [5])
    for none in (None, np.zeros(0, np.int64)):
        with pytest.raises(ValueError, match="reference records"):
            train_cohort(replace(task, references=none))


@pytest.mark.exhaustive
def test_it_takes_from_an_attack_on_a_model_that_knows_its_records_by_heart() -> None:
    """Labels that are mostly noise, learned by heart without it: the AUC of the loss falls from .87 to .66."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((700, 20)).astype(np.float32)
    truth = x @ rng.standard_normal((20, 4)) + 6.0 * rng.standard_normal((700, 4))
    data, y = torch.from_numpy(x), torch.from_numpy(truth.argmax(axis=1))
    module = build(Mlp(name="mlp", hidden=(32,), activation="tanh"), (20,), 4, seed=1)
    own, references, others = np.split(np.arange(700), [100, 400])
    found = []
    for how in (None, Adversarial(3.0)):
        options, sent = LocalTraining(ShuffledBatches(60, 20), 0.4, adversarial=how), flat_weights(module)
        task = Task(module, sent, data, y, [own], np.arange(1), options, STREAMS, 0, references=references)
        weights = torch.from_numpy(sent) + train_cohort(task).stack()
        sure = confidences(module, weights, data, y)[0]
        found.append(auc(sure[own], sure[others]).value)
    assert found[0] > 0.85
    assert found[1] < 0.72
