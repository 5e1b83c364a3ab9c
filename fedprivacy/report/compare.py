"""The page of a comparison: what privacy costs under each trust model, and from whom it protects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fedprivacy.report import common, plots, protection, words
from fedprivacy.report.blocks import (
    Block,
    Details,
    Finding,
    Group,
    Page,
    Picture,
    Section,
    Table,
    Text,
    Value,
)
from fedprivacy.report.documents import Cell, CompareDocument


def page(document: CompareDocument, *, error: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The comparison, without its operator-only fields.
        error: Whether the operator-only section holds an error's text.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        planned = sum(len(document.targets(trust)) for trust in document.trusts)
        lead.append(common.status(document, len(document.cells), planned, "cells", error=error))
    lead.append(_picture(document) or Text("There is no picture: no cell has a result.", "status"))
    lead.append(
        Finding(
            text=document.finding or "There is no finding: the comparison is not complete.",
            terms=_finding_terms(document),
            heading="Equal epsilon is not equal observer",
            caution=words.caution(document.trusts),
        )
    )
    sections = [
        Section("figures", "The figures", _figures(document)),
        Section("guarantees", "Who is protected from whom", protection.compared(document)),
        Section("settings", "Settings per trust model", [_settings(document)]),
        *common.closing(document),
    ]
    return Page(
        title=f"{document.name}: accuracy against privacy",
        eyebrow="Comparison of trust models",
        subtitle=str(document.scenario.get("description") or ""),
        lead=lead,
        sections=sections,
    )


def _finding_terms(document: CompareDocument) -> str:
    """What an epsilon in the finding stands with, and for each trust model against whom."""
    stands_with = words.terms(document.guarantees())
    reaches = [
        f"{words.trust(trust)}: {words.reach(document.guarantees(trust))}."
        for trust in document.trusts
        if any(g.holds for g in document.guarantees(trust))
    ]
    return f"Epsilon stands at {stands_with}. {' '.join(reaches)}" if stands_with else ""


def _picture(document: CompareDocument) -> Picture | None:
    series = []
    for trust in document.trusts:
        points = tuple(
            plots.Point(cell.epsilon, cell.accuracy.mean, cell.accuracy.interval)
            for cell in document.of(trust)
            if cell.accuracy.mean is not None and math.isfinite(cell.accuracy.mean)
        )
        if points:
            reach = words.reach(document.guarantees(trust))
            series.append(plots.Series(trust, words.trust(trust), reach, points))
    if not series:
        return None
    stands_with = words.terms(document.guarantees())
    measured = f"Accuracy on {words.evaluated_on(document.evaluated_on)}, mean over the seeds."
    label = f"epsilon (smaller is more private); {stands_with}" if stands_with else ""
    title = f"Line chart of accuracy against epsilon ({stands_with or 'no guarantee'}). "
    title += " ".join(_said(one) for one in series)
    bottom, _ = plots.accuracy_range([value for one in series for p in one.points for value in p.extent])
    return Picture(
        wide=plots.frontier(series, label, title),
        narrow=plots.frontier(series, label, title, narrow=True),
        caption=measured
        + (f" Bars and band: {document.interval}." if document.interval else "")
        + words.cut_axis(bottom),
        table=Table(
            measured + (f" Epsilon stands at {stands_with}." if stands_with else ""),
            ("Trust model", "Against whom", "Epsilon", "Accuracy"),
            [
                (one.label, one.reach, _target(point.epsilon), words.accuracy(point.mean))
                for one in series
                for point in one.points
            ],
            numeric=frozenset({2, 3}),
        ),
    )


def _said(one: plots.Series) -> str:
    """One line of the picture in words."""
    figures = [
        words.accuracy(p.mean) + (f" at epsilon {words.number(p.epsilon)}" if p.epsilon else "")
        for p in one.points
    ]
    return f"{one.label} ({one.reach}): {words.listed(figures)}."


def _figures(document: CompareDocument) -> list[Block | Details]:
    rows: list[Sequence[Value] | Group] = []
    for trust in document.trusts:
        cells = document.of(trust)
        found = document.guarantees(trust)
        rows.append(Group(words.trust(trust), words.reach(found) if found else ""))
        rows += [_figure_row(cell) for cell in cells]
        missing = set(document.targets(trust)) - {cell.epsilon for cell in cells}
        rows += [(_target(e), "not run", "—", "—") for e in sorted(missing, key=lambda e: e or 0.0)]
    caption = f"Accuracy on {words.evaluated_on(document.evaluated_on)}, in percent."
    if document.interval:
        caption += f" Interval: {document.interval}."
    stands_with = words.terms(document.guarantees())
    if stands_with:
        caption += f" Epsilon stands at {stands_with}, against the observers named above its rows."
    head = ("Epsilon", "Mean", "Interval", "Each seed")
    blocks: list[Block | Details] = [Table(caption, head, rows, numeric=frozenset({1, 2, 3}))]
    stored = [(words.trust(c.trust), _target(c.epsilon), run) for c in document.cells for run in c.runs]
    if stored:
        where = "Folders beside this page. Epsilon stands for the same as in the figures above."
        table = Table(where, ("Trust model", "Epsilon", "Folder"), stored)
        blocks.append(Details("Where each run is stored", [table]))
    return blocks


def _target(epsilon: float | None) -> str:
    """The epsilon that a cell was asked for."""
    return "none" if epsilon is None else words.number(epsilon)


def _figure_row(cell: Cell) -> Sequence[Value]:
    ends = [words.accuracy(end, unit="") for end in cell.accuracy.interval or ()]
    return (
        _target(cell.epsilon),
        words.accuracy(cell.accuracy.mean, unit=""),
        " to ".join(ends) or "—",
        ", ".join(words.accuracy(value, unit="") for value in cell.accuracies) or "—",
    )


def _settings(document: CompareDocument) -> Table:
    """A column for each trust model: what it was run with."""
    shown = {trust: cells for trust in document.trusts if (cells := document.of(trust))}
    facts: dict[str, Callable[[list[Cell]], str]] = {
        "Rounds": lambda cells: _each(cell.rounds for cell in cells),
        "Sampling": lambda cells: _each(words.sampling(c.sampling or _sampling_stated(c)) for c in cells),
        "Clipping norm": lambda cells: _each(cell.clipping_norm for cell in cells),
        "Mechanism": lambda cells: _each(cell.mechanism for cell in cells),
        "Noise multiplier": _noise,
        "Inside each client": lambda cells: _each(common.flat(cell.training) or None for cell in cells),
        "At the server": lambda cells: _each(common.flat(c.server, ("rounds",)) or None for c in cells),
    }
    rows = [("Who adds the noise", *(words.WHO_ADDS_NOISE.get(trust, "—") for trust in shown))]
    rows += [(name, *map(fact, shown.values())) for name, fact in facts.items()]
    stands_with = words.terms(document.guarantees())
    caption = "Noise multiplier: the noise's standard deviation, divided by the clipping norm."
    if stands_with:
        caption += f" Epsilon stands at {stands_with}, against the observers named above."
    kept = [row for row in rows if any(value != "—" for value in row[1:])]
    return Table(caption, ("", *map(words.trust, shown)), kept, stacked=True)


def _sampling_stated(cell: Cell) -> Any:
    return next((g.sampling for g in cell.guarantees if g.sampling), None)


def _each(values: Iterable[Any]) -> str:
    """A value that all cells share, or all that there are."""
    return ", ".join(dict.fromkeys(common.plain(value) for value in values if value is not None)) or "—"


def _noise(cells: Sequence[Cell]) -> str:
    lines = [
        words.number(c.noise_multiplier) + (f" at epsilon {words.number(c.epsilon)}" if c.epsilon else "")
        for c in cells
        if c.noise_multiplier is not None
    ]
    return "\n".join(lines) or "—"
