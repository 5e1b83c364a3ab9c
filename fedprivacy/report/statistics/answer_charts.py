"""The answers of a run: pictures of dots with intervals, and the choices in a table."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.answers import Query, Row
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.statistics import StatisticsDocument
from fedprivacy.report import words
from fedprivacy.report.blocks import Block, Details, Group, Picture, Table, Value
from fedprivacy.report.charts import Chart, Dots, looks
from fedprivacy.report.charts.spacing import spaced
from fedprivacy.report.statistics import dots, figures

DRAWN = 40  # rows of a query that a picture has room for
LISTED = 400  # rows of a query that a table lists
CHOICES = ("most-common", "best-price")
TRUE = f"True value ({figures.SIMULATION_ONLY})"
TRUTH = (
    "Upright line: the true value, which only this simulation knows. No real federation has it, and no "
    "guarantee covers those who see it."
)


def of_run(document: StatisticsDocument) -> list[Block | Details]:
    """The single numbers in one picture, each longer answer in one of its own, and a table of choices."""
    shown: list[Block | Details] = []
    queries = [query for query in document.queries if query.kind not in CHOICES]
    single = [query for query in queries if len(query.rows) == 1 and _known(query)]
    if single:
        shown.append(_picture(single, document, "answers-0"))
    several = [query for query in queries if len(query.rows) > 1 and _known(query)]
    shown += [_picture([query], document, f"answers-{place}") for place, query in enumerate(several, start=1)]
    untold = [query for query in queries if not _known(query)]
    if untold:
        shown.append(_untold(untold))
    choices = [query for query in document.queries if query.kind in CHOICES]
    if choices:
        shown.append(_choices(choices))
    return shown


def drawn_places(kind: str, rows: Sequence[Row], most: int) -> list[int]:
    """Which rows are shown: all in their order, of too many the largest first (of quantiles some).

    >>> drawn_places("histogram", [Row("a", 1.0), Row("b", 3.0), Row("c", 2.0)], 2)
    [1, 2]
    """
    places = list(range(len(rows)))
    if len(rows) <= most:
        return places
    if kind == "quantile":
        return spaced(places, most)
    return sorted(places, key=lambda place: -_size(rows[place]))[:most]


def only(kind: str, shown: int, whole: int, where: str, *, first: bool = False) -> str:
    """A sentence if not all rows are shown; `first`: only the first are stored."""
    if shown >= whole:
        return ""
    which = "Evenly spaced" if kind == "quantile" else "The largest"
    # A comparison may have left categories out: these are the largest of the remaining ones.
    of = f"the first {whole:,}" if first else f"{whole:,}"
    return f" {which} {shown:,} of {of} are {where}."


def _size(row: Row) -> float:
    return float("-inf") if row.estimate is None else row.estimate


def _known(query: Query) -> bool:
    return any(row.estimate is not None for row in query.rows)


def _picture(queries: Sequence[Query], document: StatisticsDocument, name: str) -> Picture:
    panels = [_panel(query, document.trust) for query in queries]
    caption = " ".join(
        [
            *_intervals(queries),
            *([TRUTH] if any(row.true is not None for q in queries for row in q.rows) else []),
        ]
    )
    caption += "".join(
        only(q.kind, len(p.rows), len(q.rows), "drawn") for p, q in zip(panels, queries, strict=True)
    )
    return Chart(
        name,
        "Dot chart of the answers with their intervals",
        caption or "The answers.",
        tuple(panels),
        stacked=True,
        tables=(_table(queries),),
    ).picture


def _intervals(queries: Sequence[Query]) -> list[str]:
    """The meaning and coverage of the bars."""
    sentences = {
        f"Bars: {confident(query)}, which covers {query.covers}."
        if query.covers
        else f"Bars: {confident(query)}.": None
        for query in queries
        if any(row.interval for row in query.rows)
    }
    without = [q.name for q in queries if q.mechanism and not any(row.interval for row in q.rows)]
    none = f"No bars for {words.listed(without)}: there is no interval; what is promised stands below."
    return [*sentences, *([none] if without else [])]


def confident(query: Query) -> str:
    """The confidence of its interval."""
    share = "" if query.confidence is None else f"{words.number(100 * query.confidence)} % "
    return f"{share}interval"


def _panel(query: Query, trust: str) -> Dots:
    rows = query.rows
    places = drawn_places(query.kind, rows, DRAWN)
    marked = [dots.Column(looks.look(Arm(trust)), "Published answer", dict(enumerate(rows)))]
    truths = {place: Row(row.label, row.true) for place, row in enumerate(rows) if row.true is not None}
    if truths:
        marked.append(dots.Column(dots.EXACT, TRUE, truths))
    named = {place: rows[place].label for place in places}
    return dots.panel(f"{query.name}: {figures.query_label(query.kind)}", query.kind, named, marked)


def _table(queries: Sequence[Query]) -> Table:
    rows: list[Sequence[Value] | Group] = []
    truth = any(row.true is not None for query in queries for row in query.rows)
    caption = "Each answer and its interval."
    if truth:
        caption = f"Each answer, its interval, and the true value ({figures.SIMULATION_ONLY})."
    for query in queries:
        every = query.rows
        places = drawn_places(query.kind, every, LISTED)
        caption += only(query.kind, len(places), len(every), "listed; the stored record has all")
        if len(every) > 1:
            rows.append(Group(query.name, figures.query_label(query.kind)))
        rows += [_row(query, every[place], truth) for place in places]
    head = ("", "Estimate", "Interval", *[TRUE] * truth)
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))


def _row(query: Query, row: Row, truth: bool) -> Sequence[Value]:
    return (
        row.label or query.name,
        figures.estimate(query.kind, row),
        figures.interval(query.kind, row.interval),
        *[figures.value(query.kind, row.true)] * truth,
    )


def _untold(queries: Sequence[Query]) -> Table:
    truth = any(query.true is not None for query in queries)
    rows = [(query.name, figures.UNKNOWN, *[_truth(query)] * truth) for query in queries]
    return Table("The noise is too large for these results.", ("Query", "Estimate", *[TRUE] * truth), rows)


def _choices(queries: Sequence[Query]) -> Table:
    """The choices, the truly best ones, and the values of both; without truth, the choices alone."""
    if all(query.true is None for query in queries):
        alone = [
            (query.name, figures.chosen(query.kind, query.estimate), figures.promise(query.bound))
            for query in queries
        ]
        return Table("What was chosen.", ("Query", "Chosen", "Promise"), alone, stacked=True)
    rows = [
        (
            query.name,
            figures.chosen(query.kind, query.estimate),
            _truth(query),
            figures.worth(query.score, query.scored),
            figures.worth(query.best, query.scored),
            figures.promise(query.bound),
        )
        for query in queries
    ]
    head = (
        "Query", "Chosen", f"Truly best ({figures.SIMULATION_ONLY})",
        f"Worth ({figures.SIMULATION_ONLY})", f"Best possible ({figures.SIMULATION_ONLY})", "Promise",
    )  # fmt: skip
    caption = "What was chosen, beside what is truly best: only this simulation knows that, and no guarantee "
    return Table(caption + "covers those who see it.", head, rows, stacked=True)


def _truth(query: Query) -> str:
    if isinstance(query.true, tuple):
        return words.listed(
            figures.value(query.kind, value) if not isinstance(value, str) else value
            for value in query.true[:8]
        )
    return figures.chosen(query.kind, query.true)
