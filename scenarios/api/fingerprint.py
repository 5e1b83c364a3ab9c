"""Fingerprints models that are Python objects, by their code and their values.

Two models under one name would share their noise, which could then be solved for. Code counts as compiled, so
two functions on one line differ, comments do not matter, and no source file is needed. What cannot be seen
into counts as new each time: that costs repeatability, and never privacy.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import importlib
import re
import secrets
import sys
import sysconfig
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

_INSTALLED = {"site-packages", "dist-packages"}
_PYTHON = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
_HERE = [Path(__file__).parents[2] / name for name in ("fedprivacy", "scenarios", "server", "clients")]
_INTERNAL = re.compile(r"_(parameters|buffers|modules|.*_hooks.*|non_persistent_buffers_set|is_full_.*)$")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_DESCRIPTORS = MemberDescriptorType | GetSetDescriptorType | MethodDescriptorType | WrapperDescriptorType
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_OF_CLASSES = re.compile(
    r"__(dict|weakref|doc|module|firstlineno|static_attributes|pydantic_.*)__$|_abc_impl$"
)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: unset for types that are written in C
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_BY_TEXT = {"globals", "eval", "exec", "__import__", "import_module"}  # what these reach is not in the code
_MOST = 1_000_000  # objects
_DEEPEST = 8  # sets within sets


def fingerprint(model: Any) -> str:
    """Returns a digest of a model: its weights and the code of its layers, or the code of its function.

    It follows closures, defaults, values of every kind, and the global names and modules that the caller's
    own code uses. Installed packages count by name alone.

    Args:
        model: An `nn.Module`, a class, a function or another object that can be called.
    """
    return _Walk().of(model)


class _Walk:
    """Adds each object that a model leads to once, in an order that depends on the model alone."""

    def __init__(self, depth: int = 0) -> None:
        self._digest = hashlib.blake2b(digest_size=8)
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []  # an id holds only while its object lives
        self._depth = depth

    def of(self, value: Any) -> str:
        waiting = [value]
        while waiting:
            if len(self._places) > _MOST or self._depth > _DEEPEST:
                self._put_new()
                break
            waiting += reversed(list(self._parts(waiting.pop())))
        return self._digest.hexdigest()

    def _put(self, kind: str, content: bytes | str = b"") -> None:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        self._digest.update(f"/{kind}:{len(data)}:".encode() + data)

    def _put_new(self) -> None:
        """Adds what no other object has, and not this one at another time either: its inside may change."""
        self._put("new", secrets.token_bytes(16))

    def _parts(self, value: Any) -> Iterator[Any]:
        """Adds what a value is, and returns its parts."""
        if type(value) in _PLAIN:
            self._put(type(value).__name__, repr(value))
            return
        # Constants are shared or not as the compiler likes, so only what can be in a circle is counted once.
        if type(value) not in (tuple, frozenset, CodeType) and id(value) in self._places:
            self._put("again", str(self._places[id(value)]))
            return
        self._places[id(value)] = len(self._places)
        self._alive.append(value)
        if type(value) in (list, tuple):
            self._put("list", str(len(value)))
            yield from value
        elif type(value) in (dict, MappingProxyType):
            self._put("dict", str(len(value)))
            for item in value.items():
                yield from item
        elif type(value) in (set, frozenset):  # their order differs from process to process
            self._put("set", " ".join(sorted(_Walk(self._depth + 1).of(item) for item in value)))
        elif isinstance(value, CodeType):
            self._put("code", value.co_code)
            yield from (value.co_consts, value.co_names, value.co_varnames, value.co_freevars)
            yield from (value.co_cellvars, value.co_exceptiontable)
            yield from (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
        elif isinstance(value, FunctionType):
            self._put("function")
            yield from self._function(value)
        elif isinstance(value, MethodType):
            self._put("method")
            yield from (value.__func__, value.__self__)
        elif isinstance(value, BuiltinFunctionType | MethodWrapperType):
            self._put("builtin", f"{getattr(value, '__module__', None)}.{value.__qualname__}")
            if not _is_at_its_name(value) and not isinstance(value.__self__, ModuleType):
                yield value.__self__
        elif isinstance(value, _DESCRIPTORS):
            self._put("descriptor", value.__name__)
            yield value.__objclass__
        elif isinstance(value, staticmethod | classmethod):
            self._put(type(value).__name__)
            yield value.__func__
        elif isinstance(value, property):
            self._put("property")
            yield from (value.fget, value.fset, value.fdel)
        elif isinstance(value, ModuleType):
            self._put("module", value.__name__)
            if _is_callers_module(value):
                yield {key: item for key, item in sorted(vars(value).items()) if key[:2] != "__"}
        elif isinstance(value, type):
            yield from self._class(value)
        else:
            self._put("object")
            yield type(value)
            yield from self._object(value)

    def _function(self, function: FunctionType) -> Iterator[Any]:
        callers = _is_callers(function)
        if not callers and _is_at_its_name(function):
            yield f"{function.__module__}.{function.__qualname__}"
            return
        yield from (function.__code__, function.__defaults__, function.__kwdefaults__, vars(function))
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not bound yet
                yield None
        known = function.__globals__
        if callers or _is_callers_name(known.get("__name__")):
            names = set(_names(function.__code__))
            if names & _BY_TEXT:
                self._put_new()
            yield from ([name, known[name]] for name in sorted(names & set(known)))
            try:
                yield list(_imported(function.__code__, known))
            except Exception:  # of a module that does not load, say
                self._put_new()

    def _class(self, cls: type) -> Iterator[Any]:
        self._put("class", f"{cls.__module__}.{cls.__qualname__}")
        if cls.__flags__ & _HEAP_TYPE and (_is_callers(cls) or not _is_at_its_name(cls)):
            yield type(cls)
            yield from cls.__bases__
            for name, item in sorted(vars(cls).items()):
                if not _OF_CLASSES.match(name):
                    yield from (name, item)

    def _object(self, value: Any) -> Iterator[Any]:
        if isinstance(value, weakref.ref):
            yield value()
            return
        if isinstance(value, _LOCKS):
            return
        if hasattr(value, "detach") and hasattr(value, "untyped_storage"):  # a tensor, of whatever type
            yield bool(value.requires_grad)
            try:
                yield _content_of_tensor(value)
            except (RuntimeError, TypeError, NotImplementedError):  # sparse, on no device, and so on
                yield from self._reduced(value)
        elif hasattr(value, "named_modules") and hasattr(value, "state_dict"):
            yield re.sub(r" at 0x[0-9a-f]+", "", str(value))
            state = value.state_dict()
            yield from (list(state), list(state.values()))
            yield [[name, each] for name, each in value.named_buffers() if name not in state]
            yield [[name, bool(each.requires_grad)] for name, each in value.named_parameters()]
            for name, layer in value.named_modules():
                values = {key: item for key, item in vars(layer).items() if not _INTERNAL.match(key)}
                hooks = [list(item.values()) for key, item in vars(layer).items()
                         if "_hooks" in key and isinstance(item, dict)]  # fmt: skip
                yield from (name, type(layer), values, hooks)
        elif hasattr(value, "tobytes") and hasattr(value, "dtype") and not _holds_objects(value):
            yield from (str(value.dtype), tuple(getattr(value, "shape", ())), value.tobytes())
        else:
            yield from self._reduced(value)

    def _reduced(self, value: Any) -> Iterator[Any]:
        """Returns what copies and pickles of an object are made of, and its attributes."""
        attributes = getattr(value, "__dict__", None)
        slots = {
            name: getattr(value, name)
            for cls in type(value).__mro__
            for name, item in sorted(vars(cls).items())
            if isinstance(item, MemberDescriptorType) and _is_callers(cls) and hasattr(value, name)
        }
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced = reduce(value) if reduce else value.__reduce_ex__(4)
            if isinstance(reduced, tuple):
                reduced = [
                    list(part) if at in (3, 4) and part is not None else part
                    for at, part in enumerate(reduced)
                ]
            elif not _is_at_its_name(value, reduced):
                raise TypeError(reduced)
        except Exception:  # of any class: what cannot be copied cannot be seen into
            if type(attributes) is dict and "__wrapped__" in attributes:
                reduced = None  # a cached function, by what it caches
            elif (_is_callers(type(value)) and (attributes or slots)) and not _built_on_c(type(value)):
                reduced = None
            else:
                self._put_new()
                return
        yield reduced
        yield slots
        if type(attributes) is dict and (_is_callers(type(value)) or not isinstance(reduced, list)):
            yield attributes  # the caller's classes may leave some out of their copies


def _content_of_tensor(value: Any) -> tuple[Any, ...]:
    import torch

    flat = value.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    content = flat.view(torch.uint8).numpy().tobytes()
    return (str(value.dtype), str(value.device), tuple(value.shape), content)


def _holds_objects(array: Any) -> bool:
    """Whether the bytes of an array are no content: they are addresses, or there is a mask beside them."""
    return bool(getattr(array.dtype, "hasobject", True)) or hasattr(array, "mask")


def _built_on_c(cls: type) -> bool:
    """Whether objects of a class hold something that is no attribute."""
    return any(not base.__flags__ & _HEAP_TYPE for base in cls.__mro__[:-1])


def _is_at_its_name(value: Any, name: str | None = None) -> bool:
    """Whether an object is what its module has under its name."""
    here: Any = sys.modules.get(str(getattr(value, "__module__", None)))
    if here is None:
        homes = (type(value).__module__, type(value).__module__.partition(".")[0])
        here = next((sys.modules[home] for home in homes if home in sys.modules), None)
    for part in str(name or getattr(value, "__qualname__", "")).split("."):
        here = getattr(here, part, None)
    return here is value


def _names(code: CodeType) -> Iterator[str]:
    """Returns the global names that a function and those within it may use."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname in _LOADS)
    if "import_module" in code.co_names:
        yield "import_module"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _imported(code: CodeType, known: dict[str, Any]) -> Iterator[Any]:
    """Returns the modules that a function and those within it import when they are called."""
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            names, level = steps[at - 1].argval or (), steps[at - 2].argval
            name = "." * level + step.argval
            module = importlib.import_module(name, known.get("__package__"))
            top = sys.modules.get(module.__name__.partition(".")[0])
            yield from (module, top, [getattr(module, each, None) for each in names])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported(constant, known)


def _is_callers(value: Any) -> bool:
    """Whether a function or class is the caller's own code, and not of an installed package."""
    return _is_callers_name(getattr(value, "__module__", None))


def _is_callers_name(name: Any) -> bool:
    if not isinstance(name, str) or name == "__main__":
        return True
    module = sys.modules.get(name)
    return module is None or _is_callers_module(module)


def _is_callers_module(module: ModuleType) -> bool:
    if module.__name__ == "__main__":  # whatever has started it
        return True
    if module.__name__ in sys.builtin_module_names:
        return False
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if file is None:
        return getattr(getattr(module, "__spec__", None), "origin", None) not in ("built-in", "frozen")
    path = Path(file)
    return not _INSTALLED & set(path.parts) and not any(
        path.is_relative_to(each) for each in [*_PYTHON, *_HERE]
    )
