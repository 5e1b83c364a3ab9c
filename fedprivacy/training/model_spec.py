"""The specification of a run's model: by its name, or by code that the scenario names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from fedprivacy.models.by_name import build
from fedprivacy.models.from_code import call, load, source_digest
from fedprivacy.scenario.model import Cnn, Code, Logistic, Mlp, permit
from fedprivacy.training.module_checks import check


@dataclass(frozen=True)
class ModelSpec:
    """A model that was found fit to be trained on its data.

    Args:
        build: From a seed for the initial weights to the module, (batch, *features) -> (batch, classes).
        code: A fingerprint of the code that makes the model, and of its weights at seed 0; "" for a
            model by name, which the scenario describes in full.
    """

    build: Callable[[int], nn.Module]
    code: str = ""


def model_spec(
    options: Logistic | Mlp | Cnn | Code, features: Sequence[int], classes: int, *, allow_code: bool = False
) -> ModelSpec:
    """The model of a scenario on its data.

    Args:
        options: The scenario's model section.
        features: The shape of one record.
        classes: The number of outputs.
        allow_code: Whether the scenario may run code (`--allow-code`).

    Raises:
        InputError: if the model is code and that is not allowed, if the code cannot be found, fails or
            makes nothing that can be trained here, or if the model does not fit the data.
    """
    permit(options, allow_code)
    if not isinstance(options, Code):
        with torch.device("meta"):  # takes no memory
            build(options, features, classes, seed=0)
        return ModelSpec(lambda seed: build(options, features, classes, seed=seed))
    factory = load(options)

    def make(seed: int) -> nn.Module:
        return call(factory, options, features, classes, seed)

    module = make(0)
    check(module, make(0), options, features, classes)
    return ModelSpec(make, source_digest(options, module))
