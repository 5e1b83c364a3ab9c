"""Rules between values, each a readable entry of a table, and the loop that reports every broken one.

    RULES = (
        Rule(
            "sampling.cohort",
            lambda v: exceeds(v["sampling.cohort"], v.population),
            lambda v: f"larger than the population of {v.population} clients",
            lambda v: f"At most {v.population}.",
        ),
    )

A rule is not broken while a value that it needs is missing or wrong by itself, so that one mistake neither
hides another nor is reported twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import literal


class Keyed(Protocol):
    """Values by key; None where a value is missing, or wrong by itself."""

    def __getitem__(self, key: str, /) -> Any: ...


V = TypeVar("V", bound=Keyed)
V_contra = TypeVar("V_contra", bound=Keyed, contravariant=True)


class Entry(Protocol[V_contra]):
    """An entry of a table of rules."""

    def findings(self, values: V_contra, /) -> Iterator[Finding]:
        """Yields a finding for each way in which the values break it."""


@dataclass(frozen=True)
class Rule(Generic[V]):
    """A rule between values, and the finding where they break it.

    Args:
        key: Where the mistake is: `section.key`.
        broken: Whether the values break the rule; a table does where each key has the given value, or one of
            the given tuple of values.
        problem: The problem, as text or as a function of the values.
        remedy: The remedy, as text or as a function of the values.
        shown: Whether the finding shows the value of the key, where it has one.
    """

    key: str
    broken: Callable[[V], bool] | Mapping[str, Any]
    problem: str | Callable[[V], str]
    remedy: str | Callable[[V], str] = ""
    shown: bool = True

    def is_broken(self, values: V) -> bool:
        """Returns whether the values break the rule."""
        if isinstance(self.broken, Mapping):
            return holds(values, self.broken)
        return self.broken(values)

    def findings(self, values: V) -> Iterator[Finding]:
        """Yields the finding if the values break the rule."""
        if self.is_broken(values):
            value = values[self.key] if self.shown else None
            shown = "" if value is None else literal(value)
            path = tuple(self.key.split("."))
            yield Finding(path, self.problem_of(values), self.remedy_of(values), shown)

    def problem_of(self, values: V) -> str:
        """Returns what is wrong, in words."""
        return self.problem if isinstance(self.problem, str) else self.problem(values)

    def remedy_of(self, values: V) -> str:
        """Returns the remedy."""
        return self.remedy if isinstance(self.remedy, str) else self.remedy(values)


class First(Generic[V]):
    """Rules of which the first broken one is reported alone, since the others follow from it or repeat it."""

    def __init__(self, *entries: Entry[V]) -> None:
        self.entries = entries

    def findings(self, values: V) -> Iterator[Finding]:
        """Yields the findings of the first entry that has any."""
        for entry in self.entries:
            if broken := list(entry.findings(values)):
                yield from broken
                return


@dataclass(frozen=True)
class Check(Generic[V]):
    """A rule that finds any number of mistakes, or needs more than a line to find one."""

    findings: Callable[[V], Iterator[Finding]]


def broken_rules(table: Iterable[Entry[V]], values: V) -> Iterator[Finding]:
    """Yields the findings of all rules of a table, in its order."""
    for entry in table:
        yield from entry.findings(values)


def beneath(path: KeyPath, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yields findings about one of several tables, `path` being where that table is."""
    for finding in findings:
        yield replace(finding, path=(*path, *finding.path))


def rising(values: Sequence[float]) -> bool:
    """Returns whether each value is above the one before.

    >>> rising([1.0, 2.0]), rising([1.0, 1.0])
    (True, False)
    """
    return all(first < second for first, second in itertools.pairwise(values))


def holds(values: Keyed, wanted: Mapping[str, Any]) -> bool:
    """Returns whether each key has its wanted value, or one of a tuple of wanted values."""
    return all(
        values[key] in value if isinstance(value, tuple) else values[key] == value
        for key, value in wanted.items()
    )


def exceeds(value: float | None, most: float | None) -> bool:
    """Returns whether a value is above the most there may be; not where either is unknown."""
    return value is not None and most is not None and value > most
