"""Tables within tables as one, each key by its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the path of each value that is no table, and the value.

    >>> dict(flat({"seed": 1, "privacy": {"epsilon": 2.0}}))
    {'seed': 1, 'privacy.epsilon': 2.0}
    """
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value
