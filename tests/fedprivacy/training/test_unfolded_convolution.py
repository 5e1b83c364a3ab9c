"""Convolutions as products of patches: equal to groups of one convolution, steps and gradients alike."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedprivacy.training.convolutions import FormedConvolution
from fedprivacy.training.layers import Step
from fedprivacy.training.layerwise import numbers_of_convolutions
from fedprivacy.training.unfolded_convolution import UnfoldedConvolution


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": (3, 5), "padding": 2},
        {"kernel_size": 3, "stride": (2, 1), "padding": 1},
        {"kernel_size": 3, "dilation": (2, 1)},
        {"kernel_size": 1, "bias": False},
    ],
)
def test_equal_to_groups_of_one_convolution(options: dict[str, Any]) -> None:
    stream = torch.Generator().manual_seed(1)
    layer = nn.Conv2d(3, 4, **options)
    sent = [torch.randn(part.shape, generator=stream) for part in layer.parameters()]
    unfolded, grouped = UnfoldedConvolution(sent, layer), FormedConvolution(sent, layer)
    active = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0])[:, None, None]

    def both(*results: Tensor) -> None:
        assert torch.allclose(*results, rtol=1e-4, atol=1e-4)

    for _ in range(3):
        images = torch.randn(5, 2, 3, 13, 14, generator=stream)
        outputs = [convolution.forward(images, slice(0)) for convolution in (unfolded, grouped)]
        both(*outputs)
        back = torch.randn(outputs[0].shape, generator=stream) / 100
        both(*(convolution.backward(back) for convolution in (unfolded, grouped)))
        for convolution in (unfolded, grouped):
            convolution.descend(back, Step(0.1, 0.9, 0.01, 0.1, active))
    for parts in zip(unfolded.stack(), grouped.stack(), strict=True):
        both(*parts)


def test_patches_are_counted_as_they_are_laid_out() -> None:
    """Of the two convolutions of a CNN: each record's patches are the columns that the product reads."""
    module = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.MaxPool2d(2), nn.Conv2d(3, 2, (2, 3), stride=2))
    images, counted = torch.randn(1, 1, 1, 8, 10), 0
    for part in (module[0], module[2]):
        assert isinstance(part, nn.Conv2d)
        convolution = UnfoldedConvolution([value.detach() for value in part.parameters()], part)
        flowing = convolution.forward(images, slice(0))
        counted += convolution._inputs.numel()
        images = nn.functional.max_pool2d(flowing[0], 2)[None]
    assert numbers_of_convolutions(module, (1, 8, 10))[2] == counted
