"""Terminal output of statistics: progress on stderr, estimates on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.table import Table

from fedprivacy.io.console import Terminal
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


def show_statistics(document: Mapping[str, Any]) -> None:
    """Prints estimates with intervals, the guarantee for every observer, and the path of the report."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    table = Table(title=document["name"], title_justify="left")
    for name in ("query", "estimate", "95 % interval", "true (simulation only)", "mechanism"):
        table.add_column(name, overflow="fold")
    for query in document["queries"]:
        for row in _rows(query):
            table.add_row(*row)
    console.print(table)
    for query in document["queries"]:
        if query["bound"]:
            bound = query["bound"]
            text = f"{query['name']}: {bound['what']}: at most {_number(bound['at_most'])}"
            plain.print(f"{text}, with probability {100 * bound['probability']:.8g} %")
        if "score" in query:
            chosen, best = _number(query["score"]), _number(query["best"])
            chosen_text = f"{query['name']}: {query['scored']}: {chosen} of at most {best} (simulation only)"
            plain.print(chosen_text)
    for guarantee in document["privacy"]["guarantees"]:
        plain.print(f"- {guarantee['words']}")
    if document["privacy"]["shuffled"]:
        plain.print(f"- {document['privacy']['shuffled']['words']}")
    missing = sum(query["failures"] + query["refusals"] for query in document["queries"])
    if missing:
        plain.print(f"operator-only: {missing} answers are missing")
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB")
    plain.print(f"report: {document['path']}/report.html")


def _rows(query: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields a row for a single number; of a histogram `ROWS` rows, the largest counts first."""
    how = query["mechanism"] or "exact"
    if not isinstance(query["estimate"], list):
        interval = _interval(query["low"], query["high"])
        yield query["name"], _number(query["estimate"]), interval, _number(query["true"]), how
        return
    labels, size = query["labels"], len(query["estimate"])
    order = list(range(size))
    if size > ROWS:
        order.sort(key=lambda place: -(query["estimate"][place] or 0))
    none = [None] * size
    for place in order[:ROWS]:
        low, high = ((query[key] or none)[place] for key in ("low", "high"))
        row = (_number(query["estimate"][place]), _interval(low, high), _number(query["true"][place]), how)
        yield f"{query['name']}: {labels[place]}", *row
    if size > ROWS:
        yield f"{query['name']}: {size - ROWS} more in the report", "", "", "", ""


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _number(value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "not released" if value is None else str(value)


def _share_text(share: float | None) -> str:
    """Returns the share of answers that an error is computed from, if not all could be released."""
    return "" if share is None or share == 1 else f" ({100 * share:.3g} % released)"


def show_statistics_comparison(document: Mapping[str, Any]) -> None:
    """Prints the errors of a comparison, its finding, and the path of the report."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    table = Table()
    for name in ("trust,\nmechanism", "query"):
        table.add_column(name, overflow="fold")
    for name in ("epsilon", "clients", "mean error\n95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in document["cells"]:
        for query in cell["queries"]:
            error = query["error"] or {"mean": None, "low": None, "high": None}
            table.add_row(
                f"{cell['trust']},\n{query['mechanism'] or 'exact'}",
                query["name"],
                "none" if cell["epsilon"] is None else f"{cell['epsilon']:g}",
                f"{cell['clients']:,}",
                f"{_number(error['mean'])}{_share_text(query['told'])}\n"
                + _interval(error["low"], error["high"]),
            )
    console.print(table)
    plain.print(document["finding"])
    plain.print("Equal epsilon is not equal observer.")
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB")
    plain.print(f"report: {document['path']}/report.html")
