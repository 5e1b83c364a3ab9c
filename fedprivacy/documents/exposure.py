"""The part of a replay document about the exposed records, for the operator alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from fedprivacy.documents.attack import Count, Measure, Real
from fedprivacy.documents.roc import Rate
from fedprivacy.io.document_part import Part


class Record(Part):
    """One record by its number in the training data, from 0: nothing of its content."""

    record: Count
    advantage: Measure
    hits: Count
    models: Count
    alarms: Count
    others: Count


class Class(Part):
    """One class; None where a model had too few members or non-members of it."""

    auc: Measure | None = None
    rate: Measure | None = None
    alarms: Measure | None = None
    records: Count


class ExposedGroup(Class):
    """One group of records: its exposure, beside accuracies on its test records.

    Args:
        accuracy: Of the attacked model; the interval is over records.
        reference_accuracy: Of the reference models, which are trained without noise; the interval is over
            models.
    """

    accuracy: Measure | None = None
    reference_accuracy: Measure | None = None


class Carried(Part):
    """The share of the true positives, and of the false alarms, that so many most exposed records carry."""

    records: Annotated[int, Field(ge=1, le=10**12)]
    hits: Rate
    alarms: Rate | None = None


class Spread(Part):
    """The number of records with an advantage between two edges, certainly exposed or not."""

    edges: tuple[Real, ...] = Field(min_length=2, max_length=1001)
    certain: tuple[Count, ...]
    others: tuple[Count, ...]

    @property
    def total(self) -> list[int]:
        """The records between every two edges."""
        return [count + other for count, other in zip(self.certain, self.others, strict=True)]

    @model_validator(mode="after")
    def _between_edges(self) -> Spread:
        if not len(self.edges) - 1 == len(self.certain) == len(self.others):
            raise ValueError("certain and others must have one count between every two edges")
        if any(later <= earlier for earlier, later in pairwise(self.edges)):
            raise ValueError("edges must rise")
        return self


Groups = Annotated[dict[str, ExposedGroup], Field(max_length=1000)]


class Exposure(Part):
    """The exposure by one attack; fields that older documents lack are None or empty.

    Args:
        attack: Its name.
        method: How it scores.
        fpr: The share of a model's non-members that pass its threshold.
        models: References that were attacked in turn.
        records: Those that were judged.
        exposed: How many of them are exposed for certain.
        most_exposed: The first of them.
        classes: By number.
        auc: Of all records together.
        carried: The shares of the attack's success on the most exposed records, fewest records first.
        spread: The advantages of all records.
        groups: By column, then by group (`evaluation.groups`); of columns that are features.
    """

    attack: str
    method: str
    fpr: Rate
    models: Count
    records: Count
    exposed: Count
    most_exposed: tuple[Record, ...]
    classes: dict[str, Class] = Field(default_factory=dict)
    auc: Measure | None = None
    carried: Annotated[tuple[Carried, ...], Field(max_length=20)] = ()
    spread: Spread | None = None
    groups: Annotated[dict[str, Groups], Field(max_length=100)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _of_as_many(self) -> Exposure:
        if self.spread is not None:
            if sum(self.spread.certain) != self.exposed:
                raise ValueError("spread.certain must add up to exposed")
            if sum(self.spread.total) > self.records:
                raise ValueError("spread must not have more than records")
        if any(part.records > self.records for part in self.carried):
            raise ValueError("carried must not be of more than records")
        return self


class Exposures(Part):
    """All exposures of a replay."""

    exposures: Annotated[tuple[Exposure, ...], Field(max_length=1000)] = ()
