"""Models by name, as torch modules, and the one flat vector in which weights travel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.data.images import EPSILON, GROUP, SMALLEST, scattered, square_image
from fedprivacy.errors import InputError
from fedprivacy.models.partial_training import frozen_part, trained_parameters
from fedprivacy.models.scattering import Scattering
from fedprivacy.scenario.model import Cnn, Logistic, Mlp

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


def build(options: Logistic | Mlp | Cnn, features: Sequence[int], classes: int, *, seed: int) -> nn.Module:
    """The model that a scenario names, initialised from a seed.

    Args:
        options: The scenario's model section.
        features: The shape of one record; it is flattened but for a CNN.
        classes: The number of outputs.
        seed: Seeds the initial weights. Logistic models start at zero (their loss is convex).

    Returns:
        A module from (batch, *features) to (batch, classes) logits.

    Raises:
        InputError: if the model needs images and the records are none.
    """
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


def _front(options: Logistic | Mlp | Cnn, features: Sequence[int]) -> tuple[list[nn.Module], tuple[int, ...]]:
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


@dataclass(frozen=True)
class Evaluation:
    """Accuracy and loss of a model on held-out records.

    Args:
        loss: The mean cross-entropy.
        correct: How many records of each class it names rightly.
        records: How many records each class has.
        names: The names of the classes, one for each; empty where they have none.
    """

    loss: float
    correct: tuple[int, ...]
    records: tuple[int, ...]
    names: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """The share of all records that it names rightly."""
        return sum(self.correct) / sum(self.records)

    @property
    def balanced_accuracy(self) -> float:
        """The mean accuracy within the classes that have records."""
        known = [right / count for right, count in zip(self.correct, self.records, strict=True) if count]
        return math.fsum(known) / len(known)

    def per_class(self) -> list[dict[str, Any]]:
        """The accuracy within each class, as the document holds it; null where a class has no record."""
        labels = self.names or (None,) * len(self.records)
        return [
            {"class": number, "label": label, "accuracy": right / count if count else None, "records": count}
            for number, (label, right, count) in enumerate(
                zip(labels, self.correct, self.records, strict=True)
            )
        ]


@torch.no_grad()
def evaluate(
    module: nn.Module,
    weights: NDArray[np.float32],
    x: NDArray[np.float32],
    y: NDArray[np.int64],
    names: tuple[str, ...] = (),
) -> Evaluation:
    """Accuracy, also within each class, and mean cross-entropy of flat weights on records.

    Args:
        module: A module to (batch, classes) logits; of its own weights the frozen ones alone are used.
        weights: The flat weights, shape (parameters,).
        x: Records, shape (records, *features), taken in blocks of bounded memory.
        y: Their labels, int64 in [0, classes), shape (records,).
        names: The names of the classes; empty where they have none.
    """
    parameters = unflatten(module, torch.from_numpy(weights))
    correct, loss = np.empty(len(y), dtype=bool), 0.0
    for start in range(0, len(y), 8192):
        labels = torch.from_numpy(y[start : start + 8192])
        logits = torch.func.functional_call(module, parameters, torch.from_numpy(x[start : start + 8192]))
        correct[start : start + 8192] = (logits.argmax(dim=1) == labels).numpy()
        loss += float(nn.functional.cross_entropy(logits.double(), labels, reduction="sum"))
    right, records = (np.bincount(part, minlength=logits.shape[1]).tolist() for part in (y[correct], y))
    return Evaluation(loss / len(y), tuple(right), tuple(records), names)
