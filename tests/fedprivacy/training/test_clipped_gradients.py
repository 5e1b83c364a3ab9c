"""Clipped sums of single records' gradients: equal to a plain loop, and bounded whatever a record holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fedprivacy.models.by_name import ToImage, build, flat_weights
from fedprivacy.scenario.model import Cnn, Logistic, Mlp
from fedprivacy.training import chain_gradients, clipped_gradients
from fedprivacy.training.clipped_gradients import ClippedSums, clipped_sums

FEATURES, CLASSES = (6, 6), 3


class Code(nn.Module):
    """What somebody else may write: normalisation, a skip connection, an attribute of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.image = ToImage(1, 6)
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.groups = nn.GroupNorm(2, 4)
        self.inner, self.norm = nn.Linear(36, 36), nn.LayerNorm(36)
        self.outer = nn.Linear(4 * 36, CLASSES, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        flat = self.norm(flat + torch.tanh(self.inner(flat)))
        return self.outer(torch.relu(self.groups(self.convolution(self.image(flat)))).flatten(1))


MODELS: dict[str, nn.Module] = {
    "logistic": build(Logistic(name="logistic"), FEATURES, CLASSES, seed=1),
    "without bias": nn.Sequential(nn.Flatten(), nn.Linear(36, CLASSES, bias=False)),
    "relu": build(Mlp(name="mlp", hidden=[7, 5]), FEATURES, CLASSES, seed=1),
    "tanh": build(Mlp(name="mlp", hidden=[7], activation="tanh"), FEATURES, CLASSES, seed=1),
    "cnn": build(Cnn(name="cnn", channels=[2, 3], hidden=[5]), FEATURES, CLASSES, seed=1),
    "strides": nn.Sequential(
        ToImage(1, 6),
        nn.Conv2d(1, 4, (3, 2), stride=(2, 1), padding=(0, 1), dilation=(1, 2), bias=False),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(4, 2, 1),
        nn.Flatten(),
        nn.LazyLinear(CLASSES),
    ),
    "rows": nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 2), nn.Flatten(), nn.Linear(12, CLASSES)),
    "groups": nn.Sequential(
        ToImage(1, 6), nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 2, groups=2), nn.Flatten(), nn.Linear(36, CLASSES)
    ),
    "code": Code(),
}
MODELS["strides"](torch.zeros(1, *FEATURES))  # its last layer learns its size


def size_of(module: nn.Module) -> int:
    return len(flat_weights(module))


def plain(
    module: nn.Module, weights: Tensor, x: Tensor, y: Tensor, used: Tensor, clipping_norm: float | None
) -> Tensor:
    """The same sums by a loop over records, in float64 but for the gradients."""
    sums = torch.zeros(len(y), weights.shape[-1], dtype=torch.float64)
    for client, record in used.nonzero().tolist():
        own = weights if weights.ndim == 1 else weights[client]
        torch.nn.utils.vector_to_parameters(own, module.parameters())
        loss = nn.functional.cross_entropy(module(x[client, record][None]), y[client, record][None])
        parts = torch.autograd.grad(loss, list(module.parameters()))
        gradient = torch.cat([part.flatten() for part in parts]).double()
        norm = float(gradient.norm())
        if clipping_norm is not None and norm > clipping_norm:
            gradient *= clipping_norm / norm
        sums[client] += gradient
    return sums


