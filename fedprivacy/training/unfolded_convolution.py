"""Convolutions with formed weights for each client of a chunk, on a GPU.

Groups of one convolution (`fedprivacy.training.convolutions`) are slow on a GPU. Here the patches of each
client's images lie side by side, and one batched product multiplies those of all clients.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedprivacy.training.layers import FormedLayer, Place, Step
from fedprivacy.training.unfolding import output_size


class UnfoldedConvolution(FormedLayer):
    """A convolution with formed weights for each client, as a product of matrices.

    Args:
        sent: The weight that was sent, shape (outputs, channels, *kernel), and the bias if there is one.
        layer: Says stride, padding and dilation; its own weights are not read.
    """

    def __init__(self, sent: list[Tensor], layer: nn.Conv2d) -> None:
        super().__init__(sent)
        self._layer, self._weight, self._shape = layer, sent[0], torch.Size()

    def forward(self, inputs: Tensor | None, place: Place) -> Tensor:
        """As `Layer` has it."""
        assert inputs is not None
        clients, records = inputs.shape[:2]
        # In the first step all have the weights that were sent.
        parts = [part.expand(clients, *part.shape) if self._shared else part for part in self.form()]
        self._weight, *bias = (parts[0].flatten(2), *parts[1:])
        self._inputs, self._shape = _patches(self._layer, inputs), inputs.shape
        outputs = torch.bmm(self._weight, self._inputs)
        if bias:
            outputs += bias[0][..., None]
        rows, columns = output_size(self._layer, inputs)
        return outputs.view(clients, -1, records, rows, columns).transpose(1, 2)

    def backward(self, back: Tensor) -> Tensor:
        """As `Layer` has it."""
        layer, (clients, records, _, high, wide) = self._layer, self._shape
        patches = torch.bmm(self._weight.mT, _outputs_in_front(back))
        images = patches.unflatten(2, (records, -1)).transpose(1, 2).flatten(0, 1)
        assert not isinstance(layer.padding, str)
        folded = nn.functional.fold(
            images, (high, wide), layer.kernel_size, layer.dilation, layer.padding, layer.stride
        )
        return folded.unflatten(0, (clients, records))

    def descend(self, back: Tensor, step: Step) -> None:
        """As `Layer` has it."""
        back = _outputs_in_front(back)
        gradients = [torch.bmm(back, self._inputs.mT).view(len(back), *self._sent[0].shape)]
        if len(self._sent) > 1:
            gradients.append(back.sum(dim=2))
        self.move(gradients, step)


def numbers_of_patches(layer: nn.Conv2d, inputs: Tensor) -> int:
    """Counts the numbers of one record's patches.

    Args:
        layer: A convolution.
        inputs: Its inputs, shape (..., channels, height, width).
    """
    rows, columns = output_size(layer, inputs)
    return rows * columns * layer.weight[0].numel()


def _patches(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """The patches of each client's images, shape (clients, weights of an output, records * positions)."""
    assert not isinstance(layer.padding, str)
    (high, wide), (down, right) = layer.kernel_size, layer.stride
    (apart, beside), (above, left) = layer.dilation, layer.padding
    padded = nn.functional.pad(inputs, (left, left, above, above)).contiguous()
    clients, records, channels = padded.shape[:3]
    rows, columns = output_size(layer, inputs)
    client, record, channel, by, each = padded.stride()
    shape = (clients, channels, high, wide, records, rows, columns)
    strides = (client, channel, by * apart, each * beside, record, by * down, each * right)
    return padded.as_strided(shape, strides).reshape(
        clients, channels * high * wide, records * rows * columns
    )


def _outputs_in_front(back: Tensor) -> Tensor:
    """Of shape (clients, batch, outputs, height, width), as (clients, outputs, batch * positions)."""
    return back.transpose(1, 2).flatten(2)
