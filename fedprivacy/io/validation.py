"""Documents that may be damaged: are the fields there, and of the kind that they must have?

A format is a class of `Fields` that names the fields to read; other fields pass. An error names the place of
the problem: `run.json: damaged: ledger.claims[0].event is missing`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from fedprivacy.errors import InputError

NAMED = 8  # mistakes of a damaged document that an error names
_WANTED = {
    "float": "a number", "finite_number": "a finite number", "int": "a whole number", "string": "text",
    "tuple": "a list", "list": "a list", "dict": "a table", "mapping": "a table", "model": "a table",
    "bool": "true or false",
}  # fmt: skip


class Fields(BaseModel):
    """The fields of a table that somebody reads, their types strict."""

    model_config = ConfigDict(strict=True, extra="ignore")


def check(
    data: object, kind: type[Fields], where: str, remedy: str = "Restore the file, or run it again."
) -> None:
    """Checks that a document has the fields of a format.

    Args:
        data: The parsed JSON.
        kind: The format.
        where: Its name, for the message.
        remedy: An action for the user.

    Raises:
        InputError: a field is missing or of another kind; the message names it.
    """
    try:
        kind.model_validate(data)
    except ValidationError as error:
        raise damaged(error, where, remedy) from None


def damaged(error: ValidationError, where: str, remedy: str, whole: str = "the document") -> InputError:
    """Rewords an error of pydantic.

    Args:
        error: The error of pydantic.
        where: The name of the document.
        remedy: An action for the user.
        whole: The problem where no field is to blame.
    """
    problems = list(dict.fromkeys(f"{_place(detail) or whole} {_wrong(detail)}" for detail in error.errors()))
    more = f"; and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
    return InputError(f"{where}: damaged: {'; '.join(problems[:NAMED])}{more}. {remedy}")


def _place(error: ErrorDetails) -> str:
    """`cells[1].accuracy`; of a choice of types that one alone."""
    loc = error["loc"][:-1] if error["loc"] and error["loc"][-1] in ("int", "str") else error["loc"]
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:60]}" for part in loc)
    return named.removeprefix(".")


def _wrong(error: ErrorDetails) -> str:
    sort = error["type"]
    if sort == "missing":
        return "is missing"
    if sort == "value_error":
        return f"is wrong: {error['msg'].removeprefix('Value error, ')}"
    wanted = next((what for start, what in _WANTED.items() if sort.startswith(start)), None)
    return f"is not {wanted}" if wanted else f"is wrong: {error['msg'][:1].lower()}{error['msg'][1:]}"
