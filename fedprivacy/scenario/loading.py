"""A scenario file of any kind: one that trains a model, attacks that, or asks for statistics."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedprivacy.scenario import reading
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics

AnyScenario = Scenario | AttackScenario | Statistics


def load(source: str | Path, overrides: Sequence[str] = ()) -> AnyScenario:
    """Reads a scenario file: `[queries.NAME]` asks for statistics, `[attacks.NAME]` attacks a training.

    Args:
        source: The path of a TOML file.
        overrides: `a.b=value` settings, laid over the file (`Scenario.read`).

    Raises:
        ScenarioError: With every mistake of the file and the overrides.
    """
    return loads(reading.read_text(source), str(source), overrides)


def loads(text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> AnyScenario:
    """Reads the text of a scenario file; see `load`."""
    kinds: dict[str, type[AnyScenario]] = {"queries": Statistics, "attacks": AttackScenario}
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError):  # which the reader explains
        tables = {}
    kind = next((kinds[section] for section in kinds if section in tables), Scenario)
    return kind.from_text(text, file, overrides)
