"""The specification of a run's model: by its name, or by code that the scenario names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.models.by_name import build
from fedprivacy.models.from_code import call, load, source_digest
from fedprivacy.models.frozen_part import FrozenPart
from fedprivacy.models.lora import add_adapters
from fedprivacy.models.partial_training import (
    choose_trained,
    copy_frozen,
    frozen_part,
    frozen_tensors,
    trained_size,
)
from fedprivacy.models.weights_file import WeightsFile
from fedprivacy.scenario.model import Code, Model, Named, permit, stated_features
from fedprivacy.training.module_checks import check


@dataclass(frozen=True)
class ModelSpec:
    """A model that was found fit to be trained on its data.

    Args:
        build: From a seed for the initial weights to the module, (batch, *features) -> (batch, classes).
        code: A fingerprint of the code that makes the model, and of its weights at seed 0, or of the file of
            weights of a model by name; "" for another model by name, which the scenario describes in full.
        frozen: Its part that no client trains, None where a model by name is drawn and trained whole. Its
            values are those of seed 0 at every seed: they are public, and must not reveal the seed of a run's
            noise.
    """

    build: Callable[[int], nn.Module]
    code: str = ""
    frozen: FrozenPart | None = None


def model_spec(
    options: Model,
    features: Sequence[int],
    classes: int,
    *,
    task: str = CLASSIFICATION,
    allow_code: bool = False,
) -> ModelSpec:
    """The model of a scenario on its data.

    Args:
        options: The scenario's model section.
        features: The shape of one record.
        classes: The number of outputs, or of tokens.
        task: What it predicts (`fedprivacy.data.tasks`).
        allow_code: Whether the scenario may run code (`--allow-code`).

    Raises:
        InputError: if the model is code and that is not allowed, if the code cannot be found, fails or
            makes nothing that can be trained here, or if the model does not fit the data, or has no parameter
            or layer that the scenario names.
    """
    permit(options, allow_code)
    if not isinstance(options, Code):
        with torch.device("meta"):  # takes no memory
            build(options, features, classes, seed=0)
        if options.is_plain:
            return ModelSpec(lambda seed: build(options, features, classes, seed=seed))
    factory = load(options) if isinstance(options, Code) else None
    file = None if options.weights is None else WeightsFile.read(options.weights)

    def make(seed: int) -> nn.Module:
        if isinstance(options, Code):
            assert factory is not None
            module = call(factory, options, features, classes, seed)
        else:
            module = build(options, features, classes, seed=seed)
        module = _partly_trained(module, options)
        if file is not None:
            file.load_into(module)
        return module

    module, digest = make(0), None if file is None else file.digest
    code = digest or ""
    if isinstance(options, Code):
        check(module, make(0), options, features, classes, task)
        code = source_digest(options, module)
    part = frozen_part(module, digest, stated_features(options))
    values = frozen_tensors(module)
    if not values:
        # Code may draw its weights, or read trained ones: only the user knows.
        stated = file is not None or isinstance(options, Code)
        return ModelSpec(make, code, part if stated else None)

    def build_with_frozen(seed: int) -> nn.Module:
        seeded = make(seed)
        copy_frozen(values, seeded)
        return seeded

    return ModelSpec(build_with_frozen, code, part)


def _partly_trained(module: nn.Module, options: Model) -> nn.Module:
    """The module with a scenario's adapters, and with its choice of trained parameters."""
    adapters: list[str] = []
    if options.lora is not None:
        module, adapters = add_adapters(module, options.lora)
    choose_trained(module, options.trainable, options.freeze, adapters)
    return module


def parts_by_name(options: Named, features: Sequence[int], classes: int) -> tuple[int, int, int]:
    """The numbers of trained parameters, of frozen ones, and of values in buffers of a model by name.

    Args:
        options: The scenario's model section.
        features: The shape of one record.
        classes: The number of outputs.

    Raises:
        InputError: the model does not fit such records, or has no parameter or layer that is named.
    """
    with torch.device("meta"):  # takes no memory
        module = _partly_trained(build(options, features, classes, seed=0), options)
    trained = trained_size(module)
    buffers = sum(value.numel() for value in module.buffers())
    return trained, sum(value.numel() for value in module.parameters()) - trained, buffers
