"""What a user asks for: a scenario with options laid over it, and what its words still hold for."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.base import MAX_SEED
from fedprivacy.scenario.changes import parse_overrides
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.statistics import Statistics
from scenarios.ready import find

# Neither how a scenario was tuned nor what it is about depends on these.
_BESIDE = re.compile(
    r"(name|description|duration|tuning|seed|evaluation|federation|data\.path"
    r"|compare\.(seeds|epsilons|trusts|mechanisms|repeats))(\.|$)"
)


def asked(source: str, overrides: list[str] | None, seed: int | None) -> Scenario | Statistics:
    """The scenario of a ready name or a file with `--set` and `--seed` laid over.

    What the file says of itself and of the choice of its settings was said before they were changed,
    so both then name the keys that were.

    Raises:
        InputError: it is no scenario, or none with these options.
    """
    given = overrides or []
    seeded = [] if seed is None else [f"seed={seed}"]
    scenario = load(find(source), [*given, *seeded])
    settings, _ = parse_overrides(given)
    keys = dict.fromkeys(key for one in settings for key in _keys(".".join(map(str, one.path)), one.value))
    changed = ", ".join(key for key in keys if not _BESIDE.match(key))
    if not changed:
        return scenario
    said = {
        "tuning": f"Said before these were changed: {changed}.",
        "description": f"(Changed here: {changed}.)",
    }
    words = {
        key: f"{getattr(scenario, key).rstrip()} {more}"
        for key, more in said.items()
        if getattr(scenario, key) and key not in keys
    }
    return scenario.model_copy(update=words)


def seed_of(text: str | None, seeds: int = 1) -> int | None:
    """The seed that `--seed` gives: a number, or one that nobody can guess.

    Args:
        text: A whole number, "random", or None.
        seeds: How many seeds a comparison counts up from it.

    Raises:
        InputError: it is neither, or too large.
    """
    most = MAX_SEED - seeds + 1
    if text is None:
        return None
    if text == "random":
        return secrets.randbelow(most + 1)
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > most:
        raise InputError(f"--seed {text}: must be a whole number from 0 to {most}, or random.")
    return int(text)


def _keys(path: str, value: Any) -> Iterator[str]:
    """The keys that an override sets, each table by its own."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, item in value.items():
        yield from _keys(f"{path}.{key}", item)
