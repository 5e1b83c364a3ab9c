"""Weights of a model from a `.safetensors` file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from fedprivacy.errors import InputError
from fedprivacy.io.tensor_file import read_tensor_file
from fedprivacy.models.from_code import reason
from fedprivacy.models.scattering import Scattering

_SHOWN = 10  # names in a message


@dataclass(frozen=True)
class WeightsFile:
    """The tensors of a file that a scenario names.

    Args:
        path: As the scenario has it.
        tensors: By name.
        digest: Of the file's bytes.
    """

    path: str
    tensors: Mapping[str, Tensor]
    digest: str

    @classmethod
    def read(cls, path: str) -> WeightsFile:
        """Reads a file, relative to the current folder.

        Raises:
            InputError: it cannot be read, or is damaged, or holds no tensors or numbers that are not finite.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            content = read_tensor_file(Path(path).expanduser())
            tensors = load(content)
        except FileNotFoundError as error:
            raise _wrong(path, f"there is no such file; paths start at {os.getcwd()}") from error
        except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
            raise _wrong(path, f"not a whole .safetensors file ({reason(error)})") from error
        if not tensors:
            raise _wrong(path, "it holds no tensors")
        for name, value in tensors.items():
            if value.is_floating_point() and not torch.isfinite(value.float()).all():
                raise _wrong(path, f"tensor {name} has numbers that are not finite")
        return cls(path, tensors, hashlib.blake2b(content, digest_size=16).hexdigest())

    @torch.no_grad()
    def load_into(self, module: nn.Module) -> None:
        """Replaces parameters and buffers of a model; those that the file does not have stay as they are.

        Args:
            module: The model, whose trained parameters are chosen. Tied ones may be under any of their names.

        Raises:
            InputError: a tensor of the file has no place of its name, shape and kind of numbers in the model,
                or two of one place differ, or a frozen parameter is not in the file, or it has other values
                than a formula of the model.
        """
        parameters = dict(module.named_parameters(remove_duplicate=False))
        places = parameters | dict(module.named_buffers(remove_duplicate=False))
        unknown = [name for name in self.tensors if name not in places]
        if unknown:
            lacking = f"the model has no parameter {', '.join(unknown[:_SHOWN])}"
            raise _wrong(self.path, f"{lacking}. It has: {', '.join(list(places)[:_SHOWN])}")
        layers = [layer for layer in module.modules() if isinstance(layer, Scattering)]
        of_formulas = {id(value) for layer in layers for value in layer.buffers()}
        read: dict[int, str] = {}
        for name, value in self.tensors.items():
            place = places[name]
            first = read.setdefault(id(place), name)
            if value is not (other := self.tensors[first]) and not (
                value.dtype == other.dtype and torch.equal(value, other)
            ):
                raise _wrong(self.path, f"tensors {first} and {name} differ, and the model has one for both")
            if place.shape != value.shape or place.is_floating_point() != value.is_floating_point():
                raise _wrong(
                    self.path,
                    f"tensor {name} is {_kind(value)}, and the model's is {_kind(place)}. Remove it from the "
                    "file, or change the model",
                )
            if id(place) in of_formulas and not torch.equal(place, value.to(place.dtype)):
                raise _wrong(
                    self.path,
                    f"tensor {name} differs from the values of its formula, which model.features names. "
                    "Remove it from the file",
                )
            place.copy_(value)
        for name, value in parameters.items():
            if not value.requires_grad and id(value) not in read:
                raise _wrong(
                    self.path,
                    f"it lacks {name}, which is frozen, so that training never gives it a value. Add it to "
                    "the file, or train it",
                )


def _kind(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"


def _wrong(path: str, what: str) -> InputError:
    return InputError(f'model.weights = "{path}": {what}.')
