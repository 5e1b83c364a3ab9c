"""The pieces of a statistics document: answers, bounds, repeats, slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from fedprivacy.documents.cell import Figures
from fedprivacy.documents.guarantee import Guarantees
from fedprivacy.documents.ledger import Ledger
from fedprivacy.io.document_part import CHECKED, Checked, Number, Part, Raw
from fedprivacy.io.validation import Fields

HUGE = 1e300  # beyond it an axis cannot be computed


def _known(value: Any) -> Any:
    """A number that is not finite, or too large to be drawn, is one that is not known."""
    return None if isinstance(value, int | float) and not abs(value) < HUGE else value


Known = Annotated[float | None, BeforeValidator(_known)]
OneValue = Annotated[float | str | None, BeforeValidator(_known)]  # a choice of a category is a text
Several = tuple[Known, ...]


@dataclass(frozen=True)
class Row:
    """One number of an answer: of a category, a quantile, or alone (no label)."""

    label: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    true: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, or None."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Answer(Part):
    """The published answer of a query, its interval, and the true value (simulation only)."""

    labels: tuple[str, ...] | None = None
    estimate: Several | OneValue = None
    low: Several | Known = None
    high: Several | Known = None
    true: Several | OneValue = None

    @model_validator(mode="after")
    def _one_each(self) -> Answer:
        sizes = {
            len(part) for part in (self.estimate, self.low, self.high, self.true) if isinstance(part, tuple)
        }
        sizes |= {len(self.labels or ())} if isinstance(self.estimate, tuple) else set()
        if len(sizes) > 1 or (sizes and not isinstance(self.estimate, tuple)):
            raise ValueError("the labels, estimates, intervals and true values are not equally many")
        return self

    @property
    def choice(self) -> str | None:
        """The category that was chosen, where the answer is one."""
        return self.estimate if isinstance(self.estimate, str) else None

    @property
    def rows(self) -> list[Row]:
        """Its numbers in the order of the categories; none where it is a choice."""
        if isinstance(self.estimate, str):
            return []
        size = len(self.estimate) if isinstance(self.estimate, tuple) else 1
        labels = self.labels if isinstance(self.estimate, tuple) and self.labels else ("",) * size
        columns = (_column(part, size) for part in (self.estimate, self.low, self.high, self.true))
        return [Row(*row) for row in zip(labels, *columns, strict=True)]


def _column(value: Any, size: int) -> Sequence[float | None]:
    if isinstance(value, tuple):
        return value
    return [value if size == 1 and isinstance(value, (int, float)) else None] * size


class Bound(Part):
    """The error bound of a mechanism's whole answer."""

    what: str
    at_most: float = Field(allow_inf_nan=False)
    probability: float | None = Field(None, ge=0, le=1)


class Query(Answer):
    """One query of a run."""

    name: str
    kind: str
    mechanism: str | None = None
    noise: str | None = None
    confidence: float | None = None
    covers: str | None = None
    bound: Bound | None = None
    error: Known = None
    measure: str | None = None
    score: Known = None
    best: Known = None
    scored: str | None = None
    refusals: int = 0
    failures: int = 0


class Mean(Fields):
    """The part of `Figures` that the errors of a query, and of an estimate, are verified for."""

    mean: Number


class Repeats(Part):
    """One query in one cell of a comparison, over the repeats; `answer` is the first repeat's."""

    name: Annotated[str, CHECKED]
    kind: Annotated[str, CHECKED]
    mechanism: str | None = None
    noise: str | None = None
    measure: Annotated[str | None, Checked(str)] = None
    bound: Annotated[Bound | None, Checked(dict[str, Any] | None)] = None
    error: Annotated[Figures | None, Checked(Mean | None)] = None
    rmse: Annotated[Known, Checked(Number | None)] = None
    told: Annotated[Known, Checked(Number | None)] = None
    covered: Known = None
    within_bound: Known = None
    right: Annotated[Known, Checked(Number | None)] = None
    score: Figures | None = None
    best: Known = None
    scored: str | None = None
    answer: Annotated[Answer, Checked(dict[str, Any])] = Answer()


class StatisticsCell(Part):
    """One trust model, mechanism, epsilon and number of clients."""

    trust: Annotated[str, CHECKED]
    asked: Annotated[str | None, CHECKED] = None
    epsilon: Annotated[float | None, Checked(Number | None)] = Field(None, gt=0, allow_inf_nan=False)
    clients: Annotated[int | None, Checked(Annotated[int, Field(ge=1)])] = Field(None, ge=1, le=10**12)
    guarantees: Guarantees = ()
    shuffled: Raw = None
    ledger: Annotated[Raw, Checked(Ledger)] = None
    repeats: Annotated[int | None, Checked(Annotated[int, Field(ge=1)])] = None
    queries: Annotated[tuple[Repeats, ...], Checked(Annotated[list[Repeats], Field(max_length=10_000)])] = ()
    seconds: Raw = None

    def query(self, name: str) -> Repeats | None:
        """Its figures of the query of this name."""
        return next((query for query in self.queries if query.name == name), None)


class Slope(Part):
    """The exponent with which the error of a query changes with the number of clients."""

    trust: str
    mechanism: str | None = None
    query: str
    epsilon: float | None = None
    slope: Known = None
    low: Known = None
    high: Known = None
