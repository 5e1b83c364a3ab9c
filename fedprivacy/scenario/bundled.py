"""The scenarios of a Flower run: that of its run config, as one string, and those on the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import fedprivacy
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario, load, loads
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario

Pinned = Scenario | Statistics  # which a node holds itself

# Kind -> why Flower's own command does not run it.
NOT_BY_FLOWER: Mapping[str, str] = {
    AttackScenario.kind: "has attacks, which `fedprivacy replay` runs, and not `flwr run`.",
    TuneScenario.kind: "has a [tune], which `fedprivacy tune` does, and not `flwr run`.",
}
# Kind -> why no node holds such a scenario itself.
NOT_PINNED: Mapping[str, str] = {
    # Its records are those that every process makes or reads whole, and its releases many of the same.
    ErmScenario.kind: "fits private estimates, a study of known records, which no node holds as its own.",
}


def scenario_of_app(value: str) -> AnyScenario:
    """The scenario of a Flower run config: TOML text, or a file's path inside the app bundle.

    Raises:
        ScenarioError: if the text or the file is not a scenario.
        InputError: if it has attacks, which would be left out without a word, or a choice of settings.
    """
    return _allowed(_read(value), "run config: scenario", NOT_BY_FLOWER)


def own_scenario(text: str, named: str = "node config: scenario") -> Pinned:
    """The scenario that a node was started with.

    Args:
        text: TOML.
        named: Its name in messages.

    Raises:
        ScenarioError: if the text is not a scenario.
        InputError: if it has attacks, or fits estimates.
    """
    scenario = _allowed(loads(text, named), named, {**NOT_BY_FLOWER, **NOT_PINNED})
    assert isinstance(scenario, Pinned)
    return scenario


def _allowed(scenario: AnyScenario, named: str, refused: Mapping[str, str]) -> AnyScenario:
    if scenario.kind in refused:
        raise InputError(f"{named}: {refused[scenario.kind]}")
    return scenario


def _read(value: str) -> AnyScenario:
    if "=" in value:
        return loads(value, "run config: scenario")
    return load(Path(fedprivacy.__file__).parents[1] / value)


def code_allowed(run_config: Mapping[str, object]) -> bool:
    """Whether the run config lets its scenario run code: allow-code=true, and nothing else, does."""
    return run_config.get("allow-code", False) is True
