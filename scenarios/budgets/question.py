"""The pattern of every budget: options that are checked together, an answer, and its words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedprivacy.accounting.events import RELATIONS
from fedprivacy.documents.envelope import SCHEMA
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import NEIGHBOURS, printed
from fedprivacy.scenario.delta import LEAST_DELTA

ADJACENCIES = tuple(RELATIONS)
MAX_ROUNDS = 10**6


@dataclass(frozen=True)
class Range:
    """The range of an option, and its usual values.

    Args:
        low: The smallest value, included unless `above`.
        high: The largest value, included unless `below`.
        above: Whether `low` is excluded.
        below: Whether `high` is excluded.
        or_zero: Whether 0 is allowed too, below `low`.
        usual: Usual values, or the reason for the limit, in words.

    >>> Range(0, 1, above=True).words
    'above 0 and at most 1'
    """

    low: float
    high: float
    usual: str = ""
    above: bool = False
    below: bool = False
    or_zero: bool = False

    def __contains__(self, value: float) -> bool:
        if self.or_zero and value == 0:
            return True
        low = self.low < value if self.above else self.low <= value
        return low and (value < self.high if self.below else value <= self.high)

    @property
    def words(self) -> str:
        """The range, to follow "must be"."""
        return "0, or " * self.or_zero + self._interval

    @property
    def _interval(self) -> str:
        match self.above, self.below:
            case True, True:
                return f"between {_figure(self.low)} and {_figure(self.high)}"
            case True, False:
                return f"above {_figure(self.low)} and at most {_figure(self.high)}"
            case False, True:
                return f"at least {_figure(self.low)} and below {_figure(self.high)}"
        return f"from {_figure(self.low)} to {_figure(self.high)}"


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) and value <= 10**6 else f"{value:g}"


DELTA = Range(LEAST_DELTA, 1, "below 1/(number of clients)", below=True)
DELTA_OR_ZERO = Range(
    LEAST_DELTA, 1, "0 for pure epsilon, else below 1/(number of clients)", below=True, or_zero=True
)
ROUNDS = Range(1, MAX_ROUNDS)
CLIENTS = Range(1, 10**12)
CONFIDENCE = Range(0, 1, "0.95 is usual", above=True, below=True)


class Question(ABC):
    """Checks the options of one `budget` command and answers; its options are a class of `options`."""

    mechanism: ClassVar[str]

    def document(self) -> dict[str, Any]:
        """Returns the answer as a result document, with `words` for people.

        Raises:
            InputError: naming every option that is out of its range, with the range.
            UnsupportedEvent: if no accountant answers.
        """
        problems = [problem for problem in self.problems() if problem is not None]
        if problems:
            raise InputError("\n".join(problems))
        return {"schema": SCHEMA, "kind": "budget", "mechanism": self.mechanism, **self.answer()}

    @abstractmethod
    def problems(self) -> Sequence[str | None]:
        """Returns the problem of each option, None for a valid one."""

    @abstractmethod
    def answer(self) -> dict[str, Any]:
        """Returns the fields of the document, `words` among them."""

    def out_of_range(self, option: str, allowed: Range) -> str | None:
        """Returns the problem of an option that is given and out of its range."""
        value = getattr(self, option)
        if value is None or value in allowed:
            return None
        usual = f"; {allowed.usual}" if allowed.usual else ""
        return f"{flag(option)} {value}: must be {allowed.words}{usual}."

    def not_among(self, option: str, words: Sequence[str]) -> str | None:
        """Returns the problem of an option that is none of the choices."""
        value = getattr(self, option)
        return None if value in words else f"{flag(option)} {value}: must be one of {', '.join(words)}."

    def not_exactly_one(self, *options: str, remedy: str = "the other one is computed") -> str | None:
        """Returns the problem if not exactly one of the options is given."""
        given = [option for option in options if getattr(self, option) is not None]
        return None if len(given) == 1 else f"{', '.join(map(flag, options))}: give exactly one; {remedy}."


def flag(option: str) -> str:
    """Returns the name of an option as it is typed."""
    return "--" + option.removesuffix("_").replace("_", "-")


def promise(epsilon: float, delta: float, adjacency: str, accountant: str, unit: str = "client") -> str:
    """States a guarantee: epsilon, delta, neighbours, unit, adjacency and accountant."""
    return (
        f"epsilon = {printed(epsilon)} at delta = {delta:g} for {NEIGHBOURS[unit, adjacency]} "
        f"(unit {unit}, {adjacency}; accountant {accountant})"
    )


def plural(number: int, noun: str) -> str:
    """Returns a number and its noun: `1 round`, `2 rounds`, `1,000,000 rounds`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
