"""The model of a scenario: the section `[model]`."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

from fedprivacy.data.images import EPSILON, GRID, GROUP, ORIENTATIONS, PADDING, SCALES, Image
from fedprivacy.errors import InputError
from fedprivacy.scenario.base import Section

Width = Annotated[int, Field(ge=1, le=10**6)]
Activation = Literal["relu", "tanh"]


class Lora(Section):
    """Low-rank adapters of linear layers, whose one trained factor is all that is trained of them."""

    rank: int = Field(ge=1, le=10**4, description="The rank of each adapter, such as 4.")
    alpha: float = Field(
        gt=0, le=10**6, description="Adapters are multiplied by alpha / rank; such as twice the rank."
    )
    targets: tuple[str, ...] = Field(
        ("*",),
        strict=False,
        min_length=1,
        max_length=100,
        description='Patterns of the names of linear layers with an adapter, such as ["encoder.*"].',
    )


def _lora(value: Any) -> Any:
    if value is not None and not isinstance(value, dict | Lora):
        raise PydanticCustomError("lora", "must be a section: lora = {rank = 4, alpha = 8.0}")
    if isinstance(value, dict) and (unknown := [key for key in value if key not in Lora.model_fields]):
        raise PydanticCustomError(
            "lora", "has no key {key}; it has rank, alpha and targets", {"key": str(unknown[0])}
        )
    return value


def _weights(value: str) -> str:
    if not value.endswith(".safetensors"):
        raise PydanticCustomError("weights", 'must name a ".safetensors" file')
    return value


class PartlyTrained(Section):
    """The choice of the parameters that clients train; by default all, or those that code has not frozen."""

    trainable: tuple[str, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=100,
        description='Patterns of the names of trained parameters, such as ["head.*"]; all others are frozen.',
    )
    freeze: tuple[str, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=100,
        description='Patterns of the names of frozen parameters, such as ["encoder.*"].',
    )
    lora: Annotated[Lora | None, BeforeValidator(_lora)] = Field(
        None,
        description="Low-rank adapters of linear layers: rank, alpha, and targets (patterns of layer names), "
        "such as {rank = 4, alpha = 8.0}; all other parameters are frozen, but for those in `trainable`.",
    )

    weights: Annotated[str, AfterValidator(_weights)] | None = Field(
        None,
        description="A .safetensors file with weights of the model, relative to the working directory; "
        "parameters that it does not have are drawn.",
    )

    @property
    def is_plain(self) -> bool:
        """Whether all weights are drawn and trained."""
        return (self.trainable, self.freeze, self.lora, self.weights) == (None, None, None, None)


class ByName(PartlyTrained):
    """A model of ours, on records or on features of them."""

    features: Literal["scatternet"] | None = Field(
        None,
        description="What the model reads in place of square images: their wavelet scattering coefficients, "
        'normalised image by image, such as "scatternet"; a frozen part of the model that no data chose.',
    )

    @property
    def is_plain(self) -> bool:
        """Whether all weights are drawn and trained, on records as they are."""
        return self.features is None and super().is_plain


# Features by name -> their version and parameters, as plans state them.
FEATURES = {
    "scatternet": f"scatternet, version 2: Morlet wavelets of {SCALES} scales and {ORIENTATIONS} directions, "
    f"order 2, rounded to multiples of 2^{math.log2(GRID):.0f}, {PADDING}ed at the border, colour by colour, "
    f"groups of {GROUP} channels normalised with {EPSILON:g} added to their variance",
}


def stated_features(model: PartlyTrained) -> str | None:
    """The features that a model reads, with version and parameters; None where it reads records."""
    return FEATURES[model.features] if isinstance(model, ByName) and model.features else None


class Logistic(ByName):
    """Logistic regression: one linear layer."""

    name: Literal["logistic"]


class Mlp(ByName):
    """Linear layers with an activation between them."""

    name: Literal["mlp"]
    hidden: tuple[Width, ...] = Field(
        (200,),
        strict=False,
        min_length=1,
        max_length=100,
        description='The sizes of the hidden layers, such as [200]; without any use the model "logistic".',
    )
    activation: Activation = Field("relu", description="The function between the layers.")


def _odd(value: int) -> int:
    if value % 2 == 0 or not 1 <= value <= 99:
        raise PydanticCustomError("odd", "must be an odd number from 1 to 99")
    return value


class Cnn(ByName):
    """A small convolutional network for square images, after LeNet (LeCun et al. 1998).

    For each entry of `channels` a convolution that keeps the image's size, the activation, and pooling that
    halves it; then linear layers as in an MLP.
    """

    name: Literal["cnn"]
    channels: tuple[Annotated[int, Field(ge=1, le=10**4)], ...] = Field(
        (16, 32),
        strict=False,
        min_length=1,
        max_length=20,
        description="The channels of the convolutions, such as [16, 32]; each halves the image.",
    )
    kernel_size: Annotated[int, AfterValidator(_odd)] = Field(
        3, description="The side of the convolutions' kernels; padding with zeros keeps the image's size."
    )
    hidden: tuple[Width, ...] = Field(
        (32,),
        strict=False,
        max_length=100,
        description="The sizes of the linear layers after the convolutions, such as [32], or [] for none.",
    )
    activation: Activation = Field("relu", description="The function between the layers.")


class Gru(PartlyTrained):
    """A gated recurrent network for texts: an embedding, one recurrent layer and one linear layer."""

    name: Literal["gru"]
    embedding: Width = Field(32, description="The numbers that stand for a token, such as 32.")
    width: Width = Field(128, description="The width of the recurrent state, such as 128.")


class Transformer(PartlyTrained):
    """A small causal transformer for texts, with learned positions, LayerNorm and attention."""

    name: Literal["transformer"]
    width: Width = Field(64, description="The width of each position, a multiple of `heads`, such as 64.")
    layers: int = Field(2, ge=1, le=100, description="The number of layers, such as 2.")
    heads: int = Field(4, ge=1, le=1000, description="The heads of each layer's attention, such as 4.")


def _factory(value: str) -> str:
    module, colon, function = value.partition(":")
    if not (colon and function.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise PydanticCustomError("factory", 'must be of the form "package.module:function"')
    return value


def _options(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PydanticCustomError("options", "must be a section: options = {width = 32}, or [model.options]")
    if given := sorted({"features", "classes"} & set(value)):
        raise PydanticCustomError("options", f"may not have {given[0]}: the data says it")
    if not _plain(value):
        raise PydanticCustomError("options", "may hold finite numbers, texts, yes-or-no values and lists")
    return value


def _plain(value: Any) -> bool:
    """Whether a value is the same after it was written to a file and read again."""
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    if isinstance(value, list):
        return all(map(_plain, value))
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


class Code(PartlyTrained):
    """Any `nn.Module`, made by a function that the scenario names; it runs on request only (`permit`)."""

    name: Literal["code"]
    factory: Annotated[str, AfterValidator(_factory)] = Field(
        description='The function that makes the model, as "package.module:function".',
        examples=["mymodels:make"],
    )
    options: Annotated[dict[str, Any], PlainValidator(_options)] = Field(
        {}, description="What the function gets by keyword besides features and classes."
    )

    @property
    def is_plain(self) -> bool:
        """Whether all weights are drawn and trained: code decides by itself."""
        return False


Named = Logistic | Mlp | Cnn | Gru | Transformer  # models of ours
Model = Annotated[Logistic | Mlp | Cnn | Gru | Transformer | Code, Field(discriminator="name")]


OBJECTS = "fedprivacy_objects"  # in sys.modules: models that are Python objects of this process


def is_object(model: Model) -> bool:
    """Whether a model is an object that a program registered, and not code in a file."""
    return isinstance(model, Code) and model.factory.startswith(f"{OBJECTS}:")


def permit(model: Model, allow_code: bool) -> None:
    """Lets a scenario run code only if the user permits it: a file alone never does.

    An object that the user's own program registered needs no permission: its code is the program's.

    Raises:
        InputError: if the model is code and that was not allowed, or an object of another process.
    """
    if isinstance(model, Code) and is_object(model):
        name = model.factory.partition(":")[2]
        if name.startswith("model_") and hasattr(sys.modules.get(OBJECTS), name):
            return
        raise InputError(
            f'model.factory = "{model.factory}": an object of another Python process. Run it from Python, '
            "with model = the same object."
        )
    if isinstance(model, Code) and not allow_code:
        raise InputError(
            f'model.factory = "{model.factory}": a scenario file alone never runs code. Read it; if you '
            "trust it, add --allow-code to the command, or allow-code=true to the run config of `flwr run`."
        )


def dense_parameters(widths: Sequence[int]) -> int:
    """The number of parameters of linear layers between these widths."""
    return sum((wide + 1) * high for wide, high in itertools.pairwise(widths))


def cnn_size(
    channels: Sequence[int], kernel_size: int, hidden: Sequence[int], image: Image, classes: int
) -> tuple[int, int]:
    """The parameters of a CNN, and how many numbers its convolutions make of one record."""
    parameters, maps, side = 0, 0, image[1]
    for narrow, wide in itertools.pairwise((image[0], *channels)):
        parameters += (kernel_size**2 * narrow + 1) * wide
        maps += wide * side * side
        side //= 2
    return parameters + dense_parameters((channels[-1] * side * side, *hidden, classes)), maps


def gru_parameters(tokens: int, embedding: int, width: int) -> int:
    """The number of parameters of a GRU."""
    return tokens * embedding + 3 * width * (embedding + width + 2) + (width + 1) * tokens


def transformer_parameters(tokens: int, positions: int, width: int, layers: int) -> int:
    """The number of parameters of a transformer."""
    of_layer = dense_parameters((width, 3 * width)) + dense_parameters((width, width))
    of_layer += dense_parameters((width, 4 * width, width)) + 4 * width  # and two LayerNorms
    return (tokens + positions) * width + layers * of_layer + 2 * width + (width + 1) * tokens
