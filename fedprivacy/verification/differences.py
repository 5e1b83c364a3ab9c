"""Compares a stored part of a record with the derived one, and refuses a difference."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.io.tolerance import same

CHANGED = "The record was changed, or made by another version"


@dataclass(frozen=True)
class Entries:
    """The number of entries of a list that differs in length."""

    count: int


def brief(value: Any) -> str:
    """A value in at most 80 characters."""
    return textwrap.shorten(str(value), 80, placeholder="...")


def difference(
    stored: Any, derived: Any, key: str = "", *, rounded: bool = False
) -> tuple[str, Any, Any] | None:
    """The first key at which a stored value is not the derived one, with both.

    Args:
        stored: From the record.
        derived: What it should be.
        key: Where the value is in the record.
        rounded: Whether numbers, in texts too, may differ by what accountants on two machines do
            (`fedprivacy.io.tolerance`). Print the derived ones then.

    >>> difference({"a": [1, 2]}, {"a": [1, 3]}, "ledger")
    ('ledger.a[1]', 2, 3)
    >>> difference({"a": 1}, {"a": 1, "b": 2})
    ('b', 'nothing', 2)
    >>> difference([1], [1, 2], "rounds")
    ('rounds', Entries(count=1), Entries(count=2))
    """
    if isinstance(stored, Mapping) and isinstance(derived, Mapping):
        return _first(
            difference(
                stored.get(name, "nothing"), derived.get(name, "nothing"), _below(key, name), rounded=rounded
            )
            for name in dict.fromkeys([*stored, *derived])
        )
    if isinstance(stored, list) and isinstance(derived, list):
        if len(stored) != len(derived):
            return key, Entries(len(stored)), Entries(len(derived))
        pairs = enumerate(zip(stored, derived, strict=True))
        return _first(difference(*pair, f"{key}[{at}]", rounded=rounded) for at, pair in pairs)
    truth = isinstance(stored, bool) or isinstance(derived, bool)  # else True would be 1
    equal = stored is derived if truth else (same if rounded else _equal)(stored, derived)
    return None if equal else (key, stored, derived)


def refuse_difference(
    stored: Any, derived: Any, key: str, where: str, source: str, remedy: str, *, rounded: bool = False
) -> None:
    """Refuses a record of which a part is not what its other parts imply.

    Args:
        stored: The part.
        derived: What it should be.
        key: Where the part is in the record.
        where: The file.
        source: What it was derived from, with its verb: "its plan implies".
        remedy: What to do, such as "run it again".
        rounded: As of `difference`.

    Raises:
        InputError: they differ; it names the key.
    """
    differing = difference(stored, derived, key, rounded=rounded)
    if differing is not None:
        at, stored_value, implied = differing
        if isinstance(stored_value, Entries) and isinstance(implied, Entries):
            refuse_length(stored_value.count, implied.count, at, where, source, remedy)
        raise refusal(where, at, f"says {brief(stored_value)}, {source} {brief(implied)}", remedy)


def refuse_length(stored: int, derived: int, key: str, where: str, source: str, remedy: str) -> None:
    """Refuses a list that has more or fewer entries than other parts of the record imply.

    Args:
        stored: How many it has.
        derived: How many it should have.
        key: Where the list is in the record.
        where: The file.
        source: What implies the number, with its verb: "its plan implies".
        remedy: What to do, such as "run it again".

    Raises:
        InputError: the numbers differ.
    """
    if stored != derived:
        entries = "1 entry" if stored == 1 else f"{stored} entries"
        raise refusal(where, key, f"has {entries}, {source} {derived}", remedy)


def refusal(where: str, key: str, problem: str, remedy: str) -> InputError:
    """The error of a record whose parts do not fit together.

    Args:
        where: The file.
        key: Where the part is in the record.
        problem: What is wrong with it.
        remedy: What to do, such as "run it again".
    """
    return InputError(f"{where}: {key}: {problem}. {CHANGED}: {remedy}.")


@contextmanager
def placed(where: str, key: str, remedy: str) -> Iterator[None]:
    """Gives an error about a part of a record its file and key.

    Args:
        where: The file.
        key: Where the part is in the record.
        remedy: What to do, such as "run it again".
    """
    try:
        yield
    except InputError as error:
        raise refusal(where, key, str(error).rstrip("."), remedy) from None


def _below(key: str, name: str) -> str:
    return f"{key}.{name}".lstrip(".")


def _equal(stored: Any, derived: Any) -> bool:
    return bool(stored == derived)


def _first(differences: Iterable[tuple[str, Any, Any] | None]) -> tuple[str, Any, Any] | None:
    return next((entry for entry in differences if entry is not None), None)
