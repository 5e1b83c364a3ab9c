"""Convolutions with formed weights for each client of a chunk, while the clients train.

A convolution has few weights and many positions, so each client's weights are formed. While all clients
still have the sent weights, all their images are one batch; afterwards, and in the gradient by weight, each
client is computed separately. For narrow rows, such as the first layer of grey images
(`fedprivacy.training.unfolding.is_wide` is false), one matrix product on unfolded inputs, shared by forward
pass and gradient, takes less time than the library's convolution.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from fedprivacy.training.layers import FormedLayer, Place, Step
from fedprivacy.training.unfolding import channels_last, is_wide, output_size, unfolded


class FormedConvolution(FormedLayer):
    """A convolution with formed weights for each client.

    They are held as the products need them: where `is_wide`, shape (clients, outputs, *kernel, channels),
    else (clients, channels * kernel, outputs).

    Args:
        sent: The weight that was sent, shape (outputs, channels, *kernel), and the bias if there is one.
        layer: Says stride, padding and dilation; its own weights are not read.
    """

    def __init__(self, sent: list[Tensor], layer: nn.Conv2d) -> None:
        weight, *bias = sent
        self._layer, self._shape, self._wide = layer, weight.shape, is_wide(layer)
        laid = weight.movedim(1, -1) if self._wide else weight.flatten(1).T
        super().__init__([laid.contiguous(), *bias])
        self._columns = weight

    def forward(self, inputs: Tensor | None, place: Place) -> Tensor:
        """As `Layer` has it."""
        assert inputs is not None
        weight, *bias = self.form()
        if self._wide:
            self._inputs = _last(inputs)
            return _by_client(self._convolved, self._shared, [self._inputs], [self._in_order(weight), *bias])
        self._inputs, self._columns = inputs, unfolded(self._layer, inputs)
        if self._shared:
            weight, bias = weight.expand(len(inputs), *weight.shape), [part[None] for part in bias]
        columns = self._columns.mT
        products = torch.baddbmm(bias[0][:, None], columns, weight) if bias else torch.bmm(columns, weight)
        return products.view(*inputs.shape[:2], *output_size(self._layer, inputs), -1).movedim(-1, 2)

    def backward(self, back: Tensor) -> Tensor:
        """As `Layer` has it."""
        weight = self._in_order(self._here[0])
        return _by_client(self._to_inputs, self._shared, [_last(back), self._inputs], [weight])

    def descend(self, back: Tensor, step: Step) -> None:
        """As `Layer` has it."""
        back = _last(back)
        rows = back.movedim(2, -1).flatten(1, 3)
        if self._wide:
            each = [self._to_weight(*arrays) for arrays in zip(back, self._inputs, strict=True)]
            gradients = [torch.stack(each)]
        else:
            gradients = [torch.bmm(self._columns, rows)]
        if len(self._sent) > 1:
            gradients.append(rows.sum(dim=1))
        self.move(gradients, step)

    def total(self, shares: Tensor) -> list[Tensor]:
        """As `Layer` has it."""
        weight, *bias = super().total(shares)
        return [self._in_order(weight), *bias]

    def stack(self) -> list[Tensor]:
        """As `Layer` has it."""
        weight, *bias = super().stack()
        return [self._in_order(weight), *bias]

    def _in_order(self, laid: Tensor) -> Tensor:
        """Weights as they are held, in the model's order, shape (..., outputs, channels, *kernel)."""
        return laid.movedim(-1, -3) if self._wide else laid.mT.unflatten(-1, self._shape[1:])

    def _convolved(self, images: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        layer = self._layer
        return nn.functional.conv2d(images, weight, bias, layer.stride, layer.padding, layer.dilation)

    def _to_inputs(self, back: Tensor, images: Tensor, weight: Tensor) -> Tensor:
        return self._returned(back, images, weight, 0)

    def _to_weight(self, back: Tensor, images: Tensor) -> Tensor:
        weight = self._in_order(self._sent[0])
        return channels_last(self._returned(back, images, weight, 1)).movedim(1, -1)

    def _returned(self, back: Tensor, images: Tensor, weight: Tensor, to: int) -> Tensor:
        """The gradient by the inputs (0) or by the weight (1)."""
        layer, wanted = self._layer, [to == 0, to == 1, False]
        gradients = torch.ops.aten.convolution_backward(
            back, images, weight, None, layer.stride, layer.padding, layer.dilation, False, [0, 0], 1, wanted
        )
        return gradients[to]


def _last(values: Tensor) -> Tensor:
    """Images of clients, shape (clients, batch, channels, height, width), with channels last in memory."""
    return channels_last(values.flatten(0, 1)).unflatten(0, values.shape[:2])


def _by_client(
    pass_on: Callable[..., Tensor], shared: bool, images: list[Tensor], weights: list[Tensor]
) -> Tensor:
    """Applies a function to all images: at once where clients share weights, else client by client."""
    if shared:
        gradients = pass_on(*(part.flatten(0, 1) for part in images), *weights)
    else:
        gradients = torch.cat([pass_on(*of_client) for of_client in zip(*images, *weights, strict=True)])
    return gradients.unflatten(0, images[0].shape[:2])
