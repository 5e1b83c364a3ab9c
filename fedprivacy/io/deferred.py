"""Packages whose own code runs when it is first needed, while their modules can be imported before."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """A package that has not run its `__init__` yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self.__name__}.{name}"
        if find_spec(whole) is not None:
            return import_module(whole)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from here on an ordinary package
        loader = self.__spec__ and self.__spec__.loader
        assert loader, self.__name__
        try:
            loader.exec_module(self)
        except BaseException:
            self.__class__ = _Deferred  # the next name that is read meets the error too
            raise
        return getattr(self, name)


def defer(package: str) -> None:
    """Puts off the code of a package until a name is read that is none of its modules.

    `importlib.util.LazyLoader` cannot: it runs the package as soon as one of its modules is imported.

    Args:
        package: A top-level package. Where it is imported already, or not installed, nothing happens.
    """
    if package in sys.modules:
        return
    spec = find_spec(package)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    module.__class__ = _Deferred
    sys.modules[package] = module
