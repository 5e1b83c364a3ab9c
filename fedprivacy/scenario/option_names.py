"""Finds the keys of a scenario that a user typed as an option of the command: `--epsilon 4`."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.sections import GAME
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.erm import sections as erm
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics import sections as statistics
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.sections import TUNE


def settings_named(option: str, value: str, kind: type[AnyScenario] = Scenario) -> list[str]:
    """Returns the settings `a.b=value` that an option may mean.

    Args:
        option: As it was typed, such as `--epsilon`, `--learning-rate` or `--privacy.epsilon`.
        value: As it was typed.
        kind: The kind of the scenario: only its keys are proposed.

    >>> settings_named("--epsilon", "4")
    ['privacy.epsilon=4']
    >>> settings_named("--epsilon", "4", ErmScenario)
    ['study.epsilons=[4]']
    """
    name = option.lstrip("-").replace("-", "_")
    keys = list(_keys(kind))
    if named := [key for key in keys if name in (key, key.rpartition(".")[2])]:
        return [f"{key}={value}" for key in named]
    return [f"{key}=[{value}]" for key in keys if f"{name}s" in (key, key.rpartition(".")[2])]


def _keys(kind: type[AnyScenario]) -> Iterator[str]:
    yield from HEAD.keys()
    for section, keys in _sections(kind).items():
        yield from (f"{section}.{key}" for key in keys.keys())  # noqa: SIM118


def _sections(kind: type[AnyScenario]) -> dict[str, Kind]:
    """The sections of a kind of scenario that are there once."""
    if issubclass(kind, Statistics):
        return statistics.KINDS
    if issubclass(kind, ErmScenario):
        return erm.KINDS
    sections = dict(KINDS)
    if issubclass(kind, AttackScenario | TuneScenario):
        del sections["compare"]
        sections |= {"game": GAME} if issubclass(kind, AttackScenario) else {"tune": TUNE}
    return sections
