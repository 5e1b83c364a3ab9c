"""Reads the scenario of a stored record without its data: no file that a record names is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import tomli_w

from fedprivacy.records.differences import refusal
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.findings import dotted
from fedprivacy.scenario.inspection import validate, with_defaults
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind


def scenario_of(tables: Any, where: str, remedy: str) -> Scenario:
    """The scenario of a record, each of its sections valid by itself.

    What fits together only where the data are known is not checked again.

    Args:
        tables: What the record has under `scenario`.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: a section is not valid.
    """
    return Scenario.model_construct(**sections(tables, KINDS, where, remedy))


def sections(tables: Any, kinds: Mapping[str, Kind], where: str, remedy: str) -> dict[str, Any]:
    """The parts of a scenario: its sections, and the keys above them.

    Args:
        tables: What the record has under `scenario`.
        kinds: The sections that it has.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: a section is not valid.
    """
    if not isinstance(tables, dict):
        raise refusal(where, "scenario", "is not a table", remedy)
    tables = with_defaults(tables)
    above = {key: value for key, value in tables.items() if key not in kinds}
    parts: dict[str, Any] = dict(_section("", HEAD, above, where, remedy))
    for name, kind in kinds.items():
        parts[name] = _section(name, kind, tables.get(name, {}), where, remedy)
    return parts


def _section(name: str, kind: Kind, table: Any, where: str, remedy: str) -> Any:
    if not isinstance(table, dict):
        raise refusal(where, f"scenario.{name}", "is not a table", remedy)
    part, _, found = validate((name,) if name else (), kind, table)
    if found:
        at, what = dotted(("scenario", *found[0].path)), found[0].what
        raise refusal(where, at, what, remedy)
    assert part is not None  # else something was found
    return part


def check_digest(document: Mapping[str, Any], scenario: Scenario, where: str, remedy: str) -> None:
    """That the scenario is the one whose digest was written when the work began.

    Args:
        document: A result; one of an earlier version may have no digest.
        scenario: Its scenario.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: it is another.
    """
    tables = dict(document["scenario"])
    if document.get("scenario_digest") is None:
        return
    if document["kind"] != "compare" and scenario.compare == Scenario.default_compare(scenario.seed):
        tables.pop("compare", None)  # as `Scenario.to_toml`
    try:
        text = tomli_w.dumps(tables)
    except (TypeError, ValueError) as error:
        raise refusal(where, "scenario", f"is not what TOML can hold ({error})", remedy) from None
    if hashlib.blake2b(text.encode(), digest_size=16).hexdigest() != document["scenario_digest"]:
        raise refusal(where, "scenario", "is not the scenario that scenario_digest was made of", remedy)
