"""Every registered mechanism, with its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from fedprivacy.mechanisms.registry import REGISTRY, mechanism_class
from generators.text import code, plain, summary


def markdown() -> str:
    """Returns a heading for each mechanism, with its description and its parameters."""
    return "\n".join(line for name in REGISTRY for line in _mechanism(name, mechanism_class(name)))


def _mechanism(name: str, kind: type) -> Iterator[str]:
    title = str(getattr(kind, "title", name))
    yield from (f"## {title[:1].upper()}{title[1:]}", "")
    yield from (f"Name: {code(name)}. Class: {code(f'{kind.__module__}.{kind.__qualname__}')}.", "")
    yield from (plain(summary(kind)), "")
    given = [field.name for field in dataclasses.fields(kind) if field.init]
    if parameters := [code(name) for name in given if not name.startswith("_")]:
        yield from (f"Parameters: {', '.join(parameters)}.", "")
