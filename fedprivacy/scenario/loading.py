"""The table of all kinds of scenario, and how a file of any kind is read.

Other rooms have their part of a kind in tables by the kind's name, which CONTRIBUTING.md lists;
`tests/scenarios/cli/test_kind_registry.py` checks that each table has every kind.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedprivacy.scenario import reading
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.bounds import check_text
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario

AnyScenario = Scenario | Statistics | ErmScenario  # an AttackScenario and a TuneScenario are a Scenario

# Name of a kind -> its class. The first whose sections a file has is the file's kind; a training has none.
SCENARIOS: Mapping[str, type[AnyScenario]] = {
    kind.kind: kind for kind in (Statistics, ErmScenario, AttackScenario, TuneScenario, Scenario)
}


def load(source: str | Path, overrides: Sequence[str] = ()) -> AnyScenario:
    """Reads a scenario file: `[queries.NAME]` makes statistics, `[approaches.NAME]` estimates.

    `[attacks.NAME]` attacks a training, `[tune]` chooses its settings, and any other scenario trains.

    Args:
        source: The path of a TOML file.
        overrides: `a.b=value` settings, laid over the file (`Scenario.read`).

    Raises:
        ScenarioError: With every mistake of the file and the overrides.
    """
    return loads(reading.read_text(source), str(source), overrides)


def loads(text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> AnyScenario:
    """Reads the text of a scenario file; see `load`."""
    return kind_of(text).from_text(text, file, overrides)


def kind_of(text: str) -> type[AnyScenario]:
    """Returns which kind of scenario a text is, by its sections; a training where it cannot be parsed."""
    try:
        check_text(text)
        tables = tomllib.loads(text)
    except (ValueError, RecursionError):  # which the reader explains
        tables = {}
    return next((kind for kind in SCENARIOS.values() if tables.keys() & set(kind.revealed_by)), Scenario)
