"""Models as Python objects: an `nn.Module`, or a function that makes one."""

from __future__ import annotations

import copy
import hashlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fedprivacy.errors import InputError

MODULE = "fedprivacy_objects"  # in sys.modules: forked workers find the same objects there
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
    return {"model.name": "code", "model.factory": f"{MODULE}:{_registered(model)}"}


def is_object(model: Any) -> bool:
    """Whether a model is code of the caller, and not a name."""
    return callable(model)


def _registered(model: Any) -> str:
    """Makes a model available to `models.from_code` under a name with a fingerprint, and returns the name."""
    from torch import nn

    make: Callable[..., Any]
    if isinstance(model, nn.Module):
        make, identity = _copies(model), _of_module(model)
    else:
        make, identity = _with_arguments(model), _of_function(model)
    name = f"model_{identity}"
    module = sys.modules.setdefault(MODULE, ModuleType(MODULE))
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


def _of_module(module: Any) -> str:
    digest = hashlib.blake2b(str(module).encode(), digest_size=8)
    for name, tensor in module.state_dict().items():
        digest.update(f"/{name}{tuple(tensor.shape)}".encode() + tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def _of_function(function: Callable[..., Any]) -> str:
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):  # typed at a prompt
        code = getattr(function, "__code__", None)
        text = f"{code.co_code.hex()}{code.co_consts}{code.co_names}" if code else repr(type(function))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
