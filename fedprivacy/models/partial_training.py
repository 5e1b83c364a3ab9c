"""Models of which a part is frozen: the choice of the trained parameters, and the frozen rest.

A parameter is trained if it requires a gradient. All others, and all buffers, are constants of the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, takewhile

import torch
from torch import Tensor, nn

from fedprivacy.errors import InputError
from fedprivacy.models.frozen_part import FrozenPart

_SHOWN = 20  # names in a message


def trained_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that clients train, by name, in definition order."""
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def trained_size(module: nn.Module) -> int:
    """The number of values in the trained parameters: the length of an update."""
    return sum(value.numel() for value in trained_parameters(module).values())


def frozen_tensors(module: nn.Module) -> dict[str, Tensor]:
    """The frozen parameters and the buffers, by name, in definition order."""
    frozen = {name: value.detach() for name, value in module.named_parameters() if not value.requires_grad}
    return frozen | dict(module.named_buffers())


def refuse_frozen(module: nn.Module, attack: str) -> None:
    """Refuses a model with frozen parameters to an attack that reads, or sets, all of them.

    Args:
        module: The model.
        attack: In words, for the message.

    Raises:
        InputError: a parameter is frozen.
    """
    frozen = [name for name, value in module.named_parameters() if not value.requires_grad]
    if frozen:
        raise InputError(
            f"model: {attack} needs a model that is trained whole, and {frozen[0]} is frozen. Train all of "
            "it, or take another attack."
        )


def choose_trained(
    module: nn.Module,
    trainable: Sequence[str] | None,
    freeze: Sequence[str] | None,
    adapters: Collection[str] = (),
) -> None:
    """Marks the parameters that are trained.

    Args:
        module: The model; its `requires_grad` change.
        trainable: Patterns (`fnmatch`) of the names of trained parameters; all others are frozen. None: those
            are trained that the model's code has not frozen.
        freeze: Patterns of names that are frozen all the same; None: none.
        adapters: Names of the trained factors of adapters; with any, all parameters are frozen that are not
            in `trainable`.

    Raises:
        InputError: a pattern matches no parameter, or freezes an adapter, or nothing is left to train.
    """
    parameters = dict(module.named_parameters())
    if trainable is not None or adapters:
        chosen = {*adapters, *_matched("trainable", trainable or (), list(parameters))}
        for name, value in parameters.items():
            if name in chosen and not value.is_floating_point():
                raise InputError(
                    f'model.trainable: parameter "{name}" is {value.dtype}, which has no gradient. '
                    "Leave it out."
                )
            value.requires_grad_(name in chosen)
    if freeze is not None:
        for pattern in freeze:
            if of_adapters := [name for name in adapters if fnmatchcase(name, pattern)]:
                raise InputError(
                    f'model.freeze = "{pattern}": matches {of_adapters[0]}, an adapter, which is there to be '
                    "trained. Take a narrower pattern, or leave its layer out of model.lora.targets."
                )
        for name in _matched("freeze", freeze, list(parameters)):
            parameters[name].requires_grad_(False)
        if not any(value.requires_grad for value in parameters.values()):
            raise InputError(
                f"model.freeze = {list(freeze)}: nothing is left to train. The parameters are: "
                f"{_listed(list(parameters))}."
            )


def choose_shared(module: nn.Module, shared: Sequence[str]) -> tuple[str, ...]:
    """Freezes the trained parameters that stay at clients: the model of all others, who never see them.

    Args:
        module: The model; its `requires_grad` change.
        shared: Patterns (`fnmatch`) of the names of the trained parameters that are sent.

    Returns:
        The names of the personal parameters, in definition order.

    Raises:
        InputError: a pattern matches no trained parameter, or all of them are shared.
    """
    trained = trained_parameters(module)
    sent = _matched("shared", shared, list(trained), "training", "trained parameter")
    personal = tuple(name for name in trained if name not in sent)
    if not personal:
        raise InputError(
            f"training.shared = {list(shared)}: no parameter stays at the clients. Leave some out, or remove "
            "it."
        )
    for name in personal:
        trained[name].requires_grad_(False)
    return personal


