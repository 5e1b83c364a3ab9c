"""The records exposed by an attack on the released model: classes and single records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fedprivacy.documents.exposure import Exposure, Exposures
from fedprivacy.errors import InputError
from fedprivacy.io.validation import damaged
from fedprivacy.report import words
from fedprivacy.report.attacks import exposed_classes, exposed_groups, exposed_records, exposed_words, figures
from fedprivacy.report.blocks import Block, Details, Table, Text

FIELD = "exposures"  # of a replay document, for the operator alone
SHOWN = 20  # records on the page
CLASSES = 1000  # of more a picture would be a blot, and take seconds
DRAWN = 6  # attacks whose records and classes are drawn; the tables have the rest


def read(document: Mapping[str, Any], source: str = "report") -> tuple[Exposure, ...]:
    """The exposure in a replay document; empty if no attack measured it.

    Raises:
        InputError: it is damaged.
    """
    try:
        return Exposures.model_validate({FIELD: document.get(FIELD) or ()}).exposures
    except ValidationError as error:
        raise _damaged(error, source) from None


def blocks(document: Mapping[str, Any]) -> list[Block | Details]:
    """All records, the most exposed, classes and groups, for each attack with exposure."""
    parts: list[Block | Details] = []
    for number, exposure in enumerate(read(document), start=1):
        text = f"{exposed_words.summary(exposure)} {exposed_words.basis(exposure)}"
        parts.append(Text(f"Who is exposed by the attack {exposure.attack}: {text}"))
        name, drawn = f"exposed-{number}", number <= DRAWN
        if drawn and exposure.spread is not None and any(exposure.spread.total):
            parts.append(exposed_records.picture(exposure, exposure.spread, name))
        if carrying := exposed_words.carrying(exposure):
            parts.append(Text(carrying))
        parts.append(_records(exposure))
        if drawn and 1 < len(exposed_classes.figured_classes(exposure)) <= CLASSES:
            parts.append(exposed_classes.picture(exposure, name, _classes(exposure)))
        elif exposure.classes:
            parts.append(Details(f"Each class, by the attack {exposure.attack}", [_classes(exposure)]))
        parts += exposed_groups.blocks(exposure, name, drawn=drawn)
    return parts


def rate(hits: int, models: int) -> str:
    """So many of so many models.

    >>> rate(31, 32)
    '31 of 32'
    """
    return f"{hits:,} of {models:,}"


def _records(exposure: Exposure) -> Table:
    rows = [
        (
            f"{record.record:,}",
            rate(record.hits, record.models),
            rate(record.alarms, record.others),
            figures.share(record.advantage.value),
            figures.ends(record.advantage),
        )
        for record in exposure.most_exposed[:SHOWN]
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


def _classes(exposure: Exposure) -> Table:
    by_area = sorted(exposure.classes.items(), key=lambda item: -(item[1].auc.value if item[1].auc else -1.0))
    rows = [
        (
            label,
            f"{figures_of_class.records:,}",
            figures.share(figures_of_class.auc.value if figures_of_class.auc else None),
            figures.ends(figures_of_class.auc) if figures_of_class.auc else "—",
            figures.percent(figures_of_class.rate.value if figures_of_class.rate else None),
            figures.percent(figures_of_class.alarms.value if figures_of_class.alarms else None),
        )
        for label, figures_of_class in by_area
    ]
    return Table(
        "Each class by its AUC, the mean over models. An average over all records hides this spread.",
        ("Class", "Records", "AUC", "95 % interval", "Members called so", "Non-members called so"),
        rows,
        numeric=frozenset({1, 2, 3, 4, 5}),
    )


def _damaged(error: ValidationError, source: str) -> InputError:
    return damaged(error, source, "Restore the file, or attack again.")
