"""What a module must be to be trained here, and what a user is told where it is not."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedprivacy.errors import InputError
from fedprivacy.scenario import Code
from fedprivacy.training.module_checks import check

CODE = Code(name="code", factory="nets:make")


def net(*layers: nn.Module, width: int = 6) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, width), *layers, nn.Linear(width, 3))


def judge(module: nn.Module, same: nn.Module | None = None, features: tuple[int, ...] = (16,)) -> None:
    check(module, module if same is None else same, CODE, features, 3)


def said(module: nn.Module, same: nn.Module | None = None) -> str:
    with pytest.raises(InputError) as caught:
        judge(module, same)
    assert caught.value.exit_code == 2
    return str(caught.value).removeprefix('model.factory = "nets:make": ')


class Does(nn.Module):
    """A layer that is a function."""

    def __init__(self, does) -> None:
        super().__init__()
        self.does = does

    def forward(self, x: Tensor) -> Tensor:
        return self.does(x)


class Counts(nn.Module):
    def __init__(self, keeps: str) -> None:
        super().__init__()
        self.keeps, self.number, self.seen, self.mean = keeps, 0, [], torch.zeros(6)

    def forward(self, x: Tensor) -> Tensor:
        if self.keeps == "number":
            self.number += 1
        if self.keeps == "seen":
            self.seen.append(x.detach())
        if self.keeps == "mean":
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 16), nn.Linear(16, 16)
        self.outer.weight = self.inner.weight
        self.last = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.outer(torch.tanh(self.inner(x)))))


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.last = nn.Conv2d(1, 4, 3), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.reshape(-1, 1, 4, 4)
        return self.last(functional.group_norm(self.convolution(x), 2).flatten(1))


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(16, 3),
        net(nn.GroupNorm(2, 6), nn.GELU()),
        net(nn.LayerNorm(6), nn.Dropout(0.0)),
        net(Does(lambda x: x * torch.tensor(2.0))),
        Tied(),
        Images(),
        net(Counts("nothing")),
    ],
)
def test_modules_that_can_be_trained(module: nn.Module) -> None:
    judge(module)


def test_records_of_any_shape() -> None:
    judge(net(), features=(4, 2, 2))


@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm1d(6),
        nn.BatchNorm1d(6, track_running_stats=False),
        nn.SyncBatchNorm(6),
    ],
)
def test_batch_norm_is_refused_with_the_reason(norm: nn.Module) -> None:
    message = said(net(norm))
    assert message.startswith(f"layer 2 ({type(norm).__name__}) mixes the records of a batch")
    assert "without being clipped: use GroupNorm(1, 6), or in a frozen encoder fold it into" in message


def test_a_buffer_is_a_constant() -> None:
    class Scaled(nn.Linear):
        def __init__(self) -> None:
            super().__init__(16, 3)
            self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.scale * super().forward(x)

    judge(Scaled())


@pytest.mark.parametrize(
    ("module", "buffer"),
    [
        (
            net(nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten()),
            "3.running_mean",
        ),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(16, 3)), "parametrizations.weight.0._u"),
    ],
)
def test_a_buffer_that_changes_is_refused(module: nn.Module, buffer: str) -> None:
    assert said(module) == (
        f"it changes its attribute {buffer} when it is used: only trained parameters are clipped, so that "
        "could carry clients' data out."
    )


class Trains(Counts):
    """A layer that counts only where gradients are computed."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if torch.is_grad_enabled() else x


def test_what_changes_in_training_alone_is_refused() -> None:
    assert said(net(Trains("number"))).startswith("it changes its attribute 2.number when it is used")


