"""For whom a model works: accuracy by group of held-out records and by held-out user, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from fedprivacy.attacks.intervals import score_interval
from fedprivacy.documents.cell import Cell, CellGroup
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.quality import FEW, ColumnGroups, GroupAccuracy
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import arm_labels, held_out_users, majority, words
from fedprivacy.report.blocks import Block, Details, Entry, Group, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Row, Series, accuracy_range, looks
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look
from fedprivacy.sampling.group_limits import COLUMN
from fedprivacy.scenario.data import DEALT_BY_LABEL

HEADING = "For whom does it work"
OF_RECORDS = "Intervals: 95 % (Wilson), over the records of each group by itself, for this one model."
OF_SEEDS = "Intervals: 95 %, as wide as over the seeds and as Wilson's over the records of a group."
NOT_LEARNED = (
    f"Of a model that is no better than {majority.NAMING}, gaps between groups are those of their labels."
)
AT_RANDOM = (
    "Accuracy: clients' records are dealt at random, and so are the test records here, to each group its "
    "share. The model is the same for all, so the accuracies of groups differ by chance alone."
)
BY_LABEL = (
    "Accuracy: clients' records are dealt by label, and so are the test records here. Each group is measured "
    "on labels as its own clients have them, and pays where its labels are heard less."
)
MEASURED = {
    "by-user": "Accuracy: on the held-out records of the clients of each group.",
    **dict.fromkeys(DEALT_BY_LABEL, BY_LABEL),
}
WITHHELD = (
    "The accuracy of each group is operator-only (operator.html): test records are dealt to groups by the "
    "labels of clients' records, which are not declared public (data.public)."
)
MOST_ROWS = 60  # of a picture; the table has all


@dataclass(frozen=True)
class Model:
    """One model, or the models of a cell, by group.

    Args:
        look: Of its marks.
        label: Its name.
        columns: Its groups by each column.
        learned: Whether it exceeds always naming the most frequent class. If not, the gaps between groups are
            those of their labels, and nobody is served.
    """

    look: Look
    label: str
    columns: Sequence[ColumnGroups]
    learned: bool = True

    def of(self, column: str, group: str) -> GroupAccuracy | None:
        """Its figures of a group; None where there are none."""
        groups = (each for part in self.columns if part.column == column for each in part.groups)
        return next((each for each in groups if each.group == group), None)


def of_run(document: RunDocument, trust: str) -> list[Section]:
    """The groups and users of a run; no section where it has neither."""
    final = document.final
    if final is None:
        return []
    blocks: list[Block | Details] = [*_of_clients(document, final.groups)]
    if final.groups:
        model = Model(looks.look(Arm(trust)), "Accuracy", final.groups, not majority.of_run(document))
        where = f"Accuracy of the final model by group of {words.evaluated_on(document.evaluated_on)}."
        blocks += _groups([model], f"{where} {OF_RECORDS}")
    if final.users:
        blocks += held_out_users.of_model(final.users, looks.look(Arm(trust)))
    return [Section("groups", HEADING, blocks)] if blocks else []


def of_comparison(document: CompareDocument) -> list[Section]:
    """The groups in each arm at its largest epsilon, with every cell below, and the worst users of each."""
    cells = {
        id(cell): (arm_labels.cell(arm, cell.epsilon), looks.look(arm), cell)
        for arm in document.arms
        for cell in document.of(arm)
    }
    every = {
        key: Model(look, label, over_seeds(cell), not majority.of_cell(cell))
        for key, (label, look, cell) in cells.items()
        if cell.groups
    }
    users = [(label, cell) for label, _, cell in cells.values() if cell.users is not None]
    columns = [column for model in every.values() for column in model.columns]
    blocks: list[Block | Details] = [*_of_clients(document, columns)]
    epsilon_terms = words.terms(document.guarantees())
    epsilon = f" Each epsilon: {epsilon_terms}, against the observers named above." if epsilon_terms else ""
    if every:
        where = (
            f"Accuracy by group of {words.evaluated_on(document.evaluated_on)}, {document.averaged}, each at "
            f"its largest epsilon. {OF_SEEDS}{epsilon}"
        )
        widest = [every[id(cell)] for cell in document.widest() if id(cell) in every]
        blocks += _groups(widest or list(every.values()), where)
        if len(every) > len(widest):
            table = _table(list(every.values()), f"Accuracy by group in every cell. {OF_SEEDS}{epsilon}")
            blocks.append(Details("The groups at every epsilon", [table]))
    if users:
        blocks.append(held_out_users.of_cells(users, OF_SEEDS, epsilon))
    return [Section("groups", HEADING, blocks)] if blocks else []


def _of_clients(document: RunDocument | CompareDocument, columns: Iterable[ColumnGroups]) -> list[Text]:
    """Whose records the accuracy of groups of clients is measured on, or that it is withheld."""
    if document.lacks_truth:
        return [Text(WITHHELD)]
    if not any(column.column == COLUMN for column in columns):
        return []
    partition = document.scenario.get("data", {}).get("partition", "one-per-example")
    return [Text(MEASURED.get(partition, AT_RANDOM))]


def worst_group(document: RunDocument) -> str | None:
    """The group that a run serves worst, in one line for a terminal.

    Args:
        document: A run.

    Returns:
        None where the run has no groups, none of a column is behind the best, or the model is no better than
        always naming the most frequent class. Groups with budgets do not count: a terminal lists each.
    """
    if document.final is None or majority.of_run(document):
        return None
    return _worst(column for column in document.final.groups if column.column != COLUMN)


def heading(column: str) -> str:
    """A column as a person would call it; that of groups of clients has no name in the data."""
    return "group of clients" if column == COLUMN else column


def _worst(columns: Iterable[ColumnGroups]) -> str | None:
    """The group furthest behind, where the gap exceeds chance for all pairs together (Bonferroni)."""
    compared = [
        (column.column, [g for g in column.groups if not g.few and g.accuracy is not None])
        for column in columns
    ]
    pairs = sum(len(groups) * (len(groups) - 1) // 2 for _, groups in compared)
    if not pairs:
        return None
    z = NormalDist().inv_cdf(1 - 0.05 / (2 * pairs))
    behind = []
    for name, groups in compared:
        best = max(groups, key=_accuracy, default=None)
        for group in groups:
            if best is not None and _accuracy(best) - _accuracy(group) > z * math.hypot(
                _error(best), _error(group)
            ):
                behind.append((_accuracy(best) - _accuracy(group), name, group))
    if not behind:
        return None
    gap, name, group = max(behind, key=lambda entry: entry[0])
    return (
        f"Served worst: {heading(name)} {group.group}, {words.accuracy(group.accuracy)} of "
        f"{group.records:,} records, {100 * gap:.1f} points below the best group."
    )


def _accuracy(group: GroupAccuracy) -> float:
    return group.accuracy or 0.0


def _error(group: GroupAccuracy) -> float:
    """The standard error of an accuracy, of a share that is never quite 0 or 1 (Agresti and Coull 1998)."""
    share = (_accuracy(group) * group.records + 2) / (group.records + 4)
    return math.sqrt(share * (1 - share) / (group.records + 4))


def over_seeds(cell: Cell) -> list[ColumnGroups]:
    """The groups of a cell as those of one model: means, with intervals over seeds and over records."""
    return [
        ColumnGroups(
            column=column.column,
            edges=column.edges,
            groups=tuple(
                GroupAccuracy(
                    group=group.group,
                    records=group.records or 0,
                    accuracy=group.accuracy.mean if group.accuracy else None,
                    **_ends(group),
                    balanced_accuracy=group.balanced_accuracy.mean if group.balanced_accuracy else None,
                    gap=group.gap.mean if group.gap else None,
                    few=group.few,
                )
                for group in column.groups
            ),
        )
        for column in cell.groups
    ]


def _ends(group: CellGroup) -> dict[str, float]:
    """The interval of a group's mean accuracy: seeds alone may agree on the six records of a group."""
    if group.accuracy is None or group.accuracy.mean is None or not group.records:
        return {}
    low, high = score_interval(group.accuracy.mean, group.records)
    seeds_low, seeds_high = group.accuracy.interval or (low, high)
    return {"low": max(0.0, min(low, seeds_low)), "high": min(1.0, max(high, seeds_high))}


