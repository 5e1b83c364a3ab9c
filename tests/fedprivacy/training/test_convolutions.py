"""Clients with convolutional chains, layer by layer, equal a plain PyTorch loop, client by client."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.models.by_name import ToImage, build, flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario import Cnn
from fedprivacy.training.convolutions import FormedConvolution
from fedprivacy.training.layers import Step
from fedprivacy.training.layerwise import is_layerwise, kinds_of, numbers_of_convolutions, train_layerwise
from fedprivacy.training.task import LocalTraining, Task

# From 64 features to 3 classes.
CHAINS: dict[str, Callable[[], nn.Sequential]] = {
    "5 x 5, two of them": lambda: nn.Sequential(
        *(ToImage(1, 8), nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(24, 5), nn.ReLU(), nn.Linear(5, 3)),
    ),
    "stride, dilation, no bias, two thin ones": lambda: nn.Sequential(
        *(ToImage(1, 8), nn.Conv2d(1, 3, (3, 2), stride=(2, 1), padding=(0, 1), dilation=(1, 2), bias=False)),
        *(nn.Tanh(), nn.Conv2d(3, 2, 2, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3, bias=False)),
    ),
    "stride, dilation, no bias, wide": lambda: nn.Sequential(
        *(ToImage(4, 4), nn.Conv2d(4, 8, (2, 4), stride=(1, 2), padding=(1, 2), dilation=(2, 1), bias=False)),
        *(nn.GELU(), nn.Conv2d(8, 5, 2, padding=1, bias=False), nn.Tanh(), nn.Flatten(), nn.Linear(100, 3)),
    ),
    "average pools and none linear": lambda: nn.Sequential(
        *(ToImage(1, 8), nn.AvgPool2d(2, padding=1), nn.Conv2d(1, 8, 3, padding=1), nn.Sigmoid()),
        *(nn.AvgPool2d(3, stride=1), nn.Conv2d(8, 3, 2), nn.AvgPool2d(2), nn.Flatten()),
    ),
    "overlapping pools": lambda: nn.Sequential(
        *(nn.Flatten(), ToImage(1, 8), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(3, stride=1, padding=1)),
        *(nn.Conv2d(8, 4, 3), nn.GELU(), nn.MaxPool2d(3, stride=2, ceil_mode=True), nn.Flatten()),
        *(nn.Linear(16, 3),),
    ),
}
OPTIONS = [
    LocalTraining(ShuffledBatches(1, None), 0.5),
    LocalTraining(ShuffledBatches(1, 4), 0.2),
    LocalTraining(ShuffledBatches(3, 4), 0.1),
    LocalTraining(ShuffledBatches(2, 1), 0.05),
    LocalTraining(ShuffledBatches(3, 4), 0.1, momentum=0.9),
    LocalTraining(ShuffledBatches(3, 4), 0.1, weight_decay=0.3),
    LocalTraining(ShuffledBatches(3, 4), 0.1, proximal=0.7),
    LocalTraining(ShuffledBatches(3, 3), 0.05, momentum=0.5, weight_decay=0.1, proximal=2.0),
    LocalTraining(ShuffledBatches(3, None), 0.1, momentum=0.9, weight_decay=0.1, proximal=0.5),
]


def task(module: nn.Module, options: LocalTraining, sizes: list[int], seed: int = 0) -> Task:
    """Clients with random records of 64 features."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((sum(sizes), 64)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, sum(sizes)))
    records = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    clients = np.arange(10, 10 + len(sizes))
    return Task(module, flat_weights(module), x, y, records, clients, options, Streams(11), 2)


def chain(name: str) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return CHAINS[name]()