def drawn(
    name: str, clients: int, records: int, *, own: bool, seed: int = 5
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, records and labels."""
    made = torch.Generator().manual_seed(seed)
    start = torch.from_numpy(flat_weights(MODELS[name]))
    weights = start + 0.05 * torch.randn((clients, len(start)) if own else (len(start),), generator=made)
    x = torch.randn(clients, records, *FEATURES, generator=made)
    return weights, x, torch.randint(0, CLASSES, (clients, records), generator=made)


def close(found: ClippedSums, expected: Tensor) -> None:
    distance = (found.sums.double() - expected).norm(dim=1)
    assert (distance <= 1e-5 * expected.norm(dim=1)).all(), distance / expected.norm(dim=1)
    assert found.sums.dtype == torch.float64
    assert found.zeroed.dtype == torch.int64


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("clipping_norm", [0.7, None])
def test_they_are_those_of_a_plain_loop(name: str, own: bool, clipping_norm: float | None) -> None:
    weights, x, y = drawn(name, 4, 6, own=own)
    used = torch.ones(4, 6, dtype=torch.bool)
    used[1, 4:], used[2], used[3, 1:] = False, False, False  # ragged, empty, a single record
    x[1, 5], x[2, 0], y[1, 4] = torch.nan, torch.inf, 99  # padding may hold anything
    found = clipped_sums(MODELS[name], weights, x, y, used, clipping_norm)
    close(found, plain(MODELS[name], weights, x, y, used, clipping_norm))
    assert not found.sums[2].any()
    assert found.zeroed.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_of_one(name: str) -> None:
    weights, x, y = drawn(name, 1, 1, own=False)
    used = torch.ones(1, 1, dtype=torch.bool)
    close(clipped_sums(MODELS[name], weights, x, y, used, 0.1), plain(MODELS[name], weights, x, y, used, 0.1))
    for clients, records in ((3, 0), (0, 2)):
        nothing = torch.zeros(clients, records, dtype=torch.bool)
        empty = clipped_sums(
            MODELS[name], weights, torch.zeros(clients, records, *FEATURES), nothing.long(), nothing, 0.1
        )
        assert empty.sums.shape == (clients, len(weights))
        assert not empty.sums.any()


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_micro_batches_make_no_difference(
    monkeypatch: pytest.MonkeyPatch, name: str, own: bool, rows: int
) -> None:
    monkeypatch.setattr(chain_gradients, "_PASS", rows + 1)
    monkeypatch.setattr(chain_gradients, "_NUMBERS", rows * 2000)
    monkeypatch.setattr(clipped_gradients, "_NUMBERS", rows * size_of(MODELS[name]))
    weights, x, y = drawn(name, 3, 4, own=own)
    used = torch.arange(12).reshape(3, 4) % 5 != 0
    found = clipped_sums(MODELS[name], weights, x, y, used, 0.5)
    close(found, plain(MODELS[name], weights, x, y, used, 0.5))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("clipping_norm", [0.5, None])
def test_a_broken_record_counts_as_zero_and_changes_no_other(name: str, clipping_norm: float | None) -> None:
    weights, x, y = drawn(name, 2, 5, own=True)
    used = torch.ones(2, 5, dtype=torch.bool)
    x[0, 1], x[1, 0, 2, 3] = torch.nan, torch.inf
    found = clipped_sums(MODELS[name], weights, x, y, used, clipping_norm)
    assert found.zeroed.tolist() == [1, 1]
    used[0, 1] = used[1, 0] = False
    without = clipped_sums(MODELS[name], weights, x, y, used, clipping_norm)
    assert torch.equal(found.sums, without.sums)  # bit by bit
    assert without.zeroed.tolist() == [0, 0]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("label", [-100, -1, CLASSES])
def test_a_label_out_of_range_counts_as_zero_and_changes_no_other(name: str, label: int) -> None:
    weights, x, y = drawn(name, 2, 4, own=False)
    used = torch.ones(2, 4, dtype=torch.bool)
    y[1, 2] = label
    found = clipped_sums(MODELS[name], weights, x, y, used, 0.5)
    used[1, 2] = False
    assert torch.equal(found.sums, clipped_sums(MODELS[name], weights, x, y, used, 0.5).sums)
    assert found.zeroed.tolist() == [0, 1]


class Choosy(nn.Module):
    """Cannot be vectorised, since it looks at a record; raises at one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(36, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 1000:
            raise ArithmeticError
        return self.layer(x.flatten(1))


class Inverse(nn.Module):
    """Can be vectorised, and raises then too where a record makes a matrix that has no inverse."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(36, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.linalg.inv(x + 0.5 * torch.eye(6)).flatten(1))


@pytest.mark.parametrize("module", [Choosy(), Inverse()], ids=["one by one", "vectorised"])
@pytest.mark.parametrize("clipping_norm", [0.5, None])
def test_a_record_that_raises_counts_as_zero_and_changes_no_other(
    module: nn.Module, clipping_norm: float | None
) -> None:
    made = torch.Generator().manual_seed(3)
    x, y = torch.randn(2, 4, *FEATURES, generator=made), torch.randint(0, CLASSES, (2, 4), generator=made)
    weights, used = torch.from_numpy(flat_weights(module)), torch.ones(2, 4, dtype=torch.bool)
    x[0, 1] = 1e4 if isinstance(module, Choosy) else -0.5 * torch.eye(6)
    x[1, 3, 0, 0] = torch.nan
    found = clipped_sums(module, weights, x, y, used, clipping_norm)
    assert found.zeroed.tolist() == [1, 1]
    used[0, 1] = used[1, 3] = False
    assert torch.equal(found.sums, clipped_sums(module, weights, x, y, used, clipping_norm).sums)
    close(found, plain(module, weights, x, y, used, clipping_norm))


def test_gradients_are_taken_where_the_caller_takes_none() -> None:
    weights, x, y = drawn("relu", 1, 3, own=False)
    used = torch.ones(1, 3, dtype=torch.bool)
    with torch.no_grad():
        found = clipped_sums(MODELS["relu"], weights, x, y, used, 0.5)
    close(found, plain(MODELS["relu"], weights, x, y, used, 0.5))
    assert not found.sums.requires_grad


# Numbers that overflow, underflow, cancel, or are none at all.
EXTREMES = (0.0, 1.0, -1.0, 1e-45, 1e-38, -1e-30, 1e-20, 1e-8, 1e4, 1e8, -1e12, 1e17, 1e19, -1e30, 3e38)
BROKEN = (float("nan"), float("inf"), float("-inf"))


def filled(sides: Sequence[float], shape: tuple[int, ...], seed: int) -> Tensor:
    """Normal numbers, each times one of the given ones; float32, so some become infinite."""
    stream = np.random.default_rng(seed)
    with np.errstate(over="ignore", invalid="ignore"):
        made = stream.normal(size=shape) * stream.choice(np.array(sides), size=shape)
        return torch.from_numpy(made.astype(np.float32))


def sides(*, broken: bool) -> st.SearchStrategy[list[float]]:
    return st.lists(st.sampled_from(EXTREMES + (BROKEN if broken else ())), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(MODELS)),
    own=st.booleans(),
    of_weights=sides(broken=True) | st.just([0.3]),
    of_record=sides(broken=True),
    of_others=sides(broken=True) | st.just([1.0]),
    exponent=st.sampled_from([-3, 0, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_one_record_adds_at_most_the_clipping_norm(
    name: str,
    own: bool,
    of_weights: list[float],
    of_record: list[float],
    of_others: list[float],
    exponent: int,
    seed: int,
) -> None:
    module, clipping_norm = MODELS[name], 10.0**exponent
    size = size_of(module)
    weights = filled(of_weights, (2, size) if own else (size,), seed)
    x = filled(of_others, (2, 4, *FEATURES), seed + 1)
    x[0, 2] = filled(of_record, FEATURES, seed + 2)
    y = torch.from_numpy(np.random.default_rng(seed).integers(0, CLASSES, (2, 4)))
    used = torch.ones(2, 4, dtype=torch.bool)
    there = clipped_sums(module, weights, x, y, used, clipping_norm)
    used[0, 2] = False
    gone = clipped_sums(module, weights, x, y, used, clipping_norm)
    added = (there.sums.double() - gone.sums.double()).norm(dim=1)
    assert torch.isfinite(there.sums).all()
    assert added[0] <= clipping_norm * (1 + 1e-5)
    assert added[1] == 0
    assert torch.isfinite(clipped_sums(module, weights, x, y, used, None).sums).all()
    assert (there.zeroed - gone.zeroed).tolist() in ([0, 0], [1, 0])
