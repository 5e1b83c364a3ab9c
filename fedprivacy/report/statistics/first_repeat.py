"""The first repeat's answers beside each other: exact, and under each trust model with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.answers import Answer, Repeats, Row
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Details, Group, Picture, Section, Table, Value
from fedprivacy.report.charts import Chart, Dots, looks
from fedprivacy.report.charts.spacing import spaced
from fedprivacy.report.statistics import dots, figures
from fedprivacy.report.statistics.answer_charts import CHOICES, DRAWN, LISTED, drawn_places, only
from fedprivacy.statistics.comparison import SHOWN

EXACT = f"Exact ({figures.SIMULATION_ONLY})"
OTHERS = 6  # further epsilons with a table of their own
TRUTH = (
    "Upright line: the exact answer, which only this simulation knows; no guarantee covers those who see it."
)


def of_comparison(document: StatisticsComparison) -> list[Section]:
    """The answers at the largest epsilon and the most clients; those of other epsilons in folded tables."""
    queries = [query for query in document.questions if query.kind not in CHOICES]
    epsilon = document.epsilons[-1] if document.epsilons else None
    single = [query for query in queries if len(query.answer.rows) == 1]
    several = [query for query in queries if len(query.answer.rows) > 1]
    groups = [group for group in (single, *([query] for query in several)) if group]
    blocks: list[Block | Details] = []
    for place, group in enumerate(groups):
        panels = [_panel(document, query, epsilon) for query in group]
        if any(panel.rows and panel.series for panel in panels):
            blocks.append(_picture(document, group, panels, epsilon, f"answers-{place}"))
    if not blocks:
        return []
    others = spaced(document.epsilons[:-1], OTHERS)
    blocks += [
        Details(
            f"The answers at epsilon {words.target(cell)}",
            [_table(document, group, cell) for group in groups],
        )
        for cell in others
    ]
    return [Section("answers", "The answers side by side", blocks)]


def _answers(
    document: StatisticsComparison, name: str, epsilon: float | None
) -> tuple[Answer | None, dict[Arm, Answer]]:
    """The exact answer, and that of each arm with noise."""
    exact, reports_by_arm = None, {}
    for arm in document.arms:
        cells = document.of(arm, epsilon=epsilon, clients=document.sizes[-1] if document.sizes else None)
        query = cells[-1].query(name) if cells else None
        if query is None:
            continue
        exact = exact or Answer(labels=query.answer.labels, estimate=query.answer.true)
        if cells[-1].epsilon is None:
            exact = query.answer
        else:
            reports_by_arm[arm] = query.answer
    return exact, reports_by_arm


def _panel(document: StatisticsComparison, query: Repeats, epsilon: float | None) -> Dots:
    exact, by_arm = _answers(document, query.name, epsilon)
    rows = exact.rows if exact else []
    longest = max([rows, *(answer.rows for answer in by_arm.values())], key=len)
    places = drawn_places(query.kind, rows if len(rows) == len(longest) else longest, DRAWN)
    drawn = looks.arms(document.arms)
    columns = [
        dots.Column(drawn[arm], arm_labels.arm(arm), dict(enumerate(answer.rows)))
        for arm, answer in by_arm.items()
    ]
    if any(row.estimate is not None for row in rows):
        truths = {place: Row(row.label, row.estimate) for place, row in enumerate(rows)}
        columns.append(dots.Column(dots.EXACT, EXACT, truths))
    known = [c for c in columns if any(row.estimate is not None for row in c.rows.values())]
    named = {place: longest[place].label for place in places}
    return dots.panel(f"{query.name}: {figures.query_label(query.kind)}", query.kind, named, known)


def _picture(
    document: StatisticsComparison,
    queries: Sequence[Repeats],
    panels: Sequence[Dots],
    epsilon: float | None,
    name: str,
) -> Picture:
    shown = tuple(panel for panel in panels if panel.rows and panel.series)
    caption = [f"The first repeat{_where(document, epsilon)}. Bars: 95 % intervals. {TRUTH}"]
    if any(_unknown(document, query, epsilon) for query in queries):
        caption.append(" No mark: the noise is too large for a result.")
    for panel, query in zip(panels, queries, strict=True):
        size = _size(document, query, epsilon)
        caption.append(only(query.kind, len(panel.rows), size, "drawn", first=size >= SHOWN))
    caption.append(_left_out([_size(document, query, epsilon) for query in queries]))
    return Chart(
        name,
        "Dot chart of the answers under each trust model",
        "".join(caption),
        shown,
        stacked=True,
        tables=(_table(document, queries, epsilon),),
    ).picture


def _unknown(document: StatisticsComparison, query: Repeats, epsilon: float | None) -> bool:
    """Whether an arm that has some of the answer has too much noise for the rest of it."""
    exact, by_arm = _answers(document, query.name, epsilon)
    answers = [answer.rows for answer in (exact, *by_arm.values()) if answer is not None]
    some = (rows for rows in answers if any(row.estimate is not None for row in rows))
    return any(row.estimate is None for rows in some for row in rows)


def _size(document: StatisticsComparison, query: Repeats, epsilon: float | None) -> int:
    exact, by_arm = _answers(document, query.name, epsilon)
    return max(len(answer.rows) for answer in (exact or Answer(), *by_arm.values()))


def _left_out(sizes: Sequence[int]) -> str:
    if all(size < SHOWN for size in sizes):
        return ""
    return f" A comparison keeps the first {SHOWN} categories of an answer; the record of a run has them all."


def _where(document: StatisticsComparison, epsilon: float | None) -> str:
    """The epsilon with its terms, and the number of clients."""
    clients = f", {document.sizes[-1]:,} clients" if document.sizes else ""
    epsilon_terms = words.terms(document.guarantees())
    if epsilon is None or not epsilon_terms:
        return clients
    return (
        f"{clients}, at epsilon {words.target(epsilon)} ({epsilon_terms}, against the observers named above)"
    )


def _table(document: StatisticsComparison, queries: Sequence[Repeats], epsilon: float | None) -> Table:
    """A row for each number, a column for each arm."""
    reports = {query.name: _answers(document, query.name, epsilon) for query in queries}
    arms = [arm for arm in document.arms if any(arm in by_arm for _, by_arm in reports.values())]
    rows: list[Sequence[Value] | Group] = []
    caption = f"The first repeat{_where(document, epsilon)}: each answer with its 95 % interval."
    for query in queries:
        exact, by_arm = reports[query.name]
        columns = [dict(enumerate(by_arm[arm].rows)) if arm in by_arm else {} for arm in arms]
        truths = exact.rows if exact else []
        every = max([truths, *(list(column.values()) for column in columns)], key=len)
        places = drawn_places(query.kind, truths if len(truths) == len(every) else every, LISTED)
        caption += only(query.kind, len(places), len(every), "listed", first=len(every) >= SHOWN)
        if len(every) > 1:
            rows.append(Group(query.name, figures.query_label(query.kind)))
        for place in places:
            exactly = truths[place].estimate if place < len(truths) else None
            cells = (_value_text(query.kind, column.get(place)) for column in columns)
            rows.append((every[place].label or query.name, figures.value(query.kind, exactly), *cells))
    caption += _left_out([_size(document, query, epsilon) for query in queries])
    head = ("", EXACT, *map(arm_labels.arm, arms))
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))


def _value_text(kind: str, row: Row | None) -> str:
    if row is None:
        return "—"
    ends = f"\n{figures.interval(kind, row.interval)}" if row.interval else ""
    return figures.estimate(kind, row) + ends
