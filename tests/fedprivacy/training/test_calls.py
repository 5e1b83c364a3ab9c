"""Calls that train clients keep their order and their bits, also where a client's own batch overflows a call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from fedprivacy.batches import PoissonBatches
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models import build, flat_weights
from fedprivacy.scenario.model import Mlp
from fedprivacy.seeds import Streams
from fedprivacy.training.calls import results, train_in_calls
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.dp_sgd import clipped_gradients, train_examples
from fedprivacy.training.task import Index, LocalTraining, Shape, Task
from fedprivacy.training.updates import Joined, Stack, Updates

CLIENTS, RECORDS, FEATURES, CLASSES = 9, 20, 6, 3
SHAPE = Shape(places=CLIENTS, records=RECORDS, rows=32, width=16)  # aligned, so that places are alike


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


def rows_of(updates: Updates) -> list[list[bytes]]:
    """All bits of each client's part in a sum, in order."""
    if isinstance(updates, Joined):
        rows = [row for part in updates.parts for row in rows_of(part)]
        return rows if updates.order is None else [rows[place] for place in updates.order]
    parts = [part.numpy() for part in results(updates)]
    return [[part[place].tobytes() for part in parts] for place in range(len(parts[0]))]


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
    together, counts = train_in_calls(task, train, secret=secret)
    alone = [train_in_calls(task_of([client], steps), train, secret=secret)[0] for client in range(CLIENTS)]
    assert counts.tolist() == list(range(CLIENTS))
    assert rows_of(together) == [rows_of(one)[0] for one in alone]
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
