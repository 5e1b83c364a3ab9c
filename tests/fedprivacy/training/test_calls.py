"""A client's bits in a call are its own, whoever stands in the other places, also where its batch overflows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from own_bits import bits_of_each
from torch import nn

from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import Batches, PoissonBatches, ReplacementBatches, ShuffledBatches
from fedprivacy.scenario.model import Mlp
from fedprivacy.training import layers
from fedprivacy.training.calls import calls_of, train_in_call
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.dp_sgd import clipped_gradients, train_examples
from fedprivacy.training.task import Index, LocalTraining, Shape, Task, size_class
from fedprivacy.training.updates import Stack, Updates

CLIENTS, RECORDS, FEATURES, CLASSES = 9, 20, 6, 3
SHAPE = Shape(places=CLIENTS, records=RECORDS, rows=RECORDS, width=16)


def by_client(task: Task) -> tuple[Updates, Index]:
    return train_cohort(task), task.clients.copy()  # counts that name the client


def by_example(task: Task) -> tuple[Updates, Index]:
    return Stack(train_examples(task, 1.0, Gaussian(1.0, 1.0))[0]), task.clients.copy()


def for_a_server(task: Task) -> tuple[Updates, Index]:
    return Stack(clipped_gradients(task, 1.0)[0]), task.clients.copy()


def task_of(clients: list[int], steps: int) -> Task:
    """Clients whose Poisson batches of mean size 15 overflow a width of 16 now and then."""
    stream = np.random.default_rng(0)
    x = stream.standard_normal((CLIENTS * RECORDS, FEATURES)).astype(np.float32)
    x[3 * RECORDS : 4 * RECORDS] = np.nan  # client 3 has an update that is not finite
    y = stream.integers(0, CLASSES, len(x))
    module = build(Mlp(name="mlp", hidden=[5]), (FEATURES,), CLASSES, seed=0)
    return Task(
        module=module,
        weights=flat_weights(module),
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        records=[np.arange(client * RECORDS, (client + 1) * RECORDS) for client in clients],
        clients=np.array(clients),
        options=LocalTraining(PoissonBatches(steps, rate=0.75), learning_rate=0.5),
        streams=Streams(0),
        round=0,
        shape=SHAPE,
    )


@pytest.mark.parametrize(
    ("train", "steps", "secret"), [(by_client, 2, False), (by_example, 2, True), (for_a_server, 1, True)]
)
def test_clients_whose_batches_overflow_stay_in_their_place(
    train: Callable[[Task], tuple[Updates, Index]], steps: int, secret: bool
) -> None:
    task = task_of(list(range(CLIENTS)), steps)
    wide = (task.positions(secret=secret)[1].sum(axis=2) > SHAPE.width).any(axis=1)
    order = np.argsort(np.concatenate([np.flatnonzero(~wide), np.flatnonzero(wide)]))
    assert wide.sum() >= 2
    assert (np.diff(order) < 0).any()
    places = np.arange(CLIENTS)[::-1].copy()
    together, counts = train_in_call(task, train, places, secret=secret)
    alone = [
        train_in_call(task_of([client], steps), train, places[[client]], secret=secret)[0]
        for client in range(CLIENTS)
    ]
    assert counts.tolist() == list(range(CLIENTS))
    assert bits_of_each(together) == [bits_of_each(one)[0] for one in alone]
    same = np.concatenate([one.stack().numpy() for one in alone])
    assert together.stack().numpy().tobytes() == same.tobytes()
    assert torch.equal(together.norms(), torch.cat([one.norms() for one in alone]))
    # Those that answer, in any order, and their sum; who is not finite is in neither.
    for some in (np.array([8, 0, 3, 5, 1]), np.array([2, 3]), np.arange(CLIENTS)):
        part = together.only(some)
        assert part.stack().numpy().tobytes() == same[some].tobytes()
        total, broken = part.clipped_total(0.1)
        parts = [alone[client].clipped_total(0.1) for client in some]
        assert broken.tolist() == [bool(own) for _, own in parts]
        expected = torch.stack([own for own, _ in parts]).sum(dim=0)
        torch.testing.assert_close(total, expected, rtol=0, atol=1e-12)
    total, broken = together.only(np.zeros(0, np.int64)).clipped_total(1.0)
    assert not total.any()
    assert not len(broken)


def test_a_batch_that_overflows_is_as_wide_as_the_client_alone_makes_it() -> None:
    """Where several overflow, the widest of them does not widen the others'."""
    task, widths = task_of(list(range(CLIENTS)), 2), []
    wide = np.flatnonzero((task.positions(secret=False)[1].sum(axis=2) > SHAPE.width).any(axis=1))

    def train(each: Task) -> tuple[Updates, Index]:
        widths.append(each.positions(secret=False)[0].shape[2])
        return by_client(each)

    train_in_call(task, train, np.arange(CLIENTS), secret=False)
    assert len(wide) >= 2
    assert widths == [SHAPE.width, *[RECORDS] * len(wide)]


