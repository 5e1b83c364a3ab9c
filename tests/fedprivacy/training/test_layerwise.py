"""Training layer by layer equals the plain loop, whichever way a layer's weights are kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from torch import Tensor, nn

from fedprivacy.mechanisms.clipping import clip
from fedprivacy.models.by_name import flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.training import layerwise
from fedprivacy.training.layerwise import LayerwiseUpdates, kinds_of, train_layerwise
from fedprivacy.training.task import LocalTraining, Task

STREAMS = Streams(5)


def chain(widths: list[int], activation: type[nn.Module], *, bias: bool) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(widths):
        parts += [nn.Linear(inputs, outputs, bias=bias), activation()]
    return nn.Sequential(*parts[:-1])


def task_of(
    module: nn.Module, features: int, classes: int, sizes: list[int], options: LocalTraining, seed: int = 0
) -> Task:
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((sum(sizes), features)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, classes, sum(sizes)))
    records = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    weights = rng.normal(0, 0.3, len(flat_weights(module))).astype(np.float32)
    return Task(module, weights, x, y, records, np.arange(7, 7 + len(sizes)), options, STREAMS, 3)


@pytest.fixture(params=["by cost", "factored", "formed"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How layers keep their weights: by the estimate, or all of them one way."""
    if request.param != "by cost":
        monkeypatch.setattr(layerwise, "_factored", lambda *_: request.param == "factored")
    return request.param


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    widths=some.lists(some.integers(1, 9), min_size=2, max_size=4),
    activation=some.sampled_from([nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU]),
    bias=some.booleans(),
    sizes=some.lists(some.integers(1, 12), min_size=1, max_size=5),
    epochs=some.integers(1, 3),
    batch=some.one_of(some.none(), some.integers(1, 13)),
    momentum=some.sampled_from([0.0, 0.9]),
    weight_decay=some.sampled_from([0.0, 0.3]),
    proximal=some.sampled_from([0.0, 0.6]),
    seed=some.integers(0, 10**6),
)
def test_every_client_ends_where_the_plain_loop_ends(
    kept: str,
    plain_loop,
    widths,
    activation,
    bias,
    sizes,
    epochs,
    batch,
    momentum,
    weight_decay,
    proximal,
    seed,
) -> None:
    """Within 1e-5 relative, over shapes, steps, ragged sizes and all options; sums of clipped updates too."""
    options = LocalTraining(
        ShuffledBatches(epochs, batch), 0.1, momentum=momentum, weight_decay=weight_decay, proximal=proximal
    )
    task = task_of(chain(widths, activation, bias=bias), widths[0], widths[-1], sizes, options, seed)
    expected = plain_loop(task)
    updates = train_layerwise(task)
    scale = max(1.0, np.abs(expected).max())
    assert np.abs(updates.stack().numpy() - expected).max() <= 1e-5 * scale
    norms = np.linalg.norm(expected, axis=1)
    for norm in (None, float(np.median(norms)) / 2 + 1e-3):
        total, broken = updates.clipped_total(norm)
        bounded, _ = clip(torch.from_numpy(expected), norm)
        assert not broken.any()
        assert np.abs(total.numpy() - bounded.sum(dim=0).numpy()).max() <= 1e-5 * len(sizes) * scale


def test_what_a_client_adds_stays_within_the_clipping_norm_whatever_cancels(kept: str) -> None:
    """Two records as long as 40,000 that pull apart but for a difference of 1: float32 would lose that."""
    module, total = chain([3, 2], nn.ReLU, bias=True), np.zeros(8)
    for place in range(20):
        x = torch.tensor([[1e4, 3e4, 2e4], [1e4, 3e4, 2e4]]) + place
        x[1, 2] += 1.0
        task = Task(
            module, np.zeros(8, np.float32), x, torch.tensor([0, 1]), [np.arange(2)], np.arange(1),
            LocalTraining(ShuffledBatches(1), 1.0), STREAMS, 0,
        )  # fmt: skip
        for norm in (0.1, 0.3):
            total = train_layerwise(task).clipped_total(norm)[0].numpy()
            assert norm / 2 < np.linalg.norm(total) <= norm


@pytest.mark.parametrize("rows", [64, 384])
def test_rows_that_swallow_one_another_in_float32_add_no_more_than_the_clipping_norm(rows: int) -> None:
    """Large, small, large turned round, small turned round: their sum is nothing, but not in float32."""
    large, half = 2.0**10, rows // 2 - 1
    small = 0.4 * large * 2**-23
    signs = np.array([large, *[small] * half, -large, *[-small] * half], dtype=np.float32)
    x = torch.from_numpy(np.repeat(signs[:, None], 400, axis=1))
    module = nn.Sequential(nn.Linear(400, 500, bias=False))
    task = Task(
        module, np.zeros(200_000, np.float32), x, torch.zeros(rows, dtype=torch.int64), [np.arange(rows)],
        np.arange(1), LocalTraining(ShuffledBatches(1), 1.0), STREAMS, 0,
    )  # fmt: skip
    total, _ = train_layerwise(task).clipped_total(1e-4)
    assert float(total.norm()) <= 1e-4


