"""Loads a scenario file of any kind: training, attacks, statistics or private ERM."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedprivacy.scenario import kinds, reading
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.arms import ARM
from fedprivacy.scenario.attack.sections import ATTACK, GAME
from fedprivacy.scenario.bounds import check_text
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.erm import sections as fitting
from fedprivacy.scenario.kinds import HEAD, Kind
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics import sections as asking
from fedprivacy.scenario.statistics.scenario import QUERY
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.sections import TUNE

AnyScenario = Scenario | Statistics | ErmScenario  # an AttackScenario is a Scenario


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
    by_section: dict[str, type[AnyScenario]] = {
        "queries": Statistics,
        "approaches": ErmScenario,
        "attacks": AttackScenario,
        "game": AttackScenario,
        "arms": AttackScenario,
        "tune": TuneScenario,
    }
    try:
        check_text(text)
        tables = tomllib.loads(text)
    except (ValueError, RecursionError):  # which the reader explains
        tables = {}
    return next((by_section[section] for section in by_section if section in tables), Scenario)


def sections_of(scenario: AnyScenario) -> dict[tuple[str, ...], Kind]:
    """The place of each section -> its classes, in the order of a file; the head is ()."""
    sections: dict[tuple[str, ...], Kind] = {(): HEAD}
    if isinstance(scenario, Scenario):
        sections |= {(name,): kind for name, kind in kinds.KINDS.items()}
        if isinstance(scenario, AttackScenario):
            del sections[("compare",)]  # it is replayed, not compared
            sections[("game",)] = GAME
            sections |= {("attacks", name): ATTACK for name in scenario.attacks}
            sections |= {("arms", name): ARM for name in scenario.arms}
        if isinstance(scenario, TuneScenario):
            del sections[("compare",)]  # it is tuned, not compared
            sections[("tune",)] = TUNE
        return sections
    if isinstance(scenario, ErmScenario):
        sections |= {(name,): kind for name, kind in fitting.KINDS.items() if name in ("data", "objective")}
        sections |= {("approaches", name): fitting.APPROACH for name in scenario.approaches}
        return sections | {(name,): fitting.KINDS[name] for name in ("privacy", "federation", "study")}
    (data, kind), *others = asking.KINDS.items()
    sections[data,] = kind
    sections |= {("queries", name): QUERY for name in scenario.queries}
    return sections | {(name,): kind for name, kind in others}
