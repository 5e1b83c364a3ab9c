"""The tree of errors that a user can meet, with their exit codes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import clients
import fedprivacy
import scenarios
import server
from fedprivacy.errors import FedPrivacyError
from generators.text import code, plain, summary


def markdown() -> str:
    """Returns a nested list: each error below the one that it is a kind of."""
    for package in (fedprivacy, clients, server, scenarios):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)  # defines the errors that live beside their feature
    return "\n".join(_tree(FedPrivacyError, 0))


def _tree(error: type[FedPrivacyError], depth: int) -> Iterator[str]:
    public = "" if error.__name__.startswith("_") else error.__name__
    if public:
        where = f"{error.__module__}.{public}"
        text = plain(summary(error))
        yield f"{'  ' * depth}- {code(where)}, exit code {error.exit_code}: {text}"
    for kind in sorted(error.__subclasses__(), key=lambda each: each.__name__):
        yield from _tree(kind, depth + bool(public))
