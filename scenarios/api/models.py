"""Models as Python objects: an `nn.Module`, or a function that makes one."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.scenario.model import OBJECTS
from scenarios.api.fingerprint import fingerprint

PLAIN = ("logistic", "mlp", "cnn")


def settings_of(model: Any) -> dict[str, Any]:
    """Returns the settings of the model section: `key -> value`.

    Args:
        model: "logistic", "mlp" or "cnn", the table of a model section, an `nn.Module`, or a function that
            returns one. A function gets `features` (the shape of a record) and `classes` where it has
            parameters of these names. A module is copied, so that every run begins with its weights.

    Raises:
        InputError: if it is none of these.
    """
    if isinstance(model, str):
        return {"model.name": model}
    if isinstance(model, dict):
        return {f"model.{key}": value for key, value in model.items()}
    if not callable(model):
        raise InputError(
            f"model = {model!r}: give one of {', '.join(PLAIN)}, a table, an nn.Module or a function."
        )
    return {"model.name": "code", "model.factory": f"{OBJECTS}:{_registered(model)}"}


def is_object(model: Any) -> bool:
    """Whether a model is code of the caller, and not a name."""
    return callable(model)


def _registered(model: Any) -> str:
    """Makes a model available to `models.from_code` under a name with a fingerprint, and returns the name."""
    from torch import nn

    make = _copies(model) if isinstance(model, nn.Module) else _with_arguments(model)
    name = f"model_{fingerprint(model)}"
    module = sys.modules.setdefault(OBJECTS, ModuleType(OBJECTS))
    setattr(module, name, make)
    return name


def _copies(module: Any) -> Callable[..., Any]:
    original = copy.deepcopy(module)

    def make(**_: Any) -> Any:
        return copy.deepcopy(original)

    return make


def _with_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    known = {parameter.name for parameter in parameters}

    def make(**given: Any) -> Any:
        return function(**{key: value for key, value in given.items() if every or key in known})

    return make
