"""Notes in the texts of a scenario which keys were changed on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fedprivacy.scenario import Scenario
from fedprivacy.scenario.changes import parse_overrides
from fedprivacy.scenario.loading import AnyScenario

# Neither the description of a scenario nor the choice of its settings depends on these.
_INCIDENTAL = re.compile(
    r"(name|description|duration|tuning|seed|evaluation|federation|data\.path"
    r"|compare\.(seeds|epsilons|trusts|mechanisms|repeats)|study\.(epsilons|records|repeats))(\.|$)"
)


def with_changes_noted(scenario: AnyScenario, overrides: list[str]) -> AnyScenario:
    """Returns a scenario whose texts name the keys that overrides changed.

    Args:
        scenario: With the overrides applied.
        overrides: As of `--set`.
    """
    changes, _ = parse_overrides(overrides)
    keys = dict.fromkeys(
        key for change in changes for key in _keys(".".join(map(str, change.path)), change.value)
    )
    stopping = isinstance(scenario, Scenario) and scenario.server.patience is not None
    changed = ", ".join(
        key for key in keys if not _INCIDENTAL.match(key) or (stopping and key == "evaluation.every")
    )
    if not changed:
        return scenario
    notes = {
        "tuning": f"Written before these were changed: {changed}.",
        "description": f"(Changed here: {changed}.)",
    }
    texts = {
        key: f"{getattr(scenario, key).rstrip()} {note}"
        for key, note in notes.items()
        if getattr(scenario, key) and key not in keys
    }
    return scenario.model_copy(update=texts)


def _keys(path: str, value: Any) -> Iterator[str]:
    """Returns the keys that an override sets, those of a table each alone."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, item in value.items():
        yield from _keys(f"{path}.{key}", item)
