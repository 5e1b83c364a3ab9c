"""A stored scenario, read without the data that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError, create_model

from fedprivacy.errors import InputError
from fedprivacy.fields import damaged
from fedprivacy.records.differences import CHANGED, refuse_difference
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.findings import Finding, dotted
from fedprivacy.scenario.sections import Head

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
    refuse_difference(tables, cast(Any, scenario).tables(), "scenario", where, "its other keys imply", remedy)
    for key in ("name", *(["seed"] if "seed" in document else [])):
        refuse_difference(document.get(key), tables[key], key, where, "its scenario has", remedy)
    return scenario


def refuse_findings(found: Iterable[Finding], where: str, remedy: str) -> None:
    """Refuses a stored scenario of which something is wrong between its sections.

    Raises:
        InputError: there is a finding.
    """
    for one in found:
        raise InputError(f"{where}: {dotted(('scenario', *one.path))}: {one.what}. {CHANGED}: {remedy}.")


def unread(kind: type[Kind], tables: Mapping[str, Any], where: str, remedy: str) -> Kind:
    """A scenario from tables, each section valid by itself.

    No file that its data name is opened: it may have moved since, or be anything.

    Raises:
        InputError: a section is not valid.
    """
    try:
        parts = _sections(kind).model_validate({"scenario": tables}).scenario  # type: ignore[attr-defined]
    except ValidationError as error:
        raise damaged(error, where, f"Restore the file, or {remedy}.") from None
    read = kind.model_construct(**{name: getattr(parts, name) for name in kind.model_fields})
    return cast(Kind, read)


@lru_cache
def _sections(kind: type[Head]) -> type[BaseModel]:
    """The sections of a scenario without what must hold between them, which looks at data."""
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in kind.model_fields.items()}
    own = create_model(f"Unread{kind.__name__}", __base__=Section, **fields)
    return create_model("Stored", __base__=Section, scenario=(own, ...))
