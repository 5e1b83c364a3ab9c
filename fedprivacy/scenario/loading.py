"""A scenario file of either kind: one that trains a model, or one that asks for statistics."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedprivacy.scenario import kinds, reading
from fedprivacy.scenario.kinds import HEAD, Kind
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics import sections as asking
from fedprivacy.scenario.statistics.scenario import QUERY


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


def sections_of(scenario: Scenario | Statistics) -> dict[tuple[str, ...], Kind]:
    """Where each section of a scenario stands -> what it may be, in the order of a file; the head is ()."""
    if isinstance(scenario, Scenario):
        return {(): HEAD, **{(name,): kind for name, kind in kinds.KINDS.items()}}
    (data, kind), *others = asking.KINDS.items()
    found: dict[tuple[str, ...], Kind] = {(): HEAD, (data,): kind}
    found |= {("queries", name): QUERY for name in scenario.queries}
    return found | {(name,): kind for name, kind in others}
