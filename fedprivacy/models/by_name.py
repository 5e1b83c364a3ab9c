"""Models by name, as torch modules, and the one flat vector in which weights travel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.data.images import EPSILON, GROUP, SMALLEST, scattered, square_image
from fedprivacy.errors import InputError
from fedprivacy.models.partial_training import frozen_part, trained_parameters
from fedprivacy.models.scattering import Scattering
from fedprivacy.models.sequences import Gru, Transformer
from fedprivacy.scenario.model import ByName, Cnn, Logistic, Named
from fedprivacy.scenario.model import Gru as GruOptions

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


def build(options: Named, features: Sequence[int], classes: int, *, seed: int) -> nn.Module:
    """The model that a scenario names, initialised from a seed.

    Args:
        options: The scenario's model section.
        features: The shape of one record; it is flattened but for a CNN. Of a text, its positions.
        classes: The number of outputs, or of tokens.
        seed: Seeds the initial weights. Logistic models start at zero (their loss is convex).

    Returns:
        A module from (batch, *features) to (batch, classes) logits; of texts from (batch, positions) to
        (batch, positions, tokens).

    Raises:
        InputError: if the model needs images and the records are none.
    """
    if not isinstance(options, ByName):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if isinstance(options, GruOptions):
                return Gru(classes, options.embedding, options.width)
            return Transformer(classes, features[0], options.width, options.layers, options.heads)
    layers, features = _front(options, features)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(options, Logistic):
            layer = nn.Linear(math.prod(features), classes)
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
            return nn.Sequential(*layers, nn.Flatten(), layer)
        if isinstance(options, Cnn):
            convolutions, inputs = _convolutions(options, features)
            layers += convolutions
        else:
            layers, inputs = [*layers, nn.Flatten()], math.prod(features)
        for width in options.hidden:
            layers += [nn.Linear(inputs, width), ACTIVATIONS[options.activation]()]
            inputs = width
        return nn.Sequential(*layers, nn.Linear(inputs, classes))


class ToImage(nn.Module):
    """Records, flat or with their channels last, as torch has images: (batch, channels, side, side)."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.shape = (side, side, channels)

    def extra_repr(self) -> str:
        return f"shape={self.shape}"

    def forward(self, records: Tensor) -> Tensor:
        return records.reshape(-1, *self.shape).movedim(-1, 1)


class GroupNorm(nn.GroupNorm):
    """Normalisation of groups of channels by the image's own mean and variance."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels // GROUP, channels, EPSILON, affine=False)

    def extra_repr(self) -> str:
        # It is in digests: versions of torch print other words.
        return f"groups={self.num_groups}, eps={self.eps}"


def _front(options: ByName, features: Sequence[int]) -> tuple[list[nn.Module], tuple[int, ...]]:
    """The frozen layers that make features of images, and the shape of what the other layers read.

    Group normalisation uses the features of one image alone, so it costs no privacy.
    """
    if options.features is None:
        return [], tuple(features)
    image = square_image(features)
    if image is None or image[1] < SMALLEST:
        raise InputError(
            f'model.features = "{options.features}": needs square images with 1 or 3 channels, of {SMALLEST} '
            f"x {SMALLEST} pixels or more, and the records have the shape {tuple(features)}. Images are flat "
            "(64,), (28, 28), or (32, 32, 3) with the channels last."
        )
    channels, side = scattered(image)
    return [ToImage(*image), Scattering(image[1]), GroupNorm(channels)], (channels, side, side)


def formula(encoder: nn.Module) -> str | None:
    """The formula that a frozen encoder is, with the digest of its tensors; None for encoders with code.

    Encoders of equal formulas make equal features.
    """
    layers = encoder if type(encoder) is nn.Sequential else [encoder]
    known = all(type(layer) in (ToImage, Scattering, GroupNorm, nn.Flatten) for layer in layers)
    if not known or list(encoder.parameters()) or any(map(_has_hooks, encoder.modules())):
        return None
    return f"{encoder}, digest {frozen_part(encoder).digest}"


def _has_hooks(layer: nn.Module) -> bool:
    """Whether code of others, or a `forward` in place of the class's, runs with the layer."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks) or "forward" in vars(layer)


def _convolutions(options: Cnn, features: Sequence[int]) -> tuple[list[nn.Module], int]:
    """The layers of a CNN up to its linear ones, and how many numbers they make of a record."""
    image = square_image(features) if options.features is None else (features[0], features[1])
    if image is None:
        raise InputError(
            f'model.name = "cnn": needs square images with 1 or 3 channels, and the records have the shape '
            f"{tuple(features)}. Images are flat (64,), (28, 28), or (32, 32, 3) with the channels last."
        )
    inputs, side = image
    halvings = side.bit_length() - 1
    if len(options.channels) > halvings:
        raise InputError(
            f"model.channels = {list(options.channels)}: nothing is left of images of {side} x {side} pixels "
            f"that are halved so often. At most {halvings} entries."
        )
    layers: list[nn.Module] = [ToImage(inputs, side)] if options.features is None else []
    size = options.kernel_size
    for width in options.channels:
        convolution = nn.Conv2d(inputs, width, size, padding=size // 2)
        layers += [convolution, ACTIVATIONS[options.activation](), nn.MaxPool2d(2)]
        inputs, side = width, side // 2
    return [*layers, nn.Flatten()], inputs * side * side


def flat_weights(module: nn.Module) -> NDArray[np.float32]:
    """The trained weights of a module as one vector, float32, shape (parameters,), in definition order."""
    return torch.cat([p.detach().reshape(-1) for p in trained_parameters(module).values()]).numpy()


def unflatten(module: nn.Module, flat: Tensor) -> dict[str, Tensor]:
    """Views of a flat vector, shape (..., parameters), as the trained parameters of a module by name.

    Leading dimensions, for example one for each client, stay in front of each parameter's shape.

    Raises:
        ValueError: if the vector does not have as many entries as the module has trained parameters.
    """
    named = [(name, p.shape) for name, p in trained_parameters(module).items()]
    sizes = [shape.numel() for _, shape in named]
    if flat.shape[-1] != sum(sizes):
        raise ValueError(f"the model has {sum(sizes)} parameters, the vector {flat.shape[-1]}")
    parts, leading = flat.split_with_sizes(sizes, dim=-1), flat.shape[:-1]
    return {name: part.reshape(leading + shape) for part, (name, shape) in zip(parts, named, strict=True)}
