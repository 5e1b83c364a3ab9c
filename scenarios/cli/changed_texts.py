"""Keeps the texts of a scenario true where keys were changed on the command line.

A note on tuning names the changed keys. So does a description, which is written anew from the settings where
a key that it may speak of has changed: a page must not name other data than those that ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fedprivacy.scenario import Scenario
from fedprivacy.scenario.changes import parse_overrides
from fedprivacy.scenario.loading import AnyScenario

# Neither the description of a scenario nor the choice of its settings depends on these.
_INCIDENTAL = re.compile(
    r"(name|description|duration|tuning|seed|evaluation|federation"
    r"|compare\.(seeds|epsilons|trusts|mechanisms|repeats)|study\.(epsilons|records|repeats))(\.|$)"
)

# What a description speaks of: who has which data, what is made of it, and who is protected from whom.
_DESCRIBED = re.compile(
    r"(data|model|queries|approaches|objective|attacks|game|arms|tune)(\.|$)(?!seed$)"
    r"|privacy\.(trust|unit|adjacency)$|privacy$"
)


def with_changes_noted(scenario: AnyScenario, overrides: list[str], command: str) -> AnyScenario:
    """Returns a scenario whose texts name the keys that overrides changed, and hold for it.

    Args:
        scenario: With the overrides applied.
        overrides: As of `--set`.
        command: The command that will run it.
    """
    changes, _ = parse_overrides(overrides)
    keys = (key for change in changes for key in _keys(".".join(map(str, change.path)), change.value))
    return with_keys_noted(scenario, keys, command)


def with_keys_noted(scenario: AnyScenario, changed_keys: Iterable[str], command: str) -> AnyScenario:
    """Returns a scenario whose texts name changed keys, and hold for it.

    Args:
        scenario: With the changes.
        changed_keys: As "server.rounds".
        command: The command that will run it.
    """
    keys = dict.fromkeys(changed_keys)
    stopping = isinstance(scenario, Scenario) and scenario.server.patience is not None
    changed = ", ".join(
        key for key in keys if not _INCIDENTAL.match(key) or (stopping and key == "evaluation.every")
    )
    if not changed:
        return scenario
    described = scenario.description
    if any(_DESCRIBED.match(key) for key in keys):
        described = scenario.summary(compared=command == "compare")
    texts = {
        "tuning": (scenario.tuning, f"Written before these were changed: {changed}."),
        "description": (described, f"(Changed here: {changed}.)"),
    }
    update = {
        key: f"{text.rstrip()} {note}" for key, (text, note) in texts.items() if text and key not in keys
    }
    return scenario.model_copy(update=update)


def _keys(path: str, value: Any) -> Iterator[str]:
    """Returns the keys that an override sets, those of a table each alone."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, item in value.items():
        yield from _keys(f"{path}.{key}", item)
