"""Training on numbers, labels and texts: against plain PyTorch, each record clipped, and no bit by other clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from own_bits import bits_of_each
from torch import nn

from fedprivacy.data.tasks import NEXT_TOKEN
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import build, flat_weights, unflatten
from fedprivacy.models.losses import Huber, LabelCrossEntropy, NextToken, SquaredError
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.model import Cnn, Gru, Logistic, Mlp, Transformer
from fedprivacy.training.calls import train_in_call
from fedprivacy.training.clipped_gradients import clipped_sums
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.dp_sgd import train_examples
from fedprivacy.training.features import Positions, split
from fedprivacy.training.task import Index, LocalTraining, Shape, Task
from fedprivacy.training.updates import Stack, Updates

CLIENTS, RECORDS, FEATURES, OUTPUTS = 5, 6, 16, 2
POSITIONS, TOKENS = 7, 5  # of texts
LOSSES = {
    "squared": SquaredError(),
    "huber": Huber(0.2),
    "labels": LabelCrossEntropy(),
    "tokens": NextToken(),
}


class Own(nn.Module):
    """A module that is no chain, so that its gradients are formed record by record."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 4), nn.Linear(4, OUTPUTS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x.flatten(1)).tanh())


def module_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    if name == "gru":
        return build(Gru(name="gru", embedding=3, width=4), (POSITIONS,), TOKENS, seed=0)
    if name == "transformer":
        small = Transformer(name="transformer", width=4, layers=2, heads=2)
        return build(small, (POSITIONS,), TOKENS, seed=0)
    if name == "own":
        return Own()
    if name in HEADS:
        width = 3 if HEADS[name] else 4
        whole = nn.Sequential(FrozenRows(), *HEADS[name], nn.Linear(width, TOKENS))
        encoder, head = split(whole, (POSITIONS,), CLIENTS * RECORDS)
        assert encoder is not None
        return head
    options = {
        "logistic": Logistic(name="logistic"),
        "mlp": Mlp(name="mlp", hidden=[5]),
        "cnn": Cnn(name="cnn", channels=[2], hidden=[3]),
    }
    return build(options[name], (FEATURES,), OUTPUTS, seed=0)


class FrozenRows(nn.Embedding):
    """A frozen embedding of tokens that come as numbers."""

    def __init__(self) -> None:
        super().__init__(TOKENS, 4)
        self.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.long())


HEADS = {"frozen, linear": (), "frozen, mlp": (nn.Linear(4, 3), nn.Tanh())}  # behind an encoder of texts
MODELS = ("logistic", "mlp", "cnn", "own")
PAIRS = [(model, loss) for model in MODELS for loss in LOSSES if loss != "tokens"] + [
    ("gru", "tokens"),
    ("transformer", "tokens"),
    *((head, "tokens") for head in HEADS),
]
each_pair = pytest.mark.parametrize(("model", "loss"), PAIRS)


def task_of(model: str, name: str, clients: list[int], epochs: int = 2) -> Task:
    stream, loss = np.random.default_rng(1), LOSSES[name]
    x = stream.standard_normal((CLIENTS * RECORDS, FEATURES)).astype(np.float32)
    y = stream.random((len(x), OUTPUTS)).astype(np.float32)
    if isinstance(loss, LabelCrossEntropy):
        y = y.round()
    if loss.task == NEXT_TOKEN:
        x = stream.integers(0, TOKENS, (len(x), POSITIONS)).astype(np.float32)
        y = stream.integers(0, TOKENS, x.shape)
        if model in HEADS:  # the features of the records
            torch.manual_seed(0)
            x = FrozenRows()(torch.from_numpy(x)).numpy()
    module = module_of(model)
    weights = flat_weights(module) + stream.normal(scale=0.1, size=len(flat_weights(module)))
    return Task(
        module=module,
        weights=weights.astype(np.float32),
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        records=[np.arange(client * RECORDS, (client + 1) * RECORDS) for client in clients],
        clients=np.array(clients),
        options=LocalTraining(ShuffledBatches(epochs, batch_size=4), learning_rate=0.3, loss=loss),
        streams=Streams(0),
        round=0,
        shape=Shape(CLIENTS, RECORDS, RECORDS, 4),
    )


