"""Reads a result document at the file boundary, whatever its kind.

What it marks as operator-only is taken out before any claim is printed (`redaction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fedprivacy.errors import InputError
from fedprivacy.io.validation import damaged
from fedprivacy.report import words
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.audit import AuditDocument
from fedprivacy.report.documents import CompareDocument, Document, RunDocument
from fedprivacy.report.estimates.documents import EstimatesDocument
from fedprivacy.report.redaction import operator_only, redact
from fedprivacy.report.statistics.documents import StatisticsComparison, StatisticsDocument
from fedprivacy.report.tune import TuneDocument

SCHEMA = 1

KINDS: dict[str, type[Document]] = {
    "run": RunDocument,
    "compare": CompareDocument,
    "statistics": StatisticsDocument,
    "compare-statistics": StatisticsComparison,
    "replay": ReplayDocument,
    "audit": AuditDocument,
    "tune": TuneDocument,
    "erm": EstimatesDocument,
}


def read(document: Mapping[str, Any], source: str = "report") -> Document:
    """The document without its operator-only fields, checked.

    Args:
        document: What `run.json` holds.
        source: What an error names: the file that it came from.

    Raises:
        InputError: the schema or the kind is unknown, or a field is not what its schema says.
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
        raise InputError(
            f"{source}: kind = {kind!r} is unknown; a report is made from {words.listed(KINDS, 'or')}."
        )
    try:
        return KINDS[kind].model_validate(redact(document, operator_only(document)))
    except ValidationError as error:
        raise damaged(error, source, "Restore the file, or run it again.", kind) from None


def read_audit(document: Mapping[str, Any]) -> AuditDocument:
    """The document of an audit, checked (`read`)."""
    result = read(document)
    assert isinstance(result, AuditDocument)
    return result


def read_tune(document: Mapping[str, Any]) -> TuneDocument:
    """The document of a choice, checked (`read`)."""
    result = read(document)
    assert isinstance(result, TuneDocument)
    return result
