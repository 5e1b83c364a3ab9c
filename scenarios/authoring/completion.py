"""Completions for the shell: keys and values of `--set`, attacks, and run directories."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.loading import AnyScenario, load
from scenarios.authoring.catalogue import find


def settings(source: str | None, incomplete: str) -> list[str]:
    """Returns completions of a `--set` option: keys up to "=", then the values that a key may have.

    Args:
        source: The scenario of the command as typed; None, or what cannot be read: any training scenario.
        incomplete: What has been typed of the option.

    >>> settings("digits", "privacy.tr")
    ['privacy.trust=']
    >>> settings("digits", "privacy.trust=l")
    ['privacy.trust=local']
    """
    scenario = _scenario(source)
    sections: Mapping[tuple[str, ...], Kind]
    if scenario is None:
        sections = {(): HEAD, **{(name,): kind for name, kind in KINDS.items()}}
    else:
        sections = scenario.sections
    key, equals, value = incomplete.partition("=")
    if not equals:
        keys = (".".join([*section, name]) for section, kind in sections.items() for name in kind.keys())  # noqa: SIM118
        return [f"{name}=" for name in keys if name.startswith(incomplete)]
    *above, last = key.split(".")
    kind = sections.get(tuple(above))
    values = dict.fromkeys(_values(kind, last)) if kind else {}
    return [f"{key}={choice}" for choice in values if choice.startswith(value)]


def attacks(source: str | None, incomplete: str) -> list[str]:
    """Returns the attacks of a scenario whose names begin in this way."""
    scenario = _scenario(source)
    names = scenario.attacks if isinstance(scenario, AttackScenario) else ()
    return [name for name in names if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Returns run directories whose paths begin in this way: those in `runs`, or in the typed folder.

    Args:
        incomplete: What has been typed of the path.
    """
    start = incomplete[: incomplete.rfind("/") + 1]
    folders = [start or "."] if start else ["runs/", "."]
    paths = []
    for folder in folders:
        with suppress(OSError):
            for entry in sorted(Path(folder).iterdir()):
                shown = entry.name if folder == "." else f"{folder}{entry.name}"
                if (entry / "scenario.toml").is_file():
                    paths.append(shown)
                elif start and entry.is_dir():
                    paths.append(f"{shown}/")
    return [path for path in paths if path.startswith(incomplete) or (not start and incomplete in path)]


def _scenario(source: str | None) -> AnyScenario | None:
    if source is None:
        return None
    with suppress(InputError):
        return load(find(source))
    return None


def _values(kind: Kind, key: str) -> Iterator[str]:
    """Returns the values of a key that has choices: words, or true and false."""
    if key == kind.tag:
        yield from kind.variants
    for cls in kind.variants.values():
        if key in cls.model_fields:
            yield from _choices(cls.model_fields[key].annotation)


def _choices(annotation: Any) -> Iterator[str]:
    origin = typing.get_origin(annotation)
    if annotation is bool:
        yield from ("true", "false")
    elif origin is typing.Literal:
        yield from (str(value) for value in typing.get_args(annotation))
    elif origin in (typing.Union, types.UnionType, typing.Annotated):
        for part in typing.get_args(annotation):
            yield from _choices(part)