@each_pair
def test_updates_are_those_of_a_plain_loop(model: str, loss: str) -> None:
    task = replace(task_of(model, loss, [0, 1, 2]), shape=None)
    found = train_cohort(task).stack()
    index, used, _ = task.batches(secret=False)
    for client in range(3):
        flat = torch.from_numpy(task.weights).clone()
        for step in range(index.shape[1]):
            rows = index[client, step][used[client, step]]
            flat.requires_grad_(True)
            outputs = torch.func.functional_call(task.module, unflatten(task.module, flat), task.x[rows])
            [gradient] = torch.autograd.grad(LOSSES[loss].losses(outputs, task.y[rows]).mean(), flat)
            flat = flat.detach() - 0.3 * gradient
        torch.testing.assert_close(
            found[client].float(), flat - torch.from_numpy(task.weights), rtol=1e-3, atol=1e-5
        )


@each_pair
def test_each_record_is_clipped_by_itself(model: str, loss: str) -> None:
    task = task_of(model, loss, [0, 1])
    weights, norm = torch.from_numpy(task.weights), 0.05
    x, y = (part[: 2 * RECORDS].unflatten(0, (2, RECORDS)).clone() for part in (task.x, task.y))
    used = torch.ones(2, RECORDS, dtype=torch.bool)
    used[1, 3] = False
    if LOSSES[loss].task == NEXT_TOKEN:
        y[0, 2, 1] = TOKENS  # a token that is none: its record counts as zero, and no other
    else:
        y[0, 2] = np.nan  # so does a target that is no number
    sums = clipped_sums(task.module, weights, x, y, used, norm, LOSSES[loss])
    assert sums.zeroed.tolist() == [1, 0]
    expected = torch.zeros_like(sums.sums)
    for client in range(2):
        for record in range(RECORDS):
            if not used[client, record] or (client, record) == (0, 2):
                continue
            flat = weights.clone().requires_grad_(True)
            outputs = torch.func.functional_call(
                task.module, unflatten(task.module, flat), x[client, record][None]
            )
            losses = LOSSES[loss].losses(outputs, y[client, record][None])
            [gradient] = torch.autograd.grad(losses.sum(), flat)
            expected[client] += gradient.double() * min(1.0, norm / float(gradient.double().norm()))
    torch.testing.assert_close(sums.sums, expected, rtol=1e-4, atol=1e-6)
    without = used.clone()
    without[0, 0] = False
    gone = clipped_sums(task.module, weights, x, y, without, norm, LOSSES[loss])
    assert 0 < torch.linalg.vector_norm(sums.sums[0] - gone.sums[0]) <= norm
    assert torch.equal(sums.sums[1], gone.sums[1])


def by_client(task: Task) -> tuple[Updates, Index]:
    return train_cohort(task), task.clients.copy()


def by_example(task: Task) -> tuple[Updates, Index]:
    return Stack(train_examples(task, 1.0, Gaussian(1.0, 1.0))[0]), task.clients.copy()


@pytest.mark.exhaustive(every=5)
@each_pair
@pytest.mark.parametrize(("train", "secret"), [(by_client, False), (by_example, True)])
def test_who_else_trains_changes_no_bit(
    train: Callable[[Task], tuple[Updates, Index]], secret: bool, model: str, loss: str
) -> None:
    everyone = list(range(CLIENTS))
    together, _ = train_in_call(task_of(model, loss, everyone), train, np.arange(CLIENTS), secret=secret)
    bits = bits_of_each(together)
    for client in everyone:
        alone, _ = train_in_call(task_of(model, loss, [client]), train, np.array([client]), secret=secret)
        assert bits_of_each(alone) == [bits[client]]


@pytest.mark.parametrize(
    ("model", "loss"), [pair for pair in PAIRS if pair[0] in ("mlp", "gru", "transformer")]
)
def test_opacus_agrees(model: str, loss: str) -> None:
    opacus_trainer = pytest.importorskip("fedprivacy.training.opacus_trainer")
    task = task_of(model, loss, [0, 1])
    theirs, _ = opacus_trainer.train_examples(task, 0.1, None)
    torch.testing.assert_close(theirs, train_examples(task, 0.1, None)[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("model", HEADS)
def test_gradients_of_heads_at_each_position_are_formed_together(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(*_: object) -> None:
        raise AssertionError("the method for all records at once has failed")

    monkeypatch.setattr("fedprivacy.training.clipped_gradients._without_raising", alone)
    task = task_of(model, "tokens", [0])
    assert type(task.module) is Positions
    used = torch.ones(1, RECORDS, dtype=torch.bool)
    x, y = task.x[None, :RECORDS], task.y[None, :RECORDS]
    sums = clipped_sums(task.module, torch.from_numpy(task.weights), x, y, used, 0.1, NextToken())
    assert 0 < float(sums.sums.norm()) <= 0.1 * RECORDS
