"""Terminal output of statistics: progress on stderr, estimates on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.table import Table

from fedprivacy.documents.answers import Query
from fedprivacy.documents.cell import Figures
from fedprivacy.documents.kinds import read_whole
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.io.console import Terminal
from scenarios.cli.brief import observer_lines, shortened, terms_line
from scenarios.cli.display import Event, live

ROWS = 10  # categories of a query that the terminal shows


@contextmanager
def query_progress(queries: int) -> Iterator[Callable[[Event], None]]:
    """Shows the queries of a run; quiet where stderr is not a terminal."""
    with live() as progress:
        task = progress.add_task("querying", total=queries)

        def on_query(event: Event) -> None:
            progress.update(task, completed=event["round"] + 1, description=f"answered {event['name']}")

        yield on_query


def show_statistics(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints estimates with intervals, the guarantee for every observer, and the path of the report."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    result = read_whole(StatisticsDocument, document)
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
    if verbose:
        for guarantee in result.privacy.guarantees:
            plain.print(f"- {guarantee.words}")
    else:
        for line in observer_lines(result.privacy.guarantees):
            plain.print(line)
        plain.print(terms_line(result.privacy.guarantees))
    if verbose and result.privacy.shuffled:
        plain.print(f"- {result.privacy.shuffled.words}")
    missing = sum(query.failures + query.refusals for query in result.queries)
    if missing:
        plain.print(f"operator-only: {missing} answers are missing")
    plain.print(result.cost)
    plain.print(f"report: {result.path}/report.html")


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
        interval = _interval(row.low, row.high)
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
    """Prints the errors of a comparison, its finding, and the path of the report."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    comparison = read_whole(StatisticsComparison, document)
    plain.print(comparison.finding)
    plain.print("Equal epsilon is not equal observer.")
    pairs = [(cell, query) for cell in comparison.cells for query in cell.queries]
    shown, rest = shortened(pairs, verbose)
    table = Table()
    for name in ("trust,\nmechanism", "query"):
        table.add_column(name, overflow="fold")
    for name in ("epsilon", "clients", "mean error\n95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell, query in shown:
        error = query.error or Figures()
        table.add_row(
            f"{cell.trust},\n{query.mechanism or 'exact'}",
            query.name,
            "none" if cell.epsilon is None else f"{cell.epsilon:g}",
            f"{cell.clients:,}",
            f"{_number(error.mean)}{_share_text(query.told)}\n{_interval(error.low, error.high)}",
        )
    console.print(table)
    if rest:
        plain.print(rest)
    plain.print(comparison.cost)
    plain.print(f"report: {comparison.path}/report.html")
