"""Reads a result document at the file boundary, whatever its kind.

What it marks as operator-only is taken out before any claim is printed (`redaction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fedprivacy.errors import InputError
from fedprivacy.report import words
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.documents import CompareDocument, Document, RunDocument
from fedprivacy.report.redaction import operator_only, redact
from fedprivacy.report.statistics.documents import StatisticsComparison, StatisticsDocument

SCHEMA = 1
NAMED = 8  # mistakes of a damaged document that an error names
_WANTED = {
    "float": "a number", "finite_number": "a finite number", "int": "a whole number", "string": "text",
    "tuple": "a list", "dict": "a table", "model": "a table", "bool": "true or false",
}  # fmt: skip

KINDS: dict[str, type[Document]] = {
    "run": RunDocument,
    "compare": CompareDocument,
    "statistics": StatisticsDocument,
    "compare-statistics": StatisticsComparison,
    "replay": ReplayDocument,
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
        found = list(dict.fromkeys(f"{_place(one) or kind} {_wrong(one)}" for one in error.errors()))
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise InputError(
            f"{source}: damaged: {'; '.join(found[:NAMED])}{more}. Restore the file, or run it again."
        ) from None


def _place(error: ErrorDetails) -> str:
    """`cells[1].accuracy`; of a choice of types that one alone."""
    loc = error["loc"][:-1] if error["loc"] and error["loc"][-1] in ("int", "str") else error["loc"]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


def _wrong(error: ErrorDetails) -> str:
    """What pydantic found wrong, in our words."""
    sort = error["type"]
    if sort == "missing":
        return "is missing"
    if sort == "value_error":
        return f"is wrong: {error['msg'].removeprefix('Value error, ')}"
    wanted = next((what for start, what in _WANTED.items() if sort.startswith(start)), None)
    return f"is not {wanted}" if wanted else f"is wrong: {error['msg'][:1].lower()}{error['msg'][1:]}"
