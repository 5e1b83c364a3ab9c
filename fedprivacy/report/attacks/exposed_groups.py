"""The groups of records in one picture: who pays in accuracy, and who is exposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fedprivacy.documents.attack import Measure
from fedprivacy.documents.exposure import ExposedGroup, Exposure
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import figures
from fedprivacy.report.blocks import Block, Details, Group, Table, Value
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Reference, Row, Series, accuracy_range
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look

Measured = Callable[[ExposedGroup], Measure | None]
MOST_ROWS = 60  # of a picture; the table has all
ACCURATE: Look = (svg.CENTRAL, "o", "")
REFERENCE: Look = (svg.NONE, "d", "")
EXPOSED: Look = (svg.LOCAL, "s", "")


def blocks(exposure: Exposure, name: str, *, drawn: bool) -> list[Block | Details]:
    """The groups, if the scenario names any that are features.

    Args:
        exposure: The exposed records, classes and groups.
        name: Unique on the page.
        drawn: Whether there is a picture beside the table.
    """
    if not exposure.groups:
        return []
    caption = (
        f"Who pays and who is exposed, by the attack {exposure.attack}. Accuracy on each group's test "
        "records: of the attacked model (95 % Wilson intervals), and of the attacker's reference models, "
        "which are trained without noise on half of the records (95 % intervals over models). Exposure: how "
        "well the attack separates the group's members from its non-members, the mean AUC over the "
        "reference models with 95 % intervals. Each interval holds for its group by itself."
    )
    table = _table(exposure, caption)
    accuracies = _accuracies(exposure)
    assert accuracies.x.limits is not None
    rows = sum(1 + len(parts) for parts in exposure.groups.values())
    if not drawn or rows > MOST_ROWS:
        return [Details(f"Each group, by the attack {exposure.attack}", [table])]
    chart = Chart(
        f"{name}-groups",
        "Dot charts of accuracy and of exposure by group",
        caption,
        (accuracies, _areas(exposure)),
        terms=caption,
        tables=(table,),
    )
    return [chart.picture]


def _accuracies(exposure: Exposure) -> Dots:
    rows, points = _dots(exposure, lambda part: part.accuracy)
    _, others = _dots(exposure, lambda part: part.reference_accuracy)
    shown = [value for point in (*points, *others) for value in (point.x, *(point.interval or ()))]
    limits = accuracy_range(shown) if shown else (0.0, 1.0)
    x = Axis("Accuracy on test records", words.accuracy, tick_text=percent, limits=limits)
    series = [Series(ACCURATE, "Attacked model", points)]
    series += [Series(REFERENCE, "Reference models, without noise", others)] if others else []
    return Dots(x, rows, tuple(series), heading="Who pays: accuracy")


def _areas(exposure: Exposure) -> Dots:
    rows, points = _dots(exposure, lambda part: part.auc)
    low = min((point.interval[0] for point in points if point.interval), default=figures.GUESSING)
    x = Axis(
        "AUC of the attack (0.5: guessing)",
        figures.share,
        tick_text=lambda area: words.number(round(area, 6)),
        limits=(max(0.0, min(figures.GUESSING, low) - 0.03), 1.0),
    )
    levels = [Reference(figures.GUESSING, label="Guessing")]
    series = (Series(EXPOSED, "AUC", points),)
    return Dots(x, rows, series, heading="Who is exposed: AUC", references=tuple(levels))


def _dots(exposure: Exposure, measure: Measured) -> tuple[tuple[Row, ...], tuple[Point, ...]]:
    rows: list[Row] = []
    points = []
    for column, parts in exposure.groups.items():
        rows.append(Row(column, heading=True))
        for label, part in parts.items():
            rows.append(Row(label, says=f"{column} {label}"))
            if (figure := measure(part)) is not None:
                points.append(Point(figure.value, len(rows) - 1, (figure.low, figure.high)))
    return tuple(rows), tuple(points)


def _table(exposure: Exposure, caption: str) -> Table:
    rows: list[Sequence[Value] | Group] = []
    for column, parts in exposure.groups.items():
        rows.append(Group(column, words.counted(len(parts), "group")))
        for label, part in parts.items():
            ends = None if part.accuracy is None else (part.accuracy.low, part.accuracy.high)
            rows.append(
                (
                    label,
                    words.accuracy(part.accuracy.value if part.accuracy else None),
                    words.share_interval(*ends) if ends else "—",
                    words.accuracy(part.reference_accuracy.value if part.reference_accuracy else None),
                    f"{part.records:,}",
                    figures.share(part.auc.value if part.auc else None),
                    figures.ends(part.auc) if part.auc else "—",
                    figures.percent(part.rate.value if part.rate else None),
                    figures.percent(part.alarms.value if part.alarms else None),
                )
            )
    head = (
        *("Group", "Accuracy", "95 % interval", "Without noise", "Records attacked", "AUC", "95 % interval"),
        *("Members called so", "Non-members called so"),
    )
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))
