"""Finds the keys of a scenario that a user typed as an option of the command: `--epsilon 4`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fedprivacy.scenario.erm import sections as erm
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.statistics import sections as statistics


def keys_named(option: str) -> list[str]:
    """Returns the dotted keys that an option may mean.

    Args:
        option: As it was typed, such as `--epsilon`, `--learning-rate` or `--privacy.epsilon`.

    >>> keys_named("--epsilon")
    ['privacy.epsilon']
    """
    name = option.lstrip("-").replace("-", "_")
    return [key for key in dict.fromkeys(_keys()) if name in (key, key.rpartition(".")[2])]


def _keys() -> Iterator[str]:
    yield from HEAD.keys()
    sections: list[Mapping[str, Kind]] = [KINDS, statistics.KINDS, erm.KINDS]
    for kinds in sections:
        for section, kind in kinds.items():
            for key in kind.keys():  # noqa: SIM118
                yield f"{section}.{key}"
