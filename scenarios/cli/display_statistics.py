"""Terminal output of statistics: progress on stderr, estimates on stdout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any

from rich.table import Table

from fedprivacy.documents.answers import Query
from fedprivacy.documents.cell import Figures
from fedprivacy.documents.kinds import read_whole
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.io.console import Terminal
from fedprivacy.report.statistics.answer import published, too_few
from fedprivacy.report.statistics.figures import cut, unclear
from fedprivacy.report.words import number
from fedprivacy.statistics.comparison import SHARES
from scenarios.cli.brief import shortened, show_brief
from scenarios.cli.display import Event, live
from scenarios.cli.display_matrix import Line, show_matrix

ROWS = 10  # categories of a query that the terminal shows
ANSWERS = 3  # queries of the brief line


@contextmanager
def query_progress(queries: int) -> Iterator[Callable[[Event], None]]:
    """Shows the queries of a run; quiet where stderr is not a terminal."""
    with live() as progress:
        task = progress.add_task("querying", total=queries)

        def on_query(event: Event) -> None:
            progress.update(task, completed=event["round"] + 1, description=f"answered {event['name']}")

        yield on_query


def show_statistics(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the first answers in at most six lines; `verbose`: every estimate, bound and guarantee."""
    result = read_whole(StatisticsDocument, document)
    missing = sum(query.failures + query.refusals for query in result.queries)
    missing_text = f"operator-only: {missing:,} answers are missing" if missing else ""
    if not verbose:
        answers = "; ".join(filter(None, [_answers(result), missing_text]))
        show_brief(document, answers, result.privacy.guarantees)
        return
    console, plain = Terminal(), Terminal(soft_wrap=True)
    table = Table(title=result.name, title_justify="left")
    for name in ("query", "estimate", "95 % interval", "true (simulation only)", "mechanism"):
        table.add_column(name, overflow="fold")
    for query in result.queries:
        for row in _rows(query):
            table.add_row(*row)
    console.print(table)
    for query in result.queries:
        if query.bound:
            text = f"{query.name}: {query.bound.what}: at most {_number(query.bound.at_most)}"
            plain.print(f"{text}, with probability {100 * (query.bound.probability or 0):.8g} %")
        if query.score is not None:
            chosen, best = _number(query.score), _number(query.best)
            plain.print(f"{query.name}: {query.scored}: {chosen} of at most {best} (simulation only)")
    for guarantee in result.privacy.guarantees:
        plain.print(f"- {guarantee.words}")
    if result.privacy.shuffled:
        plain.print(f"- {result.privacy.shuffled.words}")
    if missing:
        plain.print(missing_text)
    plain.print(result.cost)
    plain.print(f"report: {result.path}/report.html")


def _answers(result: StatisticsDocument) -> str:
    """Returns the first answers, of a longer one its largest number, and how many more there are."""
    texts = []
    for query in result.queries[:ANSWERS]:
        label, value, interval = published(query)
        more = len(query.rows) - 1
        name = query.name if label in ("", "chosen") else f"{query.name}, {label}"
        notes = [interval] if interval else []
        few = too_few(result, query)
        notes += [f"too few people to tell: {few}"] if few else []
        notes += [f"{more:,} more" if more > 0 else ""]
        ended = ", ".join(filter(None, notes))
        texts.append(f"{name}: {value}{f' ({ended})' if ended else ''}")
    left = len(result.queries) - ANSWERS
    texts += [f"{left:,} more answers: --verbose"] if left > 0 else []
    return "; ".join(texts) or "no query was answered"


def _rows(query: Query) -> Iterator[tuple[str, ...]]:
    """Yields a row for a single number; of a histogram `ROWS` rows, the largest counts first."""
    how = query.mechanism or "exact"
    if query.choice is not None:
        yield query.name, query.choice, "-", _number(query.true), how
        return
    rows = query.rows
    if len(rows) > ROWS:
        rows = sorted(rows, key=lambda row: -(row.estimate or 0))[:ROWS]
    for row in rows:
        interval = _interval(*(cut(query.kind, row.interval) or (None, None)))
        name = f"{query.name}: {row.label}" if isinstance(query.estimate, tuple) else query.name
        yield name, _number(row.estimate), interval, _number(row.true), how
    if len(rows) < len(query.rows):
        yield f"{query.name}: {len(query.rows) - ROWS} more in the report", "", "", "", ""


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _number(value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "not released" if value is None else str(value)


def _share_text(share: float | None) -> str:
    """Returns the share of answers that an error is computed from, if not all could be released."""
    return "" if share is None or share == 1 else f" ({100 * share:.3g} % released)"


def show_statistics_comparison(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the finding of a comparison and its errors; `verbose`: every cell."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    comparison = read_whole(StatisticsComparison, document)
    plain.print(comparison.finding)
    plain.print("Equal epsilon is not equal observer.")
    if verbose:
        console.print(_every_cell(comparison))
    else:
        lines, rest = shortened(_errors(comparison), verbose)
        plain.print("Mean error ± 95 % interval; of shares in percentage points")
        show_matrix(lines, console)
        if any(map(unclear, (query for cell in comparison.cells for query in cell.queries))):
            plain.print("Too few repeats to tell an error whose ± exceeds half of it (compare.repeats).")
        if rest:
            plain.print(rest)
    plain.print(comparison.cost)
    plain.print(f"report: {comparison.path}/report.html")


def _errors(comparison: StatisticsComparison) -> list[Line]:
    """Returns a line for each query, number of clients and arm, with its errors by epsilon."""
    lines: list[Line] = []
    sizes = len(comparison.sizes) > 1
    for name, clients in product((each.name for each in comparison.questions), comparison.sizes or (None,)):
        without, arms = "", defaultdict[str, dict[float, str]](dict)
        for cell in comparison.cells:
            query = cell.query(name)
            if query is None or cell.clients != clients:
                continue
            error = _with_interval(query.error or Figures(), _scale(query.kind))
            figure = f"{error}{_share_text(query.told)}"
            if cell.epsilon is None:
                without = f"; without noise {figure}"
            else:
                arms[", ".join(filter(None, (cell.trust, cell.asked)))][cell.epsilon] = figure
        heading = f"{name}, {clients:,} clients{without}" if sizes else f"{name}{without}"
        lines += [Line(label, cells, heading) for label, cells in arms.items()]
    return lines


def _scale(kind: str) -> int:
    """Returns what an error is multiplied by: those of shares are in percentage points."""
    return 100 if kind in SHARES else 1


def _with_interval(error: Figures, scale: int) -> str:
    mean, interval = error.mean, error.interval
    if mean is None:
        return _number(None)
    ends = f" ±{number(scale * max(abs(end - mean) for end in interval), 2)}" if interval else ""
    return f"{number(scale * mean, 2)}{ends}"


def _every_cell(comparison: StatisticsComparison) -> Table:
    table = Table()
    for name in ("trust,\nmechanism", "query"):
        table.add_column(name, overflow="fold")
    for name in ("epsilon", "clients", "mean error\n(shares: points)\n95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    pairs = [(cell, query) for cell in comparison.cells for query in cell.queries]
    for cell, query in pairs:
        error, scale = query.error or Figures(), _scale(query.kind)
        mean, low, high = (
            None if figure is None else scale * figure for figure in (error.mean, error.low, error.high)
        )
        table.add_row(
            f"{cell.trust},\n{query.mechanism or 'exact'}",
            query.name,
            "none" if cell.epsilon is None else f"{cell.epsilon:g}",
            f"{cell.clients:,}",
            f"{_number(mean)}{_share_text(query.told)}\n{_interval(low, high)}",
        )
    return table
