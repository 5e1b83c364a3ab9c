"""Low-rank adapters: one trained factor, and another that no data and no run choose."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.errors import InputError
from fedprivacy.models.by_name import flat_weights, unflatten
from fedprivacy.models.lora import LoraLinear, add_adapters
from fedprivacy.models.partial_training import choose_trained, frozen_part, trained_parameters
from fedprivacy.scenario import Code, Mlp
from fedprivacy.scenario.model import Lora
from fedprivacy.training.model_spec import model_spec
from fedprivacy.training.module_checks import check


def net(*, bias: bool = True) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 5, bias=bias), nn.Tanh(), nn.Sequential(nn.Linear(5, 3)))


def adapted(
    module: nn.Module, rank: int = 2, alpha: float = 3.0, targets: tuple[str, ...] = ("*",)
) -> list[str]:
    return add_adapters(module, Lora(rank=rank, alpha=alpha, targets=targets))[1]


@pytest.mark.parametrize("bias", [True, False])
def test_an_adapter_adds_a_scaled_product_of_two_factors(bias: bool) -> None:
    module, plain, x = net(bias=bias), net(bias=bias), torch.rand(7, 6)
    assert adapted(module) == ["0.lora_b.weight", "2.0.lora_b.weight"]
    assert torch.equal(module(x), plain(x))
    with torch.no_grad():
        for layer, original in ((module[0], plain[0]), (module[2][0], plain[2][0])):
            assert isinstance(layer, LoraLinear)
            layer.lora_b.weight.copy_(torch.rand_like(layer.lora_b.weight))
            original.weight += 3.0 / 2 * layer.lora_b.weight @ layer.lora_a.factor
    torch.testing.assert_close(module(x), plain(x))


def test_the_second_factor_alone_is_trained_and_what_is_named() -> None:
    module = net()
    choose_trained(module, None, None, adapted(module, targets=("2.*",)))
    assert list(trained_parameters(module)) == ["2.0.lora_b.weight"]
    module = net()
    choose_trained(module, ["*.lora_*", "2.0.bias"], None, adapted(module, targets=("0",)))
    assert list(trained_parameters(module)) == ["0.lora_b.weight", "2.0.bias"]
    assert not any("lora_a" in name for name, _ in module.named_parameters())


def test_the_layer_is_linear_in_what_is_trained() -> None:
    """So noise on the mean of clients' factors is noise on the mean of their layers, and of one size."""
    module, x = nn.Sequential(nn.Linear(6, 5)), torch.rand(7, 6)
    choose_trained(module, None, None, adapted(module))

    def outputs(flat: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, unflatten(module, flat), x)

    first, second, zero = torch.rand(10), torch.rand(10), torch.zeros(10)
    one, other, both = outputs(first), outputs(second), outputs((first + second) / 2)
    torch.testing.assert_close(both, (one + other) / 2)
    torch.testing.assert_close(outputs(3 * first) - outputs(zero), 3 * (one - outputs(zero)))


def test_the_frozen_factor_is_drawn_by_the_layer_and_by_nothing_else() -> None:
    options = Mlp(name="mlp", hidden=(5, 5), lora=Lora(rank=2, alpha=2.0))
    spec, again = (model_spec(options, (5,), 3) for _ in range(2))
    torch.manual_seed(9)
    one, other = spec.build(1), again.build(2)
    assert torch.equal(one[1].lora_a.factor, other[1].lora_a.factor)
    assert not torch.equal(one[1].lora_a.factor, one[3].lora_a.factor)
    assert spec.frozen == again.frozen
    bound = 1 / np.sqrt(5)
    assert 0.5 * bound < one[1].lora_a.factor.abs().max() <= bound
    # The same numbers on every machine: they are drawn by a counter.
    assert one[1].lora_a.factor[0, :2].tolist() == pytest.approx([0.211160, -0.012090], abs=1e-6)


def test_only_plain_linear_layers_have_adapters() -> None:
    """Attention uses the weights of its last layer without calling it."""
    module = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    assert adapted(module) == ["linear1.lora_b.weight", "linear2.lora_b.weight"]


def test_a_layer_in_several_places_has_no_adapter() -> None:
    shared = nn.Linear(4, 4)
    module = nn.Sequential(shared, nn.Tanh(), shared, nn.Linear(4, 2))
    with pytest.raises(InputError, match=r'layer "0" is in several places \(0, 2\)'):
        adapted(module)
    assert adapted(module, targets=("3",)) == ["3.lora_b.weight"]


def test_a_model_that_is_one_layer_can_be_adapted() -> None:
    module, names = add_adapters(nn.Linear(6, 3), Lora(rank=1, alpha=1.0))
    choose_trained(module, None, None, names)
    assert list(trained_parameters(module)) == ["lora_b.weight"]


@pytest.mark.parametrize(
    ("targets", "rank", "message"),
    [
        (
            ("0", "head"),
            1,
            r'model.lora.targets = "head": matches no linear layer. The linear layers are: 0, 2.0.',
        ),
        (("1",), 1, r'model.lora.targets = "1": matches no linear layer'),
        (("*",), 6, r'model.lora.rank = 6: layer "2.0" has 5 inputs. At most 5.'),
    ],
)
def test_what_is_wrong_with_adapters(targets: tuple[str, ...], rank: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        adapted(net(), rank=rank, targets=targets)
    assert str(caught.value).startswith(message)


class Forgets(nn.Module):
    """A model that uses the bare weights of its layer where no gradients are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled():
            return self.layer(x)
        return nn.functional.linear(x, self.layer.weight, self.layer.bias)


def test_a_model_that_evaluates_without_its_adapters_is_refused() -> None:
    modules = []
    for _ in range(2):
        torch.manual_seed(1)
        module = Forgets()
        choose_trained(module, None, None, adapted(module))
        modules.append(module)
    with pytest.raises(InputError, match="it answers otherwise where gradients are computed"):
        check(*modules, Code(name="code", factory="nets:make"), (16,), 3)


def test_the_frozen_part_has_both_the_weights_and_the_factor() -> None:
    module = net()
    choose_trained(module, None, None, adapted(module))
    part = frozen_part(module)
    assert (part.frozen, part.trained) == (6 * 5 + 5 + 5 * 3 + 3, 2 * 5 + 2 * 3)
    assert part.buffers == 2 * 6 + 2 * 5
    with torch.no_grad():
        module[0].lora_a.factor[0, 0] += 0.1
    assert frozen_part(module) != part
    assert len(flat_weights(module)) == part.trained
