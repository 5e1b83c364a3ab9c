"""The specification of a run's model: by its name, or by code that the scenario names."""

from __future__ import annotations

import copy
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
    choose_shared,
    choose_trained,
    copy_frozen,
    frozen_part,
    frozen_tensors,
    trained_size,
)
from fedprivacy.models.weights_file import WeightsFile
from fedprivacy.population.clients import Population
from fedprivacy.scenario import Scenario
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
        personal: The names of the parameters that each client trains for itself, from these values.
    """

    build: Callable[[int], nn.Module]
    code: str = ""
    frozen: FrozenPart | None = None
    personal: tuple[str, ...] = ()

    def of_client(self, module: nn.Module) -> nn.Module:
        """The model that a client trains: a copy of the shared one, in which its personal part is trained."""
        if not self.personal:
            return module
        whole, personal = copy.deepcopy(module), set(self.personal)
        for name, value in whole.named_parameters():
            value.requires_grad_(value.requires_grad or name in personal)
        return whole


def model_of(scenario: Scenario, people: Population, *, allow_code: bool = False) -> ModelSpec:
    """The model of a scenario on its clients' data.

    Args:
        scenario: The scenario.
        people: Its clients.
        allow_code: Whether the scenario may run code (`--allow-code`).

    Raises:
        InputError: as `model_spec`.
    """
    data = people.dataset
    return model_spec(
        scenario.model,
        people.features,
        data.classes,
        task=data.task,
        shared=scenario.training.shared,
        allow_code=allow_code,
    )


def model_spec(
    options: Model,
    features: Sequence[int],
    classes: int,
    *,
    task: str = CLASSIFICATION,
    shared: Sequence[str] | None = None,
    allow_code: bool = False,
) -> ModelSpec:
    """The model of a section `model`.

    Args:
        options: The scenario's model section.
        features: The shape of one record.
        classes: The number of outputs, or of tokens.
        task: What it predicts (`fedprivacy.data.tasks`).
        shared: Patterns of the trained parameters that are sent (`training.shared`); None: all of them.
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
        if options.is_plain and shared is None:
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
    personal = () if shared is None else choose_shared(module, shared)
    part = frozen_part(module, digest, stated_features(options), personal)
    values = frozen_tensors(module)
    if not values:
        # Code may draw its weights, or read trained ones: only the user knows.
        stated = file is not None or isinstance(options, Code)
        return ModelSpec(make, code, part if stated else None)

    def build_with_frozen(seed: int) -> nn.Module:
        seeded = make(seed)
        if shared is not None:
            choose_shared(seeded, shared)
        copy_frozen(values, seeded)
        return seeded

    return ModelSpec(build_with_frozen, code, part, personal)


def _partly_trained(module: nn.Module, options: Model) -> nn.Module:
    """The module with a scenario's adapters, and with its choice of trained parameters."""
    adapters: list[str] = []
    if options.lora is not None:
        module, adapters = add_adapters(module, options.lora)
    choose_trained(module, options.trainable, options.freeze, adapters)
    return module


def parts_by_name(
    options: Named,
    features: Sequence[int],
    classes: int,
    shared: Sequence[str] | None = None,
) -> tuple[int, int, int]:
    """The numbers of trained parameters, of frozen ones, and of values in buffers of a model by name.

    Args:
        options: The scenario's model section.
        features: The shape of one record.
        classes: The number of outputs.
        shared: As of `model_spec`; what stays at clients counts as frozen.

    Raises:
        InputError: the model does not fit such records, or has no parameter or layer that is named.
    """
    with torch.device("meta"):  # takes no memory
        module = _partly_trained(build(options, features, classes, seed=0), options)
        if shared is not None:
            choose_shared(module, shared)
    trained = trained_size(module)
    buffers = sum(value.numel() for value in module.buffers())
    return trained, sum(value.numel() for value in module.parameters()) - trained, buffers
