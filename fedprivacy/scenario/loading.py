"""A scenario file of either kind: one that trains a model, or one that asks for statistics."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedprivacy.scenario import reading
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics


def load(source: str | Path, overrides: Sequence[str] = ()) -> Scenario | Statistics:
    """Reads a scenario file; one with `[queries.NAME]` asks for statistics.

    Args:
        source: The path of a TOML file.
        overrides: `a.b=value` settings, laid over the file (`Scenario.read`).

    Raises:
        ScenarioError: With every mistake of the file and the overrides.
    """
    return loads(reading.read_text(source), str(source), overrides)


def loads(text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> Scenario | Statistics:
    """Reads the text of a scenario file; see `load`."""
    kind = Statistics if asks(text) else Scenario
    return kind.from_text(text, file, overrides)


def asks(text: str) -> bool:
    """Whether a text is that of a statistics scenario; what is not TOML is not."""
    try:
        return "queries" in tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
