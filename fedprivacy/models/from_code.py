"""Models by code: locates the function that a scenario names, calls it, and fingerprints its code."""

from __future__ import annotations

import copy
import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from fedprivacy.errors import InputError
from fedprivacy.io.regular_file import read_regular
from fedprivacy.models.partial_training import content
from fedprivacy.scenario.model import Code, is_object

MAX_SOURCE_BYTES = 2**28  # of a module, which may be compiled code
_INSTALLED = {"site-packages", "dist-packages"}


def wrong(options: Code, what: str, remedy: str = "") -> InputError:
    """An error in the code of a scenario, as its user reads it."""
    return InputError(f'model.factory = "{options.factory}": {what}.{remedy and " " + remedy}')


def reason(error: BaseException) -> str:
    """An error of somebody else's code in one line."""
    text = str(error).strip().split("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def load(options: Code) -> Callable[..., Any]:
    """Imports the function that a scenario names; as with `python -m`, from the current folder first.

    The caller has called `permit` before: importing runs the module.

    Raises:
        InputError: if there is no such module or function, or the import fails.
    """
    name, _, function = options.factory.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise wrong(options, f"its import raises {reason(error)}") from error
        top = sys.modules.get(name.partition(".")[0])
        origin = f"; {top.__name__} is the one in {_folder(top)}" if top is not None else ""
        remedy = f"Start the command where it lies (now: {here}), or install it."
        raise wrong(options, f"there is no module {error.name}{origin}", remedy) from error
    except (Exception, SystemExit) as error:
        raise wrong(options, f"its import raises {reason(error)}") from error
    factory = getattr(module, function, None)
    if not callable(factory):
        known = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        what = f"the module {name} in {_folder(module)} has no function {function}"
        raise wrong(options, what, f"It has: {', '.join(known[:10])}." if known else "")
    return factory


def call(
    factory: Callable[..., Any], options: Code, features: Sequence[int], classes: int, seed: int
) -> nn.Module:
    """The model that a factory makes with torch's generator at a seed.

    Raises:
        InputError: if the factory raises, or returns something else.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = factory(features=tuple(features), classes=classes, **copy.deepcopy(options.options))
        except (Exception, SystemExit) as error:
            arguments = "".join(f", {key}={value!r}" for key, value in options.options.items())
            call = f"features={tuple(features)}, classes={classes}{arguments}"
            what = f"called with {call} it raises {reason(error)}"
            raise wrong(options, what) from error
    if not isinstance(module, nn.Module):
        raise wrong(options, f"it returns {type(module).__name__}, an nn.Module is needed")
    return module


def source_digest(options: Code, module: nn.Module) -> str:
    """Fingerprints a model by code: runs of two models under one name must not share their noise.

    It covers the source files of the factory's module and of the user's own modules that it or the
    layers refer to by their global names, the layers as printed, and the weights. Code that is
    imported within a function, and installed packages, it cannot see. The name of a model that is a
    Python object covers its code; then the layers and all weights are added.

    Args:
        options: The scenario's model section.
        module: The factory's module at seed 0.
    """
    # An object's address in memory changes with every process.
    printed = re.sub(r" at 0x[0-9a-f]+", "", str(module))
    digest = hashlib.blake2b(printed.encode(), digest_size=16)
    if is_object(options):  # no files: those of a program that is under way may have changed
        digest.update(f"/{options.factory}".encode())
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            digest.update(f"/{name}{tuple(tensor.shape)}".encode() + content(tensor))
        return digest.hexdigest()
    named = sys.modules[options.factory.partition(":")[0]]
    homes = {cls.__module__ for layer in module.modules() for cls in type(layer).__mro__}
    layers = [sys.modules[home] for home in homes if home in sys.modules]
    files = {used.__name__: _file(used) for used in _user_modules([named, *layers])}
    for name, file in sorted({**files, named.__name__: _file(named)}.items()):
        source = read_regular(file, MAX_SOURCE_BYTES) if file and file.is_file() else b""
        digest.update(f"/{name}/{len(source)}/".encode() + source)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        digest.update(f"/{name}{tuple(tensor.shape)}".encode() + content(tensor))
    return digest.hexdigest()


def _user_modules(start: Sequence[ModuleType]) -> Iterator[ModuleType]:
    """Yields these modules and all user modules reachable from their globals."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        module = waiting.pop()
        file = _file(module)
        if module.__name__ in seen or file is None or not _is_own(module, file):
            continue
        seen.add(module.__name__)
        yield module
        for value in list(vars(module).values()):
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(home, str) and home in sys.modules:
                waiting.append(sys.modules[home])


def _is_own(module: ModuleType, file: Path) -> bool:
    top = module.__name__.partition(".")[0]
    return top not in sys.stdlib_module_names and not _INSTALLED & set(file.parts)


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def _folder(module: ModuleType) -> str:
    file = _file(module)
    return str(file.parent) if file else "Python itself"