@pytest.mark.exhaustive(every=11)
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sizes", [[5, 5, 5], [1, 13, 4, 7, 8], [9]])
def test_equal_to_a_plain_loop(plain_loop, name: str, options: LocalTraining, sizes: list[int]) -> None:
    module = chain(name)
    assert is_layerwise(module)
    work = task(module, options, sizes)
    updates = train_layerwise(work).stack()
    for update, expected in zip(updates, plain_loop(work), strict=True):
        assert np.abs(update.numpy() - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
        assert np.linalg.norm(update.numpy() - expected) <= 1e-5 * np.linalg.norm(expected)


def test_linear_layers_after_convolutions_are_factored_where_that_is_cheaper() -> None:
    module = build(Cnn(name="cnn", channels=(16, 32), kernel_size=5, hidden=(56,)), (784,), 10, seed=1)
    assert kinds_of(module, ShuffledBatches(1, 10), 20) == {
        "1": "formed",
        "4": "formed",
        "8": "factored",
        "10": "formed",
    }


@pytest.mark.parametrize("name", CHAINS)
def test_the_clipped_total_is_that_of_the_clipped_updates(name: str) -> None:
    updates = train_layerwise(task(chain(name), OPTIONS[2], [6, 1, 9]))
    formed = updates.stack().double()
    norms = formed.norm(dim=1)
    bound = float(norms.sort().values[1])  # one is shorter, one longer
    total, broken = updates.clipped_total(bound)
    expected = (formed * (bound / norms).clamp(max=1.0)[:, None]).sum(dim=0)
    assert not broken.any()
    assert (total - expected).norm() <= 1e-5 * expected.norm()


@pytest.mark.parametrize("name", CHAINS)
def test_a_broken_record_stays_with_its_own_client(name: str) -> None:
    work = task(chain(name), OPTIONS[2], [6, 1, 9])
    whole = train_layerwise(work).stack()
    work.x[work.records[1]] = float("nan")
    updates = train_layerwise(work)
    total, broken = updates.clipped_total(None)
    assert broken.tolist() == [False, True, False]
    assert torch.allclose(total, whole[[0, 2]].double().sum(dim=0), atol=1e-6)


@pytest.mark.parametrize("name", CHAINS)
def test_what_convolutions_make_is_counted(name: str) -> None:
    module, counted = chain(name), {"numbers": 0, "weights": 0}

    def count(layer, given, made) -> None:
        counted["numbers"] += made.numel()

    for layer in module:
        if isinstance(layer, nn.Conv2d):
            counted["weights"] += layer.weight.numel()
            layer.register_forward_hook(count)
    module(torch.zeros(1, 64))
    assert numbers_of_convolutions(module, (64,))[:2] == (counted["numbers"], counted["weights"])


@pytest.mark.parametrize("channels", [1, 8])
def test_the_update_of_one_step_is_the_gradient_to_the_last_bit(channels: int) -> None:
    """It is never added to weights, of which none are formed for a client, and taken off again."""
    layer = nn.Conv2d(channels, 4, 3)
    inputs, back = torch.rand(2, 5, channels, 6, 6), torch.rand(2, 5, 4, 4, 4)  # clients, batch, ...

    def update(learning_rate: float) -> list[torch.Tensor]:
        formed = FormedConvolution([p.detach() for p in layer.parameters()], layer)
        formed.forward(inputs, slice(0, 5))
        formed.descend(back, Step(learning_rate, 0.0, 0.0, 0.0))
        return formed.stack()

    for small, whole in zip(update(1e-3), update(1.0), strict=True):
        assert torch.equal(small, whole * 1e-3)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(ToImage(1, 8), nn.Conv2d(1, 4, 3), nn.Linear(6, 2), nn.Flatten(), nn.Linear(48, 3)),
        nn.Sequential(ToImage(1, 8), nn.Conv2d(1, 3, 8)),
        nn.Sequential(nn.Linear(64, 64), ToImage(1, 8), nn.Conv2d(1, 3, 8), nn.Flatten()),
        nn.Sequential(ToImage(4, 4), nn.Conv2d(4, 4, 3, groups=2), nn.Flatten(), nn.Linear(16, 3)),
    ],
)
def test_other_chains_are_left_to_others(module: nn.Module) -> None:
    assert not is_layerwise(module)
