"""Whose records an attack on the released model tells: each class, and the most exposed records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from fedprivacy.errors import InputError
from fedprivacy.fields import damaged
from fedprivacy.report import words
from fedprivacy.report.attacks import figures
from fedprivacy.report.attacks.parts import Count, Measure, Rate
from fedprivacy.report.blocks import Block, Details, Table, Text
from fedprivacy.report.parts import Part

FIELD = "exposures"  # of a replay document, for the operator alone
SHOWN = 20  # records on the page


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


class Exposure(Part):
    """Who is exposed by one attack.

    Args:
        attack: Its name.
        method: How it scores.
        fpr: The share of a model's non-members that pass its threshold.
        models: References that were attacked in turn.
        records: Those that were judged.
        exposed: How many of them are exposed for certain.
        most_exposed: The first of them.
        classes: By number.
    """

    attack: str
    method: str
    fpr: Rate
    models: Count
    records: Count
    exposed: Count
    most_exposed: tuple[Record, ...]
    classes: dict[str, Class] = Field(default_factory=dict)

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


class _Exposures(Part):
    exposures: Annotated[tuple[Exposure, ...], Field(max_length=1000)] = ()


def read(document: Mapping[str, Any], source: str = "report") -> tuple[Exposure, ...]:
    """What a replay document says of who is exposed; nothing where none of its attacks tells.

    Raises:
        InputError: it is damaged.
    """
    try:
        return _Exposures.model_validate({FIELD: document.get(FIELD) or ()}).exposures
    except ValidationError as error:
        raise _damaged(error, source) from None


def blocks(document: Mapping[str, Any]) -> list[Block | Details]:
    """The most exposed records and classes of each attack that tells."""
    found: list[Block | Details] = []
    for one in read(document):
        found.append(Text(f"Who is exposed by the attack {one.attack}: {one.summary} {one.basis}"))
        found.append(_records(one))
        if one.classes:
            found.append(Details(f"Each class, by the attack {one.attack}", [_classes(one)]))
    return found


def rate(hits: int, models: int) -> str:
    """So many of so many models.

    >>> rate(31, 32)
    '31 of 32'
    """
    return f"{hits:,} of {models:,}"


def _records(one: Exposure) -> Table:
    rows = [
        (
            f"{record.record:,}",
            rate(record.hits, record.models),
            rate(record.alarms, record.others),
            figures.share(record.advantage.value),
            figures.ends(record.advantage),
        )
        for record in one.most_exposed[:SHOWN]
    ]
    return Table(
        f"The {words.counted(len(rows), 'most exposed record')}, by number in the training data from 0, by "
        "the lower end of the advantage: the share of models with the record that call it a member, less "
        "that of models without it. Each interval holds for its record by itself; the first among many are "
        "a little flattered by chance.",
        ("Record", "Called in models with it", "In models without it", "Advantage", "95 % interval"),
        rows,
        numeric=frozenset({1, 2, 3, 4}),
    )


def _classes(one: Exposure) -> Table:
    by_area = sorted(one.classes.items(), key=lambda item: -(item[1].auc.value if item[1].auc else -1.0))
    rows = [
        (
            label,
            f"{own.records:,}",
            figures.share(own.auc.value if own.auc else None),
            figures.ends(own.auc) if own.auc else "—",
            figures.percent(own.rate.value if own.rate else None),
            figures.percent(own.alarms.value if own.alarms else None),
        )
        for label, own in by_area
    ]
    return Table(
        "Each class by its AUC, the mean over models. An average over all records hides this spread.",
        ("Class", "Records", "AUC", "95 % interval", "Members called so", "Non-members called so"),
        rows,
        numeric=frozenset({1, 2, 3, 4, 5}),
    )


def _damaged(error: ValidationError, source: str) -> InputError:
    return damaged(error, source, "Restore the file, or attack again.")
