"""The pieces of a replay document that say who is exposed, and what they say in words."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from fedprivacy.documents.attack import Count, Measure, Real
from fedprivacy.documents.roc import Rate
from fedprivacy.io.part import Part
from fedprivacy.report import words
from fedprivacy.report.attacks import figures


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


class Carried(Part):
    """The share of the true positives, and of the false alarms, that so many most exposed records carry."""

    records: Annotated[int, Field(ge=1, le=10**12)]
    hits: Rate
    alarms: Rate | None = None


class Spread(Part):
    """How many records have an advantage between two edges: those exposed for certain, and the others."""

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


class Exposure(Part):
    """Who is exposed by one attack; what older documents lack is None or empty.

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
        carried: What the most exposed records carry, from the fewest on.
        spread: The advantages of all records.
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

    @property
    def basis(self) -> str:
        """What the figures rest on."""
        return (
            f"{figures.score(self.method)}, on each of {self.models:,} reference models in turn, with the "
            f"help of the others; each was trained without noise on a half of the {self.records:,} "
            "records. A record is called a member above a threshold that "
            f"{figures.percent(self.fpr)} of a model's non-members pass. So this is what records stand to "
            "lose to models that are trained like the released one without privacy: a guarantee of the run "
            "is not reckoned with."
        )

    @property
    def summary(self) -> str:
        """How many are exposed, for certain."""
        return (
            f"{self.exposed:,} of {self.records:,} records are exposed for certain: models that were trained "
            "on them call them members more often than others do (Fisher's exact test at 5 %, corrected for "
            "their number)."
        )

    @property
    def carrying(self) -> str:
        """What part of the leakage the most exposed records carry; empty where that is not known."""
        if not self.carried:
            return ""
        each = [
            " and ".join(
                [
                    f"{figures.percent(part.hits)} of the true positives",
                    *(
                        [f"{figures.percent(part.alarms)} of the false alarms"]
                        if part.alarms is not None
                        else []
                    ),
                ]
            )
            + f" fall on the {part.records:,} most exposed ({figures.percent(part.records / self.records)})"
            for part in self.carried
        ]
        return (
            f"Of the {self.records:,} records, {words.listed(each)}. They are ranked by what one half of the "
            "models say of them and counted on the other half, so that luck does not flatter. Were all "
            "records alike, each part would have its own share."
        )
