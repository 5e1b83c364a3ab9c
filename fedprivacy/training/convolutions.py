"""Convolutions with formed weights for each client of a chunk, while the clients train.

A convolution has few weights and many positions, so each client's weights are formed. The clients are the
groups of one grouped convolution: their images lie side by side, channels last in memory (`side_by_side`),
so that convolutions, pooling and activations read whole vectors and no image is copied between layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedprivacy.training.layers import FormedLayer, Place, Step
from fedprivacy.training.unfolding import by_client, side_by_side


class FormedConvolution(FormedLayer):
    """A convolution with formed weights for each client.

    Args:
        sent: The weight that was sent, shape (outputs, channels, *kernel), and the bias if there is one.
        layer: Says stride, padding and dilation; its own weights are not read.
    """

    def __init__(self, sent: list[Tensor], layer: nn.Conv2d) -> None:
        super().__init__(sent)
        self._layer, self._weight = layer, sent[0]

    def forward(self, inputs: Tensor | None, place: Place) -> Tensor:
        """As `Layer` has it."""
        assert inputs is not None
        clients, layer = len(inputs), self._layer
        # In the first step all have the weights that were sent.
        parts = [part.expand(clients, *part.shape) if self._shared else part for part in self.form()]
        self._weight, *bias = (part.flatten(0, 1) for part in parts)
        self._inputs = side_by_side(inputs)
        images = torch.ops.aten.convolution(
            *(self._inputs, self._weight, bias[0] if bias else None),
            *(layer.stride, layer.padding, layer.dilation, False, [0, 0], clients),
        )
        return by_client(images, clients)

    def backward(self, back: Tensor) -> Tensor:
        """As `Layer` has it."""
        return by_client(self._gradient(side_by_side(back), len(back), 0), len(back))

    def descend(self, back: Tensor, step: Step) -> None:
        """As `Layer` has it."""
        clients, back = len(back), side_by_side(back)
        gradients = [self._gradient(back, clients, 1)]
        if len(self._sent) > 1:
            gradients.append(back.sum(dim=(0, 2, 3)))  # in a third of the time of the library's convolution
        self.move([part.unflatten(0, (clients, -1)) for part in gradients], step)

    def _gradient(self, back: Tensor, clients: int, to: int) -> Tensor:
        """The gradient by the inputs (0) or by the weight (1), of images side by side."""
        layer, wanted = self._layer, [to == 0, to == 1, False]
        gradients = torch.ops.aten.convolution_backward(
            *(back, self._inputs, self._weight, None, layer.stride, layer.padding, layer.dilation),
            *(False, [0, 0], clients, wanted),
        )
        return gradients[to]
