"""The accuracy within each class: the classes that a model serves badly, and the effect of noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.quality import ClassAccuracy
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Details, Section, Table, Text
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Row, Series, looks
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look

DRAWN = 20  # classes that a picture has room for
AVERAGE = "An average over all records hides this spread."


@dataclass(frozen=True)
class Column:
    """The accuracy of one model on each class."""

    look: Look
    label: str
    classes: Sequence[ClassAccuracy]

    def of(self, number: int | str) -> float | None:
        """The accuracy on the class of this number; None where it is not known."""
        accuracies = (c.accuracy for c in self.classes if c.number == number)
        accuracy = next(accuracies, None)
        return accuracy if accuracy is not None and math.isfinite(accuracy) else None


def of_run(document: RunDocument, trust: str) -> list[Section]:
    """The classes of one run; no section where they were not evaluated apart."""
    classes = document.final.per_class if document.final else None
    if not classes:
        return []
    where = (
        f"Accuracy within each class on {words.evaluated_on(document.evaluated_on)}, at the last evaluation."
    )
    return _section([Column(looks.look(Arm(trust)), "Accuracy", classes)], where, [])


def of_comparison(document: CompareDocument) -> list[Section]:
    """The classes in each arm at its largest epsilon, and in every cell below."""
    drawn = looks.arms(document.arms)
    every = {
        id(cell): Column(drawn[arm], arm_labels.cell(arm, cell.epsilon), cell.per_class)
        for arm in document.arms
        for cell in document.of(arm)
        if cell.per_class
    }
    if not every:
        return []
    where = f"Accuracy within each class on {words.evaluated_on(document.evaluated_on)}, {document.averaged}"
    epsilon_terms = words.terms(document.guarantees())
    epsilon = f" Each epsilon: {epsilon_terms}, against the observers named above." if epsilon_terms else ""
    widest = [column for cell in document.widest() if (column := every.get(id(cell)))]
    more: list[Block | Details] = []
    if len(every) > len(widest):
        table = _table(list(every.values()), f"{where}.{epsilon}")
        more.append(Details("The classes at every epsilon", [table]))
    shown = widest or list(every.values())
    return _section(shown, f"{where}, each at its largest epsilon.{epsilon}", more)


def _section(columns: Sequence[Column], where: str, more: Sequence[Block | Details]) -> list[Section]:
    table = _table(columns, where)
    blocks: list[Block | Details] = [Text(f"{_worst(columns)} {AVERAGE}")]
    if 2 <= len(table.rows) <= DRAWN:
        title = "Dot chart of the accuracy within each class"
        chart = Chart("classes", title, where, (_panel(columns),), terms=_worst(columns), tables=(table,))
        blocks.append(chart.picture)
    else:
        blocks.append(Details(f"All {len(table.rows):,} classes", [table]))
    return [Section("classes", "Accuracy within each class", [*blocks, *more])]


def _classes(columns: Sequence[Column]) -> dict[int | str, ClassAccuracy]:
    """The classes by number, in the order of the document."""
    return {entry.number: entry for column in columns for entry in column.classes}


def _names(columns: Sequence[Column]) -> dict[int | str, str]:
    """The label of each class, with its number if another class has the same name."""
    classes = _classes(columns)
    often = Counter(entry.name for entry in classes.values())
    return {
        number: entry.name if often[entry.name] == 1 else f"{entry.name} (class {number})"
        for number, entry in classes.items()
    }


def _table(columns: Sequence[Column], caption: str) -> Table:
    named = _names(columns)
    rows = [
        (
            named[number],
            "—" if entry.records is None else f"{entry.records:,}",
            *(words.accuracy(column.of(number)) for column in columns),
        )
        for number, entry in _classes(columns).items()
    ]
    head = ("Class", "Held-out records", *(column.label for column in columns))
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))


def _worst(columns: Sequence[Column]) -> str:
    """Under each model the class that fares worst, and the one that fares best."""
    sentences = []
    for column in columns:
        named = _names([column]).items()
        known = [(value, name) for number, name in named if (value := column.of(number)) is not None]
        if known:
            (low, worst), (high, best) = min(known), max(known)
            sentences.append(
                f"{column.label}: from {words.accuracy(low)} for class {worst} to {words.accuracy(high)} "
                f"for class {best}."
            )
    return " ".join(sentences)


def _panel(columns: Sequence[Column]) -> Dots:
    """A row for each class, a mark for each model, a line from the worst to the best."""
    named = _names(columns)
    series = []
    for column in columns:
        known = [(column.of(number), float(row)) for row, number in enumerate(named)]
        points = tuple(Point(accuracy, row) for accuracy, row in known if accuracy is not None)
        series.append(Series(column.look, column.label, points))
    x = Axis("Accuracy within the class", words.accuracy, tick_text=percent, limits=(0.0, 1.0))
    return Dots(x, tuple(map(Row, named.values())), tuple(series), joined=True)