def _groups(models: Sequence[Model], where: str) -> list[Block | Details]:
    table = _table(models, where)
    sentences = [
        f"{model.label}: {worst[0].lower()}{worst[1:]}" if len(models) > 1 else worst
        for model in models
        if model.learned and (worst := _worst(model.columns))
    ]
    sentences += [NOT_LEARNED] if not all(model.learned for model in models) else []
    if any(group.few for group in _listed(models)):
        sentences.append(f"Groups of fewer than {FEW} records are too few to compare.")
    blocks: list[Block | Details] = [Text(" ".join(sentences))] if sentences else []
    panel = _panel(models)
    if 2 <= len(panel.rows) <= MOST_ROWS:
        chart = Chart("groups", "Dot chart of the accuracy by group", where, (panel,), tables=(table,))
        return [*blocks, chart.picture]
    return [*blocks, Details("All groups", [table])]


def _listed(models: Sequence[Model]) -> list[GroupAccuracy]:
    return [group for column in models[0].columns for group in column.groups]


def _panel(models: Sequence[Model]) -> Dots:
    """A heading for each column, below it a row for each group with a mark for each model."""
    rows: list[Row] = []
    points: dict[int, list[Point]] = {at: [] for at in range(len(models))}
    for column in models[0].columns:
        rows.append(Row(heading(column.column), heading=True))
        for group in column.groups:
            few = " (few)" if group.few else ""
            rows.append(Row(f"{group.group}{few}", says=f"{heading(column.column)} {group.group}{few}"))
            for at, model in enumerate(models):
                known = model.of(column.column, group.group)
                if known is not None and known.accuracy is not None:
                    ends = None if known.low is None or known.high is None else (known.low, known.high)
                    points[at].append(Point(known.accuracy, len(rows) - 1, ends))
    series = tuple(
        Series(model.look, model.label, tuple(points[at])) for at, model in enumerate(models) if points[at]
    )
    shown = [value for each in series for p in each.points for value in (p.x, *(p.interval or ()))]
    limits = accuracy_range(shown) if shown else (0.0, 1.0)
    x = Axis("Accuracy within the group", words.accuracy, tick_text=percent, limits=limits)
    return Dots(x, tuple(rows), series, values=len(series) == 1)


def _table(models: Sequence[Model], caption: str) -> Table:
    alone = len(models) == 1
    rows: list[Sequence[Value] | Group] = []
    for column in models[0].columns:
        edges = ", quartiles or given edges" if column.edges else ""
        rows.append(Group(heading(column.column), f"{words.counted(len(column.groups), 'group')}{edges}"))
        for group in column.groups:
            figures = [model.of(column.column, group.group) for model in models]
            cells: list[Value] = [group.group, f"{group.records:,}" + " (too few)" * group.few]
            cells += [figure(each) for each in figures]
            if alone:
                cells += [words.accuracy(group.balanced_accuracy), _gap(group.gap)]
            rows.append(cells)
    head = ["Group", "Held-out records", *(model.label for model in models)]
    head += ["Balanced accuracy", "Points below the best"] * alone
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))


def figure(group: GroupAccuracy | None) -> Value:
    """The accuracy of a group with its interval, for a table."""
    if group is None or group.accuracy is None:
        return "—"
    if group.low is None or group.high is None:
        return words.accuracy(group.accuracy)
    return Entry(words.accuracy(group.accuracy), words.share_interval(group.low, group.high))


def _gap(gap: float | None) -> str:
    return "—" if gap is None else f"{100 * gap:.1f}"
