"""Finds the keys of a scenario that a user typed as an option of the command: `--epsilon 4`."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.scenario.kinds import HEAD
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.scenario import Scenario


def settings_named(option: str, value: str, kind: type[AnyScenario] = Scenario) -> list[str]:
    """Returns the settings `a.b=value` that an option may mean.

    Args:
        option: As it was typed, such as `--epsilon`, `--learning-rate` or `--privacy.epsilon`.
        value: As it was typed.
        kind: The kind of the scenario: only its keys are proposed.

    >>> settings_named("--epsilon", "4")
    ['privacy.epsilon=4']
    >>> from fedprivacy.scenario.erm import ErmScenario
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
    for section, variants in kind.section_kinds.items():
        if section not in kind.named_sections:
            yield from (f"{section}.{key}" for key in variants.keys())  # noqa: SIM118