@pytest.mark.parametrize("shape", [(784, 2, 1), (784, 1000, 40), (3000, 2, 50)])
@pytest.mark.parametrize("norm", [1e-4, 1e-2])
def test_huge_records_add_no_more_than_the_clipping_norm(kept: str, shape, norm: float) -> None:
    """Their shares are so small that float32 would round them up."""
    features, classes, rows = shape
    x = torch.from_numpy(np.random.default_rng(0).uniform(1e38, 3.4e38, (rows, features)).astype(np.float32))
    module = nn.Sequential(nn.Linear(features, classes))
    task = Task(
        module, np.zeros(classes * (features + 1), np.float32), x, torch.zeros(rows, dtype=torch.int64),
        [np.arange(rows)], np.arange(1), LocalTraining(ShuffledBatches(1), 1.0), STREAMS, 0,
    )  # fmt: skip
    total, _ = train_layerwise(task).clipped_total(norm)
    assert float(total.norm()) <= norm * (1 + 1e-12)


def test_a_client_that_diverges_by_weight_decay_breaks_alone(kept: str) -> None:
    options = LocalTraining(ShuffledBatches(1, 2), 1.0, weight_decay=1000.0)
    task = task_of(chain([20, 20, 20], nn.ReLU, bias=True), 20, 20, [3, 57], options)
    total, broken = train_layerwise(task).clipped_total(1.0)
    assert broken.tolist() == [False, True]
    assert 0 < float(total.norm()) <= 1.0 + 1e-12


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_a_broken_record_breaks_its_own_client_alone(kept: str, bad: float) -> None:
    options = LocalTraining(ShuffledBatches(2, 2), 0.1)
    task = task_of(chain([4, 5, 3], nn.ReLU, bias=True), 4, 3, [3, 1, 5], options)
    fine = train_layerwise(task)
    task.x[task.records[0][1]] = bad
    updates = train_layerwise(task)
    total, broken = updates.clipped_total(0.5)
    assert broken.tolist() == [True, False, False]
    bounded, _ = clip(fine.stack()[1:], 0.5)
    assert torch.allclose(total, bounded.sum(dim=0), atol=1e-6)
    assert torch.equal(updates.stack()[1:], fine.stack()[1:])


def test_many_records_and_few_weights_are_formed_and_the_other_way_round_factored() -> None:
    wide, narrow = chain([784, 200, 10], nn.ReLU, bias=True), chain([64, 10], nn.ReLU, bias=True)
    assert kinds_of(wide, ShuffledBatches(1, 10), 20) == {"1": "factored", "3": "formed"}
    assert kinds_of(narrow, ShuffledBatches(1, 10), 20) == {"1": "formed"}
    assert kinds_of(wide, ShuffledBatches(1, 500), 5000)["1"] == "formed"


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("left", [slice(1, None), slice(None, -1), slice(0, None, 2), slice(7, 8)])
def test_who_else_is_there_changes_no_bit_of_a_client(kept: str, left: slice) -> None:
    """Else a client that comes or goes would move all that stand behind it, and training may amplify a bit."""
    for module in (chain([6, 10], nn.ReLU, bias=True), chain([6, 30, 10], nn.ReLU, bias=True)):
        task = task_of(module, 6, 10, [10] * 31, LocalTraining(ShuffledBatches(20, 5), 3.0), seed=4)
        fewer = replace(task, records=task.records[left], clients=task.clients[left])
        assert torch.equal(train_layerwise(task).stack()[left], train_layerwise(fewer).stack())


def test_one_record_more_changes_nobody_elses_way_of_training() -> None:
    """Which layers are factored goes by agreed sizes."""
    module = chain([784, 200, 10], nn.ReLU, bias=True)
    options, sizes = LocalTraining(ShuffledBatches(1, 10), 0.1), np.array([20, 200, 20])
    kinds = {kinds_of(module, options.batches, records)["1"] for records in (200, 210)}
    assert kinds == {"factored", "formed"}
    dealt = task_of(module, 784, 10, [20, 210, 20], options)
    fewer = replace(dealt, records=[dealt.records[0], dealt.records[1][:200], dealt.records[2]])
    more, less = (train_layerwise(replace(task, sizes=sizes)) for task in (dealt, fewer))
    assert [type(layer) for layer in more.layers] == [type(layer) for layer in less.layers]


def test_weights_that_are_not_finite_add_nothing(kept: str) -> None:
    """Every update is broken, and a broken one counts as zero."""
    task = task_of(
        chain([3, 2], nn.ReLU, bias=True),
        3,
        2,
        [2, 2],
        LocalTraining(ShuffledBatches(1), 0.1, weight_decay=0.1),
    )
    task.weights[0] = np.inf
    total, broken = train_layerwise(task).clipped_total(1.0)
    assert broken.all()
    assert not total.any()


def test_no_tensor_of_all_clients_weights_is_made() -> None:
    """Of 64 clients on 159,010 parameters, 41 MB: the largest tensor that is allocated is far smaller."""
    sizes, options = [20] * 64, LocalTraining(ShuffledBatches(1, 10), 0.1)
    task = task_of(chain([784, 200, 10], nn.ReLU, bias=True), 784, 10, sizes, options)
    with torch.profiler.profile(profile_memory=True) as profile:
        updates = train_layerwise(task)
        assert isinstance(updates, LayerwiseUpdates)
        updates.clipped_total(1.0)
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert largest < 4 * 64 * 159_010 / 2


def test_the_sum_over_pieces_is_the_sum_over_all(kept: str) -> None:
    options = LocalTraining(ShuffledBatches(2, 3), 0.1, weight_decay=0.1)
    task = task_of(chain([6, 8, 3], nn.Tanh, bias=True), 6, 3, [4, 9, 1, 5], options)

    def total(which: slice) -> Tensor:
        part = replace(task, records=task.records[which], clients=task.clients[which])
        return train_layerwise(part).clipped_total(0.3)[0]

    assert torch.allclose(total(slice(0, 2)) + total(slice(2, 4)), total(slice(0, 4)), atol=1e-6)
