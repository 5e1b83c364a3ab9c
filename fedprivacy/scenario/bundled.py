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

Runnable = Scenario | Statistics | ErmScenario  # by `flwr run`


def scenario_of_app(value: str) -> Runnable:
    """The scenario of a Flower run config: TOML text, or a file's path inside the app bundle.

    Raises:
        ScenarioError: if the text or the file is not a scenario.
        InputError: if it has attacks, which would be left out without a word, or a choice of settings.
    """
    return _without_attacks(_read(value), "run config: scenario")


def own_scenario(text: str, named: str = "node config: scenario") -> Scenario | Statistics:
    """The scenario that a node was started with.

    Args:
        text: TOML.
        named: Its name in messages.

    Raises:
        ScenarioError: if the text is not a scenario.
        InputError: if it has attacks, or fits estimates.
    """
    scenario = _without_attacks(loads(text, named), named)
    if isinstance(scenario, ErmScenario):
        # Its records are those that every process makes or reads whole, and its releases many of the same.
        raise InputError(
            f"{named}: fits private estimates, a study of known records, which no node holds as its own."
        )
    return scenario


def _without_attacks(scenario: AnyScenario, named: str) -> Runnable:
    if isinstance(scenario, AttackScenario):
        raise InputError(f"{named}: has attacks, which `fedprivacy replay` plays, and not `flwr run`.")
    if isinstance(scenario, TuneScenario):
        raise InputError(f"{named}: has a [tune], which `fedprivacy tune` does, and not `flwr run`.")
    return scenario


def _read(value: str) -> AnyScenario:
    if "=" in value:
        return loads(value, "run config: scenario")
    return load(Path(fedprivacy.__file__).parents[1] / value)


def code_allowed(run_config: Mapping[str, object]) -> bool:
    """Whether the run config lets its scenario run code: allow-code=true, and nothing else, does."""
    return run_config.get("allow-code", False) is True