def _matched(
    key: str, patterns: Sequence[str], names: Sequence[str], section: str = "model", noun: str = "parameter"
) -> set[str]:
    matched: set[str] = set()
    for pattern in patterns:
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            raise InputError(
                f'{section}.{key} = "{pattern}": matches no {noun}. The {noun}s are: {_listed(names)}.'
            )
        matched |= matching
    return matched


def _listed(names: Sequence[str]) -> str:
    rest = f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def content(value: Tensor) -> bytes:
    """The bytes of a tensor's values, of any type."""
    return value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def frozen_part(
    module: nn.Module,
    file: str | None = None,
    features: str | None = None,
    personal: Collection[str] = (),
) -> FrozenPart:
    """The frozen part of a model.

    Args:
        module: The model.
        file: The digest of the file with its weights.
        features: As `FrozenPart` has them.
        personal: The names of the parameters that are trained and stay at clients (`choose_shared`).
    """
    frozen = frozen_tensors(module)
    digest = hashlib.blake2b(digest_size=16)
    for name, value in frozen.items():
        digest.update(f"/{name}/{value.dtype}/{tuple(value.shape)}/".encode() + content(value))
    if features is not None:  # what its layers do, such as the normalisation, is in no tensor
        layers = takewhile(lambda layer: not list(layer.parameters()), module.children())
        digest.update("".join(f"/{layer}" for layer in layers).encode())
    trained = trained_size(module)
    every = sum(parameter.numel() for parameter in module.parameters())
    buffers = sum(value.numel() for value in module.buffers())
    at_clients = sum(value.numel() for name, value in module.named_parameters() if name in personal)
    return FrozenPart(digest.hexdigest(), every - trained, trained, file, buffers, features, at_clients)


def whole_model(module: nn.Module, weights: Tensor) -> dict[str, Tensor]:
    """All tensors of a model by the names of `module.state_dict`, tied ones under each of theirs.

    Args:
        module: The model, of which the frozen part is read.
        weights: The flat vector of its trained weights, shape (parameters,).
    """
    trained = list(trained_parameters(module).values())
    parts = weights.split([value.numel() for value in trained])
    values = {id(value): part.view_as(value) for part, value in zip(parts, trained, strict=True)}
    state = module.state_dict(keep_vars=True)  # the tensors themselves
    return {
        name: values.get(id(value), value).detach().contiguous().clone()
        for name, value in state.items()
        if isinstance(value, Tensor)
    }


@torch.no_grad()
def copy_frozen(values: Mapping[str, Tensor], module: nn.Module) -> None:
    """Gives a model the frozen values of another (`frozen_tensors`)."""
    for name, value in frozen_tensors(module).items():
        value.copy_(values[name])


def split_frozen(module: nn.Module) -> tuple[nn.Sequential | None, nn.Module]:
    """Splits a chain of layers before the first one with trained parameters.

    Returns:
        The frozen encoder of records, None where the model does not begin with one; and the rest of the
        model, whose trained parameters are those of the model in the same order.
    """
    layers = _layers(module)
    first = next((place for place, layer in enumerate(layers) if trained_parameters(layer)), 0)
    if not any(frozen_tensors(layer) for layer in layers[:first]):
        return None, module
    return nn.Sequential(*layers[:first]), nn.Sequential(*layers[first:])


def _layers(module: nn.Module) -> list[nn.Module]:
    """The layers of a chain, and of the chains in it that are nothing else; another module is one layer."""
    if type(module) is not nn.Sequential or _has_more(module):
        return [module]
    return list(chain.from_iterable(map(_layers, module)))


def _has_more(module: nn.Sequential) -> bool:
    """Whether a chain has hooks, or parameters or buffers besides its layers', which no part would have."""
    tensors = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    hooks = (value for key, value in vars(module).items() if key.endswith("_hooks"))
    return bool(tensors) or any(hooks)
