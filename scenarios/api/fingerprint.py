"""Fingerprints models that are Python objects, by their code and their values.

Two models under one name would share their noise, which could then be solved for. Code counts as compiled, so
two functions on one line differ, comments do not matter, and no source file is needed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_INSTALLED = {"site-packages", "dist-packages"}
_INTERNAL = re.compile(r"_(parameters|buffers|modules|.*_hooks.*|non_persistent_buffers_set|is_full_.*)$")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))


def fingerprint(model: Any) -> str:
    """Returns a digest of a model: its weights and the code of its layers, or the code of its function.

    It follows closures, defaults, and the global names that the caller's own code uses. Installed packages
    count by name alone.

    Args:
        model: An `nn.Module`, a class, a function or another object that can be called.
    """
    return _Walk().of(model)


class _Walk:
    """Adds each object that a model leads to once, in an order that depends on the model alone."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=8)
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []  # an id holds only while its object lives

    def of(self, value: Any) -> str:
        waiting = [value]
        while waiting:
            waiting += reversed(list(self._parts(waiting.pop())))
        return self._digest.hexdigest()

    def _put(self, kind: str, content: bytes | str = b"") -> None:
        data = content.encode() if isinstance(content, str) else content
        self._digest.update(f"/{kind}:{len(data)}:".encode() + data)

    def _parts(self, value: Any) -> Iterator[Any]:
        """Adds what a value is, and returns its parts."""
        if isinstance(value, _PLAIN):
            self._put(type(value).__name__, repr(value))
            return
        # Constants are shared or not as the compiler likes, so only what can be in a circle is counted once.
        if not isinstance(value, tuple | frozenset | CodeType) and id(value) in self._places:
            self._put("again", str(self._places[id(value)]))
            return
        self._places[id(value)] = len(self._places)
        self._alive.append(value)
        if isinstance(value, list | tuple):
            self._put("list", str(len(value)))
            yield from value
        elif isinstance(value, dict):
            self._put("dict", str(len(value)))
            for item in value.items():
                yield from item
        elif isinstance(value, set | frozenset):  # their order differs from process to process
            self._put("set", " ".join(sorted(_Walk().of(item) for item in value)))
        elif isinstance(value, CodeType):
            self._put("code", value.co_code)
            yield from (value.co_consts, value.co_names, value.co_varnames, value.co_freevars)
            yield from (value.co_argcount, value.co_kwonlyargcount, value.co_flags)
        elif isinstance(value, FunctionType):
            self._put("function")
            yield from self._function(value)
        elif isinstance(value, MethodType):
            self._put("method")
            yield from (value.__func__, value.__self__)
        elif isinstance(value, partial):
            self._put("partial")
            yield from (value.func, value.args, value.keywords)
        elif isinstance(value, staticmethod | classmethod):
            self._put(type(value).__name__)
            yield value.__func__
        elif isinstance(value, property):
            self._put("property")
            yield from (value.fget, value.fset)
        elif isinstance(value, ModuleType):
            self._put("module", value.__name__)
        elif isinstance(value, type):
            yield from self._class(value)
        else:
            yield from self._object(value)

    def _function(self, function: FunctionType) -> Iterator[Any]:
        if not _is_callers(function):
            yield f"{function.__module__}.{function.__qualname__}"
            return
        yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not bound yet
                yield None
        names = sorted(set(_names(function.__code__)) & set(function.__globals__))
        yield from ([name, function.__globals__[name]] for name in names)

    def _class(self, cls: type) -> Iterator[Any]:
        self._put("class", f"{cls.__module__}.{cls.__qualname__}")
        if _is_callers(cls):
            yield from cls.__bases__
            for name, item in sorted(vars(cls).items()):
                if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__"):
                    yield from (name, item)

    def _object(self, value: Any) -> Iterator[Any]:
        self._put("object")
        yield type(value)
        if hasattr(value, "detach") and hasattr(value, "untyped_storage"):  # a tensor, of whatever type
            import torch

            flat = value.detach().cpu().contiguous().reshape(-1)
            yield from (str(value.dtype), tuple(value.shape), flat.view(torch.uint8).numpy().tobytes())
        elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
            yield from (str(value.dtype), tuple(getattr(value, "shape", ())), value.tobytes())
        elif hasattr(value, "named_modules") and hasattr(value, "state_dict"):
            # Hooks too are in vars; where they are functions of the caller they count as code.
            yield re.sub(r" at 0x[0-9a-f]+", "", str(value))
            for name, tensor in value.state_dict().items():
                yield from (name, tensor)
            for name, layer in value.named_modules():
                values = {key: item for key, item in vars(layer).items() if not _INTERNAL.match(key)}
                yield from (name, type(layer), values)
        elif _is_callers(type(value)):
            yield dict(getattr(value, "__dict__", {}))


def _names(code: CodeType) -> Iterator[str]:
    """Returns the global names that a function and those within it may use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_callers(value: Any) -> bool:
    """Whether a function or class is the caller's own code, and not of an installed package."""
    name = getattr(value, "__module__", None)
    if not isinstance(name, str):
        return True
    if name.partition(".")[0] in {*sys.stdlib_module_names, "builtins"}:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or not _INSTALLED & set(Path(file).parts)
