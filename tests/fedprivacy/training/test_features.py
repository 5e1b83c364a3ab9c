"""The features of a frozen encoder: each record's by itself, and once."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedprivacy.io.processes import CAN_FORK, pool
from fedprivacy.models.by_name import build
from fedprivacy.scenario import Logistic
from fedprivacy.training.features import (
    Features,
    encode,
    encode_all,
    share_features,
    shared_features,
    split,
)

IMAGES = np.random.default_rng(0).random((4, 8, 8), np.float32)


class Counted(nn.Linear):
    """An encoder that counts its calls, and raises on records with a negative number."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if bool((x < 0).any()):
            raise ValueError("negative")
        return super().forward(x)


def encoder() -> Counted:
    torch.manual_seed(1)
    return Counted(5, 3)


def test_the_features_of_a_record_depend_on_that_record_alone() -> None:
    x, made = torch.rand(40, 5), encoder()
    every = encode(made, x)
    assert made.calls == 40
    assert torch.equal(encode(encoder(), x[[7, 3]]), every[[7, 3]])
    assert encode(None, x) is x


def test_each_record_is_encoded_once_and_when_its_client_trains() -> None:
    made, x = encoder(), torch.rand(10, 5)
    features = Features(made, x)
    made.calls = 0
    for records in ([[0, 1], [4]], [[1, 4]], [[4, 9]]):
        values = features.of([np.array(rows) for rows in records])
    assert made.calls == 4
    assert torch.equal(values[[0, 1, 4, 9]], encode(made, x[[0, 1, 4, 9]]))
    assert not values[[2, 3, 5]].any()


def test_forked_processes_share_them() -> None:
    made, x = encoder(), torch.rand(10, 5)
    features = Features(made, x)
    if (child := os.fork()) == 0:
        features.of([np.arange(10)])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    made.calls = 0
    assert torch.equal(features.of([np.arange(10)]), encode(encoder(), x))
    assert made.calls == 0


def test_a_record_that_breaks_the_encoder_has_no_features_and_others_do() -> None:
    x = torch.rand(3, 5)
    x[1, 0] = -1.0
    values = Features(encoder(), x).of([np.arange(3)])
    assert values.isnan().all(dim=1).tolist() == [False, True, False]


EARLY = """
import torch
torch.rand(9, 9) @ torch.rand(9, 9)  # before the import that sets how products are computed
from fedprivacy.training.features import encode
torch.manual_seed(1)
encoder, x = torch.nn.Linear(17, 7), torch.rand(64, 17)
every = encode(encoder, x)
for row in range(64):
    room = torch.empty(17 + 16)
    for offset in range(16):
        room[offset : offset + 17] = x[row]
        assert torch.equal(encode(encoder, room[None, offset : offset + 17])[0], every[row]), (row, offset)
"""


@pytest.mark.exhaustive
def test_features_do_not_depend_on_the_place_of_a_record_in_memory() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Both(nn.Module):
    """An encoder with two outputs, for a head that takes both."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class Sum(nn.Linear):
    """A trained layer that takes two tensors."""

    def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        return super().forward(pair[0] + pair[1])


class Flat(nn.Module):
    """Folds records into more rows, or other types."""

    def __init__(self, dtype: torch.dtype, rows: int) -> None:
        super().__init__()
        self.dtype, self.rows = dtype, rows

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(len(x) * self.rows, -1).to(self.dtype)


class Back(nn.Linear):
    """A trained layer that takes what `Flat` makes."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float().reshape(-1, 6))


def frozen(*layers: nn.Module) -> nn.Sequential:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(5, 6).requires_grad_(False), *layers, nn.Linear(6, 2))


def hooked() -> nn.Sequential:
    module = frozen()
    module.register_forward_pre_hook(lambda layer, given: (2 * given[0],))
    return module


def with_parameter() -> nn.Sequential:
    module = frozen()
    module.register_parameter("scale", nn.Parameter(torch.ones(1)))
    return module


@pytest.mark.parametrize(
    "module",
    [
        hooked(),
        with_parameter(),
        frozen(Both(), Sum(6, 6)),
        frozen(Flat(torch.float64, 1), Back(6, 6)),
        frozen(Flat(torch.float32, 2), Back(6, 6)),
    ],
)
def test_a_model_is_split_only_where_its_parts_are_the_same_model(module: nn.Module) -> None:
    assert split(module, (5,), 10) == (None, module)