class Notes(nn.Module):
    """A layer that writes records into a frozen parameter where no gradient is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.notes = nn.Parameter(torch.zeros(6), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            self.notes.copy_(x.detach().mean(0))
        return x


def test_a_frozen_parameter_that_changes_is_refused() -> None:
    assert said(net(Notes())).startswith("it changes its attribute 2.notes when it is used")


@pytest.mark.parametrize("frozen", ["1.weight", "3.weight", "3.bias"])
def test_a_part_may_be_frozen(frozen: str) -> None:
    module = net(nn.Tanh())
    module.get_parameter(frozen).requires_grad_(False)
    judge(module)


def test_frozen_values_follow_from_the_seed_too() -> None:
    one, other = net(), net()
    for module in (one, other):
        module[1].requires_grad_(False)
        nn.init.zeros_(module[2].weight)
        nn.init.zeros_(module[2].bias)
    assert said(one, other).startswith(
        "it makes other frozen parameters or buffers when it is called again at the same seed"
    )


@pytest.mark.parametrize("keeps", ["number", "seen", "mean"])
def test_a_layer_that_remembers_is_refused(keeps: str) -> None:
    assert said(net(Counts(keeps))).startswith(f"it changes its attribute 2.{keeps} when it is used")


@pytest.mark.parametrize(
    "layer",
    [
        nn.Dropout(0.5),
        nn.AlphaDropout(0.1),
        nn.RReLU(),
        nn.TransformerEncoderLayer(6, 2, dropout=0.2),
        Does(lambda x: functional.dropout(x, 0.5)),
        Does(lambda x: x + torch.randn_like(x)),
        Does(lambda x: x * random.random()),
        Does(lambda x: x * np.random.default_rng().random()),
    ],
)
def test_what_is_random_at_training_time_is_refused(layer: nn.Module) -> None:
    assert "is random at training time, and clients that train side by side cannot repeat its draws" in said(
        net(layer)
    )


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.Flatten(), "it has no parameters, so there is nothing to train."),
        (net().double(), r"parameter 1.weight is float64 on cpu, float32 on cpu is needed; parameter 1.bias"),
        (net().to("meta"), r"parameter 1.weight is float32 on meta"),
        (nn.LazyLinear(3), r"parameter weight has no shape yet: the factory gets features"),
        (net().requires_grad_(False), r"all its parameters are frozen, so there is nothing to train"),
        (nn.Linear(16, 4), r"from records of shape \(4, 16\) it makes \(4, 4\), \(4, 3\) is needed"),
        (
            net(Does(lambda x: x), nn.Flatten(0)),
            r"on records of shape \(4, 16\) the model raises RuntimeError",
        ),
        (nn.Sequential(nn.Linear(16, 3), Does(lambda x: (x, x))), r"it makes tuple, \(4, 3\) is needed"),
        (nn.Linear(15, 3), r"the model raises RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        (net(Does(lambda x: x - x.mean(0))), r"the records of a batch must not mix"),
        (
            net(Does(lambda x: x if x.sum().item() > 0 else -x)),
            r"clients cannot be trained side by side \(torch.func.vmap\)|must not mix",
        ),
        (
            net(Does(lambda x: x.clone().requires_grad_(True).detach() if not x.isnan().any().item() else x)),
            r"clients cannot be trained side by side \(torch.func.vmap\): RuntimeError",
        ),
    ],
)
def test_what_cannot_be_trained(module: nn.Module, reason: str) -> None:
    assert re.search(reason, said(module))


def test_weights_that_do_not_follow_from_the_seed_are_refused() -> None:
    one, other = net(), net()
    assert said(one, other).startswith(
        "it makes other weights when it is called again at the same seed. Draw"
    )


def test_everything_wrong_with_the_parts_is_told_at_once() -> None:
    message = said(net(nn.BatchNorm1d(6), nn.Dropout(0.5)).double())
    assert [word in message for word in ("BatchNorm1d", "Dropout", "float64")] == [True] * 3


def test_the_trial_leaves_torchs_generator_alone() -> None:
    module = net()
    state = torch.random.get_rng_state()
    judge(module)
    assert torch.equal(state, torch.random.get_rng_state())
