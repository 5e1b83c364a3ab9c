"""The candidates of a tuning scenario: every combination of the values of its grid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from fedprivacy.errors import KeyPath
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import changes
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.tune.sections import Grid

Settings = dict[str, Any]  # "section.key" -> value


def combinations(grid: Grid) -> list[Settings]:
    """Returns every combination of the grid's values, the last key varying fastest."""
    keys = [(f"{section}.{key}", values) for section, of in grid.items() for key, values in of.items()]
    names = [name for name, _ in keys]
    return [
        dict(zip(names, values_chosen, strict=True))
        for values_chosen in itertools.product(*(values for _, values in keys))
    ]


def with_settings(tables: Tables, settings: Settings, seed: int) -> Tables:
    """Returns the tables of a training scenario with the settings of one candidate, and a seed."""
    base = {key: value for key, value in tables.items() if key not in ("compare", "tune")}
    laid: dict[KeyPath, Any] = {tuple(key.split(".", 1)): value for key, value in settings.items()}
    return changes.lay(base, {**laid, ("seed",): seed})


def words_of(settings: Mapping[str, Any]) -> str:
    """Settings as a person types them.

    >>> words_of({"server.rounds": 10, "server.learning_rate": 0.1})
    'server.rounds = 10, server.learning_rate = 0.1'
    """
    return ", ".join(f"{key} = {literal(value)}" for key, value in settings.items())