def test_a_chain_within_a_chain_keeps_its_hook() -> None:
    inner = nn.Sequential(nn.Linear(5, 6).requires_grad_(False))
    inner.register_forward_hook(lambda layer, given, made: 2 * made)
    module = nn.Sequential(inner, nn.Linear(6, 2))
    encoder, head = split(module, (5,), 10)
    assert encoder is not None
    x = torch.rand(3, 5)
    torch.testing.assert_close(head(encode(encoder, x)), module(x))


def test_features_that_would_fill_the_memory_are_not_made() -> None:
    """More than 1 GiB, unless they are at most six times the records."""
    module = frozen()
    assert split(module, (5,), 2**40)[0] is not None
    wide = nn.Sequential(nn.Linear(5, 31).requires_grad_(False), nn.Linear(31, 2))
    assert split(wide, (5,), 2**30 // 124)[0] is not None
    assert split(wide, (5,), 2**30 // 124 + 1) == (None, wide)


def scattering(seed: int = 0) -> nn.Module:
    return build(Logistic(name="logistic", features="scatternet"), (8, 8), 2, seed=seed)


def test_scattering_coefficients_of_a_record_are_bit_for_bit_its_own() -> None:
    """Whatever records it is encoded with, in which place, and in how many calls."""
    encoder, _ = split(scattering(), (8, 8), 5)
    assert encoder is not None
    x = torch.rand(5, 8, 8)
    alone = encode(encoder, x[3:4])
    assert torch.equal(encode(encoder, x)[3:4], alone)
    assert torch.equal(encode(encoder, torch.cat([1e3 * x, x[3:4]]))[5:], alone)
    assert torch.equal(shared_features(encoder, x.numpy()).of([np.array([3, 0])])[3:4], alone)
    assert torch.equal(encode_all(encoder, x.numpy())[3:4], alone)
    assert torch.equal(encode_all(encoder, x.numpy(), np.array([3])), alone)


def test_features_by_a_formula_are_computed_once_for_all_on_the_same_records() -> None:
    x = np.random.default_rng(1).random((4, 8, 8), np.float32)
    first, other = (split(scattering(seed), (8, 8), 4)[0] for seed in (0, 1))
    assert first is not None
    assert other is not None
    memory = shared_features(first, x).memory
    assert shared_features(other, x[:]).memory is memory
    for records in (x.copy(), x[:3], x.swapaxes(1, 2)):
        assert shared_features(first, records).memory is not memory
    with_weights = nn.Sequential(nn.Linear(8, 2).requires_grad_(False))
    assert shared_features(with_weights, x).memory is not shared_features(with_weights, x).memory


def test_other_filters_on_the_same_records_make_other_features() -> None:
    encoder, _ = split(scattering(), (8, 8), 4)
    other, _ = split(scattering(), (8, 8), 4)
    assert isinstance(encoder, nn.Sequential)
    assert isinstance(other, nn.Sequential)
    other[1].average.mul_(2)
    first = encode_all(encoder, IMAGES)
    assert not torch.equal(encode_all(other, IMAGES), first)


def test_features_leave_memory_with_their_records() -> None:
    encoder, _ = split(scattering(), (8, 8), 4)
    assert encoder is not None
    x = np.random.default_rng(1).random((4, 8, 8), np.float32)
    part = x[:3]
    memory = weakref.ref(shared_features(encoder, part).memory)
    del part  # the next view of these records shares it
    gc.collect()
    assert memory() is shared_features(encoder, x[:3]).memory
    del x
    gc.collect()
    assert memory() is None


@pytest.mark.skipif(not CAN_FORK, reason="needs forked processes")
def test_forked_processes_compute_features_for_each_other() -> None:
    share_features(scattering(), IMAGES, IMAGES[:2].copy())
    with pool(1) as running:
        running.submit(_encode_images).result()
    encoder, _ = split(scattering(), (8, 8), 4)
    assert encoder is not None
    known = shared_features(encoder, IMAGES).of([])
    assert torch.equal(known, encode(encoder, torch.from_numpy(IMAGES)))


def _encode_images() -> None:
    encoder, _ = split(scattering(), (8, 8), 4)
    assert encoder is not None
    shared_features(encoder, IMAGES).of([np.arange(4)])
