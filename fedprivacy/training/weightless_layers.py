"""The layers without weights: activations, pooling, flattening; forwards and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from fedprivacy.training.unfolding import by_client, side_by_side

Back = Callable[[Tensor], Tensor]

_ATEN = torch.ops.aten


def through(parts: Iterable[nn.Module], inputs: Tensor) -> tuple[Tensor, Back]:
    """The output of layers without weights, and the function that propagates a gradient back.

    Activations call autograd's kernels directly, because the first use of autograd itself takes a second of
    imports.

    Args:
        parts: Of a chain, in order.
        inputs: Shape (clients, batch, ...).
    """
    backs: list[Back] = []
    flowing = inputs
    for part in parts:
        flowing, back = _pass_through(part, flowing)
        backs.append(back)

    def back_through(gradient: Tensor) -> Tensor:
        for back in reversed(backs):
            gradient = back(gradient)
        return gradient

    return flowing, back_through


def _pass_through(part: nn.Module, inputs: Tensor) -> tuple[Tensor, Back]:
    if isinstance(part, nn.ReLU | nn.Tanh | nn.Sigmoid | nn.GELU):
        outputs = part(inputs)
        if isinstance(part, nn.ReLU):
            return outputs, lambda back: _ATEN.threshold_backward(back, outputs, 0)
        if isinstance(part, nn.Tanh):
            return outputs, lambda back: _ATEN.tanh_backward(back, outputs)
        if isinstance(part, nn.Sigmoid):
            return outputs, lambda back: _ATEN.sigmoid_backward(back, outputs)
        return outputs, lambda back: _ATEN.gelu_backward(back, inputs, approximate=part.approximate)
    if isinstance(part, nn.Flatten):
        return inputs.flatten(2), lambda back: back.view_as(inputs)
    # On a GPU pooling of channels last may add gradients in an order of chance.
    pool, clients = isinstance(part, nn.MaxPool2d | nn.AvgPool2d) and not inputs.is_cuda, len(inputs)
    with torch.enable_grad():
        begin = (side_by_side(inputs) if pool else inputs.flatten(0, 1)).detach().requires_grad_(True)
        end = by_client(part(begin), clients) if pool else part(begin).unflatten(0, inputs.shape[:2])

    def back_to(back: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(end, begin, back)
        return by_client(gradient, clients) if pool else gradient.unflatten(0, inputs.shape[:2])

    return end.detach(), back_to
