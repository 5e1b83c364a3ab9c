"""Low-rank adapters of linear layers (LoRA, Hu et al. 2022) of which one factor is trained.

A layer computes W x + (alpha / rank) B A x with W and A frozen. Only B is trained, from zero, as in FFA-LoRA
(Sun et al. 2024): the change of a layer is linear in B, so that the mean of clients' B is the mean of their
layers. With both factors trained, noise would be multiplied by noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.model import Lora

B = "lora_b.weight"  # the name of the trained factor within its layer


class Projection(nn.Module):
    """The frozen factor: a buffer, so that no pattern of parameter names trains it.

    Args:
        factor: Shape (rank, inputs).
    """

    factor: Tensor

    def __init__(self, factor: Tensor) -> None:
        super().__init__()
        self.register_buffer("factor", factor)

    def forward(self, input: Tensor) -> Tensor:
        """The projections of inputs, shape (..., rank)."""
        return nn.functional.linear(input, self.factor)


class LoraLinear(nn.Linear):
    """A frozen linear layer with a trained low-rank term.

    Args:
        layer: The layer, whose weights are shared.
        a: The frozen factor, shape (rank, inputs).
        scale: By what the term is multiplied.
    """

    def __init__(self, layer: nn.Linear, a: Tensor, scale: float) -> None:
        super().__init__(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        self.weight, self.bias = layer.weight, layer.bias
        self.lora_a = Projection(a)
        self.lora_b = nn.utils.skip_init(nn.Linear, len(a), layer.out_features, bias=False, device=a.device)
        nn.init.zeros_(self.lora_b.weight)
        self.scale = scale
        self.train(layer.training)

    def forward(self, input: Tensor) -> Tensor:
        """The outputs of the layer, shape (..., outputs)."""
        return super().forward(input) + self.scale * self.lora_b(self.lora_a(input))


def add_adapters(module: nn.Module, options: Lora) -> tuple[nn.Module, list[str]]:
    """Gives the linear layers that a scenario names an adapter each.

    The frozen factors are drawn from a public stream by the layer's name, uniform as torch draws the weights
    of a layer. They are the same at every seed of a scenario: they are public, and must not reveal the seed
    of a run's noise.

    Args:
        module: The model; its layers are replaced.
        options: The scenario's adapters.

    Returns:
        The model, and the names of its trained factors.

    Raises:
        InputError: a target matches no linear layer, or one with several places in the model, or the rank
            is above a layer's inputs.
    """
    # Layers of other classes may use their weights without calling `forward`.
    every = module.named_modules(remove_duplicate=False)
    linear = {name: layer for name, layer in every if type(layer) is nn.Linear}
    chosen = _chosen(options.targets, list(linear))
    for name in chosen:
        layer = linear[name]
        places = [place for place, other in linear.items() if other is layer]
        if len(places) > 1:  # an adapter would be in the first one alone
            raise InputError(
                f'model.lora.targets: layer "{name}" is in several places ({", ".join(places)}), and an '
                "adapter has one. Leave it out of the targets."
            )
        if options.rank > layer.in_features:
            raise InputError(
                f'model.lora.rank = {options.rank}: layer "{name}" has {layer.in_features} inputs. At most '
                f"{layer.in_features}."
            )
        adapted = LoraLinear(layer, _factor(name, layer, options.rank), options.alpha / options.rank)
        if not name:  # the model is one layer
            return adapted, [B]
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent), last, adapted)
    return module, [f"{name}.{B}" for name in chosen]


def _factor(name: str, layer: nn.Linear, rank: int) -> Tensor:
    """The frozen factor of a layer, shape (rank, inputs)."""
    shape = (rank, layer.in_features)
    if layer.weight.is_meta:  # its size alone matters
        return torch.empty(shape, device="meta")
    bound = 1.0 / math.sqrt(layer.in_features)
    stream = Streams(0).stream(f"lora/{name}")
    return torch.from_numpy(stream.uniform(-bound, bound, shape)).float()


def _chosen(targets: Sequence[str], names: Sequence[str]) -> list[str]:
    for target in targets:
        if not any(fnmatchcase(name, target) for name in names):
            layers = ", ".join(name or "(the model itself)" for name in names) or "none"
            raise InputError(
                f'model.lora.targets = "{target}": matches no linear layer. The linear layers are: {layers}.'
            )
    return [name for name in names if any(fnmatchcase(name, target) for target in targets)]
