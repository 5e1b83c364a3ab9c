"""Which parameters are trained, and the frozen rest."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedprivacy.errors import InputError
from fedprivacy.models.by_name import flat_weights, unflatten
from fedprivacy.models.frozen_part import FrozenPart
from fedprivacy.models.partial_training import (
    choose_trained,
    copy_frozen,
    frozen_part,
    frozen_tensors,
    split_frozen,
    trained_parameters,
    trained_size,
    whole_model,
)


def net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(4, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 5)), nn.ReLU(), nn.Linear(5, 2)
    )


NAMES = "1.weight, 1.bias, 2.1.weight, 2.1.bias, 4.weight, 4.bias"


@pytest.mark.parametrize(
    ("trainable", "freeze", "left"),
    [
        (None, None, NAMES),
        (["4.*"], None, "4.weight, 4.bias"),
        (["2.1.*", "4.bias"], None, "2.1.weight, 2.1.bias, 4.bias"),
        (None, ["1.*", "2.*"], "4.weight, 4.bias"),
        (["*.weight"], ["1.*"], "2.1.weight, 4.weight"),
        (["*"], None, NAMES),
    ],
)
def test_patterns_choose_what_is_trained(trainable, freeze, left: str) -> None:
    module = net()
    choose_trained(module, trainable, freeze)
    assert ", ".join(trained_parameters(module)) == left
    assert list(unflatten(module, torch.from_numpy(flat_weights(module)))) == left.split(", ")


def test_patterns_free_what_code_has_frozen() -> None:
    module = net().requires_grad_(False)
    choose_trained(module, ["4.*"], None)
    assert list(trained_parameters(module)) == ["4.weight", "4.bias"]


@pytest.mark.parametrize(
    ("trainable", "freeze", "message"),
    [
        (
            ["4.*", "head.*"],
            None,
            f'model.trainable = "head.*": matches no parameter. The parameters are: {NAMES}.',
        ),
        (None, ["5.*"], f'model.freeze = "5.*": matches no parameter. The parameters are: {NAMES}.'),
        (None, ["*"], f"model.freeze = ['*']: nothing is left to train. The parameters are: {NAMES}."),
        (["4.*"], ["*.weight", "4.bias"], "model.freeze = ['*.weight', '4.bias']: nothing is left to train"),
    ],
)
def test_patterns_that_are_wrong_are_refused(trainable, freeze, message: str) -> None:
    with pytest.raises(InputError) as caught:
        choose_trained(net(), trainable, freeze)
    assert str(caught.value).startswith(message)


def test_an_adapter_is_not_frozen() -> None:
    with pytest.raises(InputError, match=r'model\.freeze = "4\.\*": matches 4\.weight, an adapter'):
        choose_trained(net(), None, ["1.*", "4.*"], ["4.weight"])


def test_the_whole_model_has_the_names_of_its_state() -> None:
    """Tied parameters under both names, and no buffer that the module itself does not store."""
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2))
    module[1].weight = module[0].weight
    module[0].bias.requires_grad_(False)
    module.register_buffer("table", torch.ones(2), persistent=False)
    weights = torch.arange(float(trained_size(module)))
    whole = whole_model(module, weights)
    assert list(whole) == list(module.state_dict())
    assert torch.equal(whole["0.weight"], whole["1.weight"])
    assert torch.equal(whole["0.bias"], module[0].bias)
    module.load_state_dict(whole)
    assert flat_weights(module).tolist() == weights.tolist()


def test_numbers_without_a_gradient_cannot_be_trained() -> None:
    module = net()
    module.codes = nn.Parameter(torch.ones(3, dtype=torch.int64), requires_grad=False)
    with pytest.raises(InputError, match=r'parameter "codes" is torch\.int64, which has no gradient'):
        choose_trained(module, ["*"], None)


def test_many_names_are_cut() -> None:
    with pytest.raises(InputError, match=r"19\.weight, 19\.bias, and 4 more\."):
        choose_trained(
            nn.Sequential(*[nn.Identity()] * 10, *[nn.Linear(1, 1) for _ in range(12)]), ["x"], None
        )


def test_the_digest_covers_names_types_shapes_and_values() -> None:
    """And nothing of what is trained."""

    def part(change=lambda module: None) -> FrozenPart:
        module = net()
        module[1].requires_grad_(False)
        module.register_buffer("table", torch.arange(6))
        change(module)
        return frozen_part(module)

    @torch.no_grad()
    def other_value(module: nn.Module) -> None:
        module[1].bias[0] += 1e-7

    @torch.no_grad()
    def other_trained(module: nn.Module) -> None:
        module[4].bias[0] += 1.0

    def other_shape(module: nn.Module) -> None:
        module.table = module.table.view(2, 3)

    def other_type(module: nn.Module) -> None:
        module.table = module.table.double().view(torch.int64).view(torch.float64)

    same = part()
    assert same is not None
    assert (same.frozen, same.trained) == (15, 32)
    assert part(other_trained) == same
    changed = [
        part(other_value),
        part(other_shape),
        part(other_type),
        part(lambda m: m[4].requires_grad_(False)),
    ]
    assert len({each.digest for each in (same, *changed) if each}) == 5
    assert frozen_part(net()).is_empty


def test_values_of_any_type_are_copied() -> None:
    one, other = net(), net()
    for scale, module in enumerate((one, other), start=1):
        module[1].requires_grad_(False).weight.mul_(scale)
        module.register_buffer("table", scale * torch.arange(3).to(torch.bfloat16))
    assert frozen_part(one) != frozen_part(other)
    copy_frozen(frozen_tensors(one), other)
    assert frozen_part(one) == frozen_part(other)


def test_a_chain_is_split_before_its_first_trained_layer() -> None:
    module = net()
    choose_trained(module, None, ["1.*"])
    encoder, head = split_frozen(module)
    assert encoder is not None
    assert [type(layer) for layer in encoder] == [nn.Flatten, nn.Linear, nn.Tanh]
    assert (flat_weights(head) == flat_weights(module)).all()
    x = torch.rand(3, 4)
    assert torch.equal(head(encoder(x)), module(x))


@pytest.mark.parametrize("freeze", [None, ["4.*"], ["2.1.*"], ["1.weight"]])
def test_without_a_frozen_layer_in_front_a_chain_stays_whole(freeze) -> None:
    module = net()
    choose_trained(module, None, freeze)
    encoder, head = split_frozen(module)
    assert encoder is None
    assert head is module


def test_other_modules_stay_whole() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.Linear(4, 3).requires_grad_(False), nn.Linear(3, 2)

    module = Model()
    assert split_frozen(module) == (None, module)
