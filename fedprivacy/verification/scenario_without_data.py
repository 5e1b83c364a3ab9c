"""Reads the scenario of a stored record without its data: no file that a record names is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

import tomli_w
from pydantic import BaseModel, ValidationError, create_model

from fedprivacy.errors import Finding, InputError
from fedprivacy.io.toml_text import dotted
from fedprivacy.io.validation import damaged
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.sections import Head
from fedprivacy.scenario.validation import with_defaults
from fedprivacy.verification.differences import CHANGED, refusal, refuse_difference

Kind = TypeVar("Kind", bound=Head)  # a scenario of any kind, each of which has `tables`


def stored_scenario(kind: type[Kind], document: Mapping[str, Any], where: str, remedy: str) -> Kind:
    """The scenario of a record.

    Args:
        kind: The class of the scenario.
        document: The record.
        where: Its file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: it is not valid, lacks a key that has an effect, or has one that has none; or the record
            has another name or seed.
    """
    scenario, tables = unread(kind, document["scenario"], where, remedy), document["scenario"]
    implied = cast(Any, scenario).tables()
    stored_compare = tables.get("compare")
    if isinstance(stored_compare, dict) and "baselines" not in stored_compare:  # of earlier versions
        implied.get("compare", {}).pop("baselines", None)
    refuse_difference(tables, implied, "scenario", where, "its other keys imply", remedy)
    for key in ("name", *(["seed"] if "seed" in document else [])):
        refuse_difference(document.get(key), tables[key], key, where, "its scenario has", remedy)
    return scenario


def refuse_findings(findings: Iterable[Finding], where: str, remedy: str) -> None:
    """Refuses a stored scenario of which something is wrong between its sections.

    Raises:
        InputError: there is a finding.
    """
    for finding in findings:
        raise InputError(
            f"{where}: {dotted(('scenario', *finding.path))}: {finding.what}. {CHANGED}: {remedy}."
        )


def unread(kind: type[Kind], tables: Mapping[str, Any], where: str, remedy: str) -> Kind:
    """A scenario from tables, each section valid by itself.

    What fits together only where the data are known is not checked again. No file that its data name is
    opened: it may have moved since, or be anything.

    Args:
        kind: The class of the scenario.
        tables: What the record has under `scenario`, or what follows from it.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: a section is not valid.
    """
    if issubclass(kind, Scenario):
        tables = with_defaults(dict(tables))
    try:
        parts = _sections(kind).model_validate({"scenario": tables}).scenario  # type: ignore[attr-defined]
    except ValidationError as error:
        raise damaged(error, where, f"Restore the file, or {remedy}.") from None
    read = kind.model_construct(**{name: getattr(parts, name) for name in kind.model_fields})
    return cast(Kind, read)


def check_digest(document: Mapping[str, Any], scenario: Scenario, where: str, remedy: str) -> None:
    """Checks the scenario against the digest that was written when the work began.

    Args:
        document: A result.
        scenario: Its scenario.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: it is another.
    """
    tables = dict(document["scenario"])
    if document["kind"] != "compare" and scenario.compare == Scenario.default_compare(scenario.seed):
        tables.pop("compare", None)  # as `Scenario.to_toml`
    try:
        text = tomli_w.dumps(tables)
    except (TypeError, ValueError) as error:
        raise refusal(where, "scenario", f"is not what TOML can hold ({error})", remedy) from None
    if hashlib.blake2b(text.encode(), digest_size=16).hexdigest() != document["scenario_digest"]:
        raise refusal(where, "scenario", "is not the scenario that scenario_digest was made of", remedy)


@lru_cache
def _sections(kind: type[Head]) -> type[BaseModel]:
    """The sections of a scenario without what must hold between them, which looks at data."""
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in kind.model_fields.items()}
    unread_kind = create_model(f"Unread{kind.__name__}", __base__=Section, **fields)
    return create_model("Stored", __base__=Section, scenario=(unread_kind, ...))
