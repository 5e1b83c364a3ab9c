"""Keys laid over a scenario: by `--set`, and by the cells of a comparison.

A change may turn a section into another kind: `sampling.name = "all"` over a Poisson sampler. The
keys that only the old kind has (`rate`) then go, since nobody could remove them from the command
line; a key that no kind has stays, and is an error. Another partition or scaling of the data takes its
keys along in the same way.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.errors import Problem
from fedprivacy.scenario.data import KEYS_OF, foreign_keys
from fedprivacy.scenario.findings import Override, Path
from fedprivacy.scenario.kinds import KINDS, OVERLAID, shared

Tables = dict[str, Any]
# Two ways to say one thing: giving one takes the other away.
_INSTEAD = {
    ("privacy", "epsilon"): ("privacy", "noise_multiplier"),
    ("privacy", "noise_multiplier"): ("privacy", "epsilon"),
}


def lay(tables: Mapping[str, Any], changes: Mapping[Path, Any]) -> Tables:
    """A copy of `tables` with `changes` (path -> value) made.

    Raises:
        KeyError: A path leads through something that is not a section; its argument is the path.
    """
    new: Tables = copy.deepcopy(dict(tables))
    for path, value in changes.items():
        table = new
        for part in path[:-1]:
            table = table.setdefault(str(part), {})
            if not isinstance(table, dict):
                raise KeyError(path)
        table[str(path[-1])] = copy.deepcopy(value)
    for given, instead in _INSTEAD.items():
        if given in changes and instead not in changes:
            _section(new, given[0]).pop(instead[1], None)
    for choice in KEYS_OF:
        if ("data", choice) in changes:
            for key in foreign_keys(choice, changes["data", choice]):
                if ("data", key) not in changes:
                    _section(new, "data").pop(key, None)
    privacy = _section(new, "privacy")
    trust, mechanism = (("privacy", key) in changes for key in ("trust", "mechanism"))
    if trust and not mechanism and privacy.get("trust") != "local":
        privacy.pop("mechanism", None)  # that of single messages
    if (trust or mechanism) and ("privacy", "direction") not in changes and not has_direction(privacy):
        privacy.pop("direction", None)
    for section, kind in KINDS.items():
        table = _section(new, section)
        if (section, kind.tag) in changes and (name := kind.variant(table)) is not None:
            stale = set(kind.keys()) - set(kind.keys(name))
            for key in stale - {str(path[1]) for path in changes if path[0] == section and len(path) > 1}:
                table.pop(key, None)
    return new


def has_direction(privacy: Mapping[str, Any]) -> bool:
    """Whether the local mechanism of a privacy section sends a direction."""
    return privacy.get("trust") == "local" and privacy.get("mechanism") in ("privunit", "auto")


def _section(tables: Tables, name: str) -> Tables:
    table = tables.get(name)
    return table if isinstance(table, dict) else {}


def parse_overrides(texts: Sequence[str]) -> tuple[list[Override], list[Problem]]:
    """`--set` options as overrides, and what is wrong with the form of the others.

    A value is read as TOML (`10`, `[200, 100]`, `"text"`), and where it is not TOML, as plain text.
    """
    overrides, problems = [], []
    for text in texts:
        key, equals, value = text.partition("=")
        path = _path(key)
        if equals and path:
            overrides.append(Override(text, path, _value(value.strip())))
        else:
            problems.append(
                Problem(f"--set {text}", "not of the form key=value", "For instance --set server.rounds=10.")
            )
    return overrides, problems


def _path(key: str) -> Path:
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return ()
    path: Path = ()
    while isinstance(table, dict) and len(table) == 1:
        [(part, table)] = table.items()
        path = (*path, part)
    return path if table == 0 else ()


def _value(text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if list(table) == ["value"] else text


def cell(
    tables: Tables,
    trust: str,
    epsilon: float | None,
    seed: int | None = None,
    mechanism: str | None = None,
    *,
    clipped: bool = False,
) -> Tables:
    """The tables of one cell of a comparison, its `[compare.<trust>]` laid over them.

    Over these comes `[compare.mechanism.<mechanism>]`, where a cell has a mechanism of its own.

    Args:
        tables: A whole scenario; sections may be broken.
        trust: "none", "central" or "local".
        epsilon: The cell's epsilon, None for trust "none".
        seed: The cell's seed; None keeps the scenario's.
        mechanism: The local mechanism; None keeps the scenario's.
        clipped: Whether trust "none" keeps the scenario's clipping norm.
    """
    base = {key: value for key, value in tables.items() if key != "compare"}
    changes: dict[Path, Any] = {("privacy", "trust"): trust}
    if seed is not None:
        changes[("seed",)] = seed
    if epsilon is not None:
        changes[("privacy", "epsilon")] = epsilon
    if mechanism is not None:
        changes["privacy", "mechanism"] = mechanism
    laid = overlay(tables, trust) + (overlay(tables, "mechanism", mechanism) if mechanism else [])
    for section, key, value in laid:
        if not shared(section, key):
            changes[section, key] = value
    privacy = base.get("privacy")
    if isinstance(privacy, dict):
        drop = set()
        if trust == "none" and not clipped:
            drop.add("clipping_norm")  # its own only: what is left without noise is a heuristic
        server = base.get("server")
        rounds = server.get("rounds") if isinstance(server, dict) else None
        if ("server", "rounds") in changes and privacy.get("max_participations") == rounds:
            drop.add("max_participations")  # "in every round" means every round of the cell
        base["privacy"] = {key: value for key, value in privacy.items() if key not in drop}
    return lay(base, changes)


def overlay(tables: Mapping[str, Any], *place: str) -> list[tuple[str, str, Any]]:
    """The (section, key, value) of `[compare.<place>]` that can be laid over a scenario."""
    partial: Any = tables.get("compare")
    for part in place:
        partial = partial.get(part) if isinstance(partial, dict) else None
    if not isinstance(partial, dict):
        return []
    return [
        (section, key, value)
        for section in OVERLAID
        if isinstance(partial.get(section), dict)
        for key, value in partial[section].items()
    ]