def test_clients_of_one_place_are_in_different_calls() -> None:
    stream = np.random.default_rng(0)
    for most in (1, 2, 7):
        places = stream.integers(0, most, 40)
        calls = calls_of(places)
        assert sorted(np.concatenate(calls).tolist()) == list(range(40))
        assert all(len(set(places[call])) == len(call) for call in calls)
        assert len(calls) == np.bincount(places).max()
    assert calls_of(np.zeros(0, np.int64)) == []


ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.Softplus)


def drawn_model(stream: np.random.Generator) -> tuple[nn.Module, tuple[int, ...], int]:
    """A small model, chain or not, whose sizes fit no vector of a processor; with few classes too."""
    act, classes = ACTIVATIONS[stream.integers(len(ACTIVATIONS))], int(stream.integers(1, 12))
    if stream.random() < 0.2:
        channels = int(stream.integers(1, 5))
        layers = [nn.Conv2d(1, channels, 3), act(), nn.MaxPool2d(2), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(channels * 4, classes)), (1, 6, 6), classes
    features, hidden = int(stream.integers(1, 40)), int(stream.integers(1, 50))
    return nn.Sequential(nn.Linear(features, hidden), act(), nn.Linear(hidden, classes)), (features,), classes


def drawn_batches(stream: np.random.Generator) -> Batches:
    steps, size = int(stream.integers(1, 4)), int(stream.integers(1, 9))
    return [
        ShuffledBatches(steps + 2),
        ShuffledBatches(steps, size),
        PoissonBatches(steps, rate=float(stream.choice([0.05, 0.5]))),
        ReplacementBatches(steps, size),
    ][stream.integers(4)]


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("in_front", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_who_else_is_in_a_call_changes_no_bit(
    seed: int, in_front: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any model: alone among copies of itself, among others, and among others that are not finite."""
    monkeypatch.setattr(layers, "_INPUTS_IN_FRONT", in_front)  # the layout of either processor
    stream = np.random.default_rng(seed)
    torch.manual_seed(seed)
    for _ in range(20):
        module, features, classes = drawn_model(stream)
        count, size = int(stream.integers(2, 24)), int(stream.integers(1, 13))
        x = stream.standard_normal((count * size, *features)).astype(np.float32)
        x *= np.float32(stream.choice([1e-3, 1.0, 30.0]))
        options = LocalTraining(
            drawn_batches(stream),
            float(stream.choice([0.05, 1.0, 8.0])),
            momentum=float(stream.choice([0.0, 0.9])),
            weight_decay=float(stream.choice([0.0, 0.1])),
        )
        weights = (flat_weights(module) * stream.choice([1.0, 3.0])).astype(np.float32)
        y = torch.from_numpy(stream.integers(0, classes, len(x)))
        shape = Shape.of(options.batches, size_class(size), count)

        def bits(
            clients: list[int],
            x: np.ndarray,
            y=y,
            module=module,
            options=options,
            weights=weights,
            size=size,
            shape=shape,
        ) -> list[list[bytes]]:
            records = [np.arange(client * size, (client + 1) * size) for client in clients]
            ids = np.array(clients)
            task = Task(
                module, weights, torch.from_numpy(x), y, records, ids, options, Streams(seed), 0, shape=shape
            )
            return bits_of_each(train_in_call(task, by_client, ids, secret=False)[0])

        client = int(stream.integers(count))
        broken = x.copy()
        broken[: client * size] = np.nan
        alone = bits([client], x)[0]
        for others in (x, broken):
            assert bits(list(range(count)), others)[client] == alone, (module, shape, options)
