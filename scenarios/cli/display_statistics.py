"""What a person sees in the terminal of statistics: progress on stderr, answers on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.table import Table

from fedprivacy.io.console import Terminal
from scenarios.cli.display import Event, live

ROWS = 10  # categories of a query that the terminal shows


@contextmanager
def asking_queries(queries: int) -> Iterator[Callable[[Event], None]]:
    """Shows a run's queries go by; quiet where stderr is not a terminal."""
    with live() as progress:
        task = progress.add_task("asking", total=queries)

        def on_query(event: Event) -> None:
            progress.update(task, completed=event["round"] + 1, description=f"asked {event['name']}")

        yield on_query


def show_statistics(document: Mapping[str, Any]) -> None:
    """The answers with their intervals, every observer's guarantee in words, where the record is."""
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
            said = f"{query['name']}: {bound['what']}: at most {_number(bound['at_most'])}"
            plain.print(f"{said}, with probability {100 * bound['probability']:.8g} %")
        if "score" in query:
            chosen, best = _number(query["score"]), _number(query["best"])
            told = f"{query['name']}: {query['scored']}: {chosen} of at most {best} (simulation only)"
            plain.print(told)
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
    """A row for a single answer; for several the first of them, the largest first where they are counts."""
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
    return "cannot be told" if value is None else str(value)


def _told(share: float | None) -> str:
    """How many answers an error is of, where some could not be told."""
    return "" if share is None or share == 1 else f" ({100 * share:.3g} % told)"


def show_sweep(document: Mapping[str, Any]) -> None:
    """A comparison's errors, its finding, and where the report is."""
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
                f"{_number(error['mean'])}{_told(query['told'])}\n" + _interval(error["low"], error["high"]),
            )
    console.print(table)
    plain.print(document["finding"])
    plain.print("Equal epsilon is not equal observer.")
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB")
    plain.print(f"report: {document['path']}/report.html")
