"""Several parts of a record held against what its scenario implies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from fedprivacy.errors import InputError
from fedprivacy.verification.differences import brief, refusal, refuse_difference

Statement = TypeVar("Statement")
Result = TypeVar("Result")


def plain(value: Any) -> Any:
    """A value as it comes back from JSON: tuples are lists, and keys are texts."""
    return json.loads(json.dumps(value))


def check_status(document: Mapping[str, Any], where: str, remedy: str) -> None:
    """Refuses a record of which the error and the status do not fit together.

    Raises:
        InputError: they do not.
    """
    stopped, error = document["status"] in ("interrupted", "failed"), document["error"]
    if (error is not None) != stopped:
        problem = f"says {document['status']}, and error is {brief(error)}"
        raise refusal(where, "status", problem, remedy)


def refuse_parts(
    stored: Mapping[str, Any],
    implied: Mapping[str, Any],
    where: str,
    source: str,
    remedy: str,
    key: str = "",
) -> None:
    """Refuses a table of which a part is not the implied one; what nothing implies may be anything.

    Args:
        stored: The table.
        implied: Some of its parts, as they should be.
        where: The file.
        source: What implies them, with its verb: "its plan implies".
        remedy: What to do, such as "run it again".
        key: Where the table is in the record.

    Raises:
        InputError: a part differs; it names the key.
    """
    for name, part in implied.items():
        at = f"{key}.{name}".lstrip(".")
        stored_part = stored.get(name, "nothing")
        refuse_difference(stored_part, plain(part), at, where, source, remedy, rounded=True)


def first_fitting(
    check: Callable[[Statement], Result],
    statements: Iterable[Statement],
    randomness: Any,
    where: str,
    remedy: str,
) -> Result:
    """The result of a check under the first statement about a run's nodes that passes.

    A record does not hold all that was stated of nodes that are not our own: what was charged decides.

    Args:
        check: Checks a record, if this is what was stated.
        statements: Those that fit the record's `randomness`.
        randomness: As the record has it.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: it passes with none; the first one's.
    """
    error: InputError | None = None
    for stated in statements:
        try:
            return check(stated)
        except InputError as found:
            error = error or found
    if error is not None:
        raise error
    raise refusal(where, "randomness", f"says {brief(randomness)}, which no run does", remedy)


@contextmanager
def of_scenario(where: str, remedy: str) -> Iterator[None]:
    """Says of what cannot be made from a scenario that it is the record's.

    Args:
        where: The file.
        remedy: What to do, such as "run it again".
    """
    try:
        yield
    except InputError as error:
        raise refusal(where, "scenario", str(error).rstrip("."), remedy) from None
