"""The accuracy within each class: whom a model serves badly, and what noise does to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.ticker import FixedLocator, FuncFormatter

from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.run import ClassAccuracy, RunDocument
from fedprivacy.report import marks, names, plots, svg, words
from fedprivacy.report.blocks import Block, Details, Picture, Section, Table, Text

DRAWN = 20  # classes that a picture has room for
SHIFT = 0.16  # of a row, between the marks of two models: none covers another
NAME, NAME_NARROW = 16, 11  # characters of a class in the picture; the table has all
ROW = 30  # pixels of a class
AVERAGE = "An average over all records hides this spread."


@dataclass(frozen=True)
class Column:
    """The accuracy of one model on each class."""

    look: plots.Look
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
    return _section([Column(plots.look(Arm(trust)), "Accuracy", classes)], where, [])


def of_comparison(document: CompareDocument) -> list[Section]:
    """The classes in each arm at its largest epsilon, and in every cell below."""
    every = {
        id(cell): Column(plots.look(arm), names.cell(arm, cell.epsilon), cell.per_class)
        for arm in document.arms
        for cell in document.of(arm)
        if cell.per_class
    }
    if not every:
        return []
    where = f"Accuracy within each class on {words.evaluated_on(document.evaluated_on)}, {document.averaged}"
    stands_with = words.terms(document.guarantees())
    epsilon = f" Epsilon stands at {stands_with}, against the observers named above." if stands_with else ""
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
        alt = f"{where} {_worst(columns)}"
        blocks.append(Picture(partial(_draw, columns, title, alt), where, [table]))
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


def _draw(columns: Sequence[Column], title: str, alt: str, *, narrow: bool) -> str:
    """A row for each class, a mark for each model, a line from the worst to the best."""
    named = _names(columns)
    rows = list(named)
    several = len(columns) > 1
    lines = marks.lines([column.label for column in columns], narrow=narrow) if several else 0
    width, top = (360.0, 12.0 + marks.HEAD * lines) if narrow else (920.0, 12.0 + marks.HEAD * lines)
    with svg.style():
        drawn = svg.figure(width, top + ROW * len(rows) + 52)
        axes = svg.place(drawn, left=110 if narrow else 150, top=top, right=20, bottom=52)
        axes.set_xlim(0, 1)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=True, axis="x")
        axes.yaxis.set_major_locator(FixedLocator(range(len(rows))))
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda y, _: marks.short(named[rows[round(y)]], NAME_NARROW if narrow else NAME))
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
        axes.set_xlabel("Accuracy within the class", labelpad=6)
        for row, number in enumerate(rows):
            known = [value for column in columns if (value := column.of(number)) is not None]
            if several and len(known) > 1:
                axes.plot([min(known), max(known)], [row] * 2, color=svg.GRID, linewidth=5, zorder=1)
        for place, column in enumerate(columns):
            shift = min(SHIFT, 0.8 / len(columns)) * (place - (len(columns) - 1) / 2)
            at = [
                (value, row + shift)
                for row, number in enumerate(rows)
                if (value := column.of(number)) is not None
            ]
            color, marker = marks.mark(column.look)
            axes.plot(
                [x for x, _ in at], [y for _, y in at], linestyle="", color=color, marker=marker,
                markersize=10, markeredgecolor=svg.PAPER, clip_on=False,
            )  # fmt: skip
        if several:
            marks.legend(drawn, [(column.look, column.label) for column in columns], narrow=narrow)
        return svg.write(drawn, "classes-narrow" if narrow else "classes-wide", title, alt)
