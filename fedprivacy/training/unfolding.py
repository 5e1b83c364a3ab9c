"""Lays a convolution's input at each position side by side, so that a matrix product computes it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def is_wide(layer: nn.Conv2d) -> bool:
    """Whether a row of the kernel, with its channels side by side, is long enough to be copied as one."""
    return layer.in_channels * layer.kernel_size[1] >= 16 and layer.dilation[1] == 1


def unfolded(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """Unfolds patches like `torch.nn.functional.unfold`, in a quarter of the time.

    Args:
        layer: A convolution.
        inputs: Its inputs, shape (groups, records, channels, height, width).

    Returns:
        Shape (groups, records * positions, kernel height * kernel width * channels) if `is_wide`, or
        (groups, channels * kernel height * kernel width, records * positions).
    """
    assert not isinstance(layer.padding, str)
    (high, wide), (down, right) = layer.kernel_size, layer.stride
    (apart, beside), (above, left) = layer.dilation, layer.padding
    padded = nn.functional.pad(inputs, (left, left, above, above))
    groups, records, channels = padded.shape[:3]
    rows, places = output_size(layer, inputs)
    if is_wide(layer):
        last = padded.movedim(2, -1).contiguous()
        group, of, by, step, stride = last.stride()
        shape = (groups, records, rows, places, high, wide * channels)
        strided = last.as_strided(shape, (group, of, by * down, step * right, by * apart, stride))
        return strided.reshape(groups, records * rows * places, high * wide * channels)
    first = padded.contiguous()
    group, of, channel, by, stride = first.stride()
    seen = (groups, channels, high, wide, records, rows, places)
    strides = (group, channel, by * apart, stride * beside, of, by * down, stride * right)
    return first.as_strided(seen, strides).reshape(groups, channels * high * wide, records * rows * places)


def output_size(layer: nn.Conv2d, inputs: Tensor) -> tuple[int, int]:
    """The height and width of a convolution's output for inputs of shape (..., height, width)."""
    assert not isinstance(layer.padding, str)
    high, wide = (
        (size + 2 * around - apart * (kernel - 1) - 1) // stride + 1
        for size, around, apart, kernel, stride in zip(
            inputs.shape[-2:], layer.padding, layer.dilation, layer.kernel_size, layer.stride, strict=True
        )
    )
    return high, wide


def channels_last(images: Tensor) -> Tensor:
    """In the order that pooling and convolutions of several channels are fastest in."""
    return images.contiguous(memory_format=torch.channels_last)


def side_by_side(images: Tensor) -> Tensor:
    """The images of all clients as the channels of one batch, channels last in memory.

    Args:
        images: Shape (clients, batch, channels, height, width).

    Returns:
        Shape (batch, clients * channels, height, width); no copy of what `by_client` returned.
    """
    return channels_last(images.transpose(0, 1).flatten(1, 2))


def by_client(images: Tensor, clients: int) -> Tensor:
    """The inverse of `side_by_side`, without a copy."""
    return images.unflatten(1, (clients, -1)).transpose(0, 1)
