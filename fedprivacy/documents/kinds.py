"""All kinds of result documents, read at the file boundary: for a page, and for verification.

For a page, operator-only fields are removed before any claim is printed (`redaction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ValidationError

from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import SCHEMA, Document
from fedprivacy.documents.estimates import EstimatesDocument
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.redaction import marked, public, redact
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.run import RunDocument
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.errors import InputError
from fedprivacy.io.document_part import strict
from fedprivacy.io.validation import Fields, check, damaged

Kind = TypeVar("Kind", bound=Document)

KINDS: dict[str, type[Document]] = {
    kind.KIND: kind
    for kind in (
        RunDocument,
        CompareDocument,
        StatisticsDocument,
        StatisticsComparison,
        ReplayDocument,
        AuditDocument,
        TuneDocument,
        EstimatesDocument,
        PlanDocument,
    )
}


def read(document: Mapping[str, Any], source: str = "report", *, operator: bool = False) -> Document:
    """The public part of a document, checked.

    Args:
        document: The content of `run.json`.
        source: The file that it came from, which errors name.
        operator: Whether accuracy on records of clients and file paths stay, for a page of the operator.

    Raises:
        InputError: the schema or the kind is unknown, or a field violates its schema.
    """
    if not isinstance(document, Mapping):
        raise InputError(f"{source}: a result document is a table of fields, not {type(document).__name__}.")
    schema, kind = document.get("schema"), document.get("kind")
    if schema != SCHEMA or isinstance(schema, bool):
        raise InputError(
            f"{source}: schema = {schema!r} is unknown; this version reads schema {SCHEMA}. "
            "Render it with the version of fedprivacy that wrote it."
        )
    if not isinstance(kind, str) or kind not in KINDS:
        *most, last = KINDS
        raise InputError(
            f"{source}: kind = {kind!r} is unknown; a report is made from {', '.join(most)} or {last}."
        )
    try:
        shown = redact(document, marked(document)) if operator else public(document)
        return KINDS[kind].model_validate(shown)
    except ValidationError as error:
        raise damaged(error, source, "Restore the file, or run it again.", kind) from None


def read_as(kind: type[Kind], document: Mapping[str, Any]) -> Kind:
    """The document of one kind, checked (`read`)."""
    result = read(document)
    assert isinstance(result, kind)
    return result


def read_whole(kind: type[Kind], document: Mapping[str, Any]) -> Kind:
    """The document of one kind with its operator-only fields, for the operator's terminal.

    Raises:
        InputError: a field violates its schema.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise damaged(error, str(document.get("path")), "Restore the file, or run it again.") from None


def check_fields(document: Mapping[str, Any], where: str) -> None:
    """Checks that the fields for recomputing epsilon are present, and of their types.

    Raises:
        InputError: it is not; or the kind of the document is unknown; or it is a public copy.
    """
    if document.get("public") is True:
        raise InputError(
            f"{where}: a public copy of a record, without the fields that verification needs. Use the "
            "run.json that the run wrote."
        )
    kind = document.get("kind")
    known = KINDS.get(kind) if isinstance(kind, str) else None
    check(document, _NamesAKind if known is None else strict(known), where)


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"{kind[:40]!r} is none of {', '.join(KINDS)}")
    return kind


class _NamesAKind(Fields):
    """A document with its schema and kind."""

    kind: Annotated[str, AfterValidator(_known)]
