"""The page of a comparison: the cost of privacy under each trust model, and the observers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.report import (
    arm_labels,
    budget_groups,
    candidates,
    classes,
    client_curve,
    curves,
    groups,
    limits,
    measures,
    option_effects,
    page_end,
    protection,
    public_records,
    setting_effects,
    settings,
    units,
    words,
)
from fedprivacy.report.answers import compare as answer
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
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series, accuracy_range, looks
from fedprivacy.report.charts.axis import at_data, percent
from fedprivacy.report.observer_wording import TRAINING

ROOM = 5  # the most arms whose labels have room for the observers


def page(document: CompareDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The comparison, without its operator-only fields.
        error: Whether the operator-only section contains an error's text.
        command: Whether it contains the command that reproduces the comparison.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        planned = sum(len(document.targets(arm)) for arm in document.arms)
        lead.append(page_end.status(document, len(document.cells), planned, "cells", error=error))
    missing = (
        words.ACCURACY_WITHHELD if document.lacks_accuracy else "There is no picture: no cell has a result."
    )
    lead.append(_picture(document) or Text(missing, "status"))
    lead.append(
        Finding(
            text=document.finding or _no_finding(document),
            terms=_finding_terms(document),
            heading="Equal epsilon is not equal observer",
            caution=TRAINING.caution(document.trusts, document.units),
        )
    )
    lead += limits.lead_of_comparison(document)
    cells = [
        protection.Protected(arm, cell.epsilon, cell.guarantees)
        for arm in document.arms
        for cell in document.of(arm)
    ]
    scalings = (cell.scaling for cell in document.cells)
    uncovered = public_records.statement(document.scenario.get("data"), scalings)
    sections = [
        Section(
            "guarantees", "Who is protected from whom", protection.blocks(cells, uncovered), folded=False
        ),
        *budget_groups.of_comparison(document),
        *units.of_comparison(document),
        *limits.of_comparison(document),
        *option_effects.of_comparison(document),
        *setting_effects.of_comparison(document),
        *client_curve.of_comparison(document),
        *curves.of_comparison(document),
        *candidates.of_comparison(document),
        *groups.of_comparison(document),
        *classes.of_comparison(document),
        *measures.of_comparison(document),
        Section("settings", "Settings", settings.blocks(document)),
        *page_end.closing(document, command=command, runs=_stored(document)),
    ]
    return Page(
        title=f"{page_end.title(document)}: {document.primary.title} against privacy",
        eyebrow="Comparison of trust models" + " and units of privacy" * (len(document.units) > 1),
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_comparison(document, cells),
        lead=lead,
        sections=sections,
    )


def _no_finding(document: CompareDocument) -> str:
    if document.lacks_accuracy:
        return f"There is no finding: {document.primary.title} is operator-only."
    return "There is no finding: the comparison is not complete."


def _finding_terms(document: CompareDocument) -> str:
    """The terms of an epsilon in the finding, with each trust model's observers."""
    epsilon_terms = words.terms(document.guarantees())
    reaches = [
        f"{words.trust(trust)}: {words.reach(guarantees)}."
        for trust, guarantees in ((name, document.guarantees_under(name)) for name in document.trusts)
        if any(g.holds for g in guarantees)
    ]
    return f"Each epsilon: {epsilon_terms}. {' '.join(reaches)}" if epsilon_terms else ""


def _picture(document: CompareDocument) -> Picture | None:
    """The headline figure against epsilon, a line for each arm; without privacy a level with its band."""
    series: list[Series] = []
    levels: list[Reference] = []
    drawn = looks.arms(document.arms)
    for arm in document.arms:
        look, label = drawn[arm], arm_labels.arm(arm)
        reach = words.reach(document.guarantees(arm))
        if len(document.arms) > ROOM and arm.place:
            reach = ""  # the first arm of its trust model has it in its label
        private = []
        for cell in document.of(arm):
            mean, ends = cell.accuracy.mean, cell.accuracy.interval
            if mean is None or not math.isfinite(mean):
                continue
            if cell.epsilon:
                private.append(Point(cell.epsilon, mean, ends))
            else:
                levels.append(Reference(mean, look, label, reach, width=1.75, interval=ends))
        if private:
            private.sort(key=lambda point: point.x)
            series.append(Series(look, label, tuple(private), note=reach))
    levels += limits.levels(document)
    values = [p.y for line in series for p in line.points] + [level.at for level in levels]
    if not values:
        return None
    intervals = [p.interval for line in series for p in line.points] + [level.interval for level in levels]
    bars = any(intervals)
    shown = accuracy_range([*values, *(end for ends in intervals for end in ends or ())])
    epsilon_terms = words.terms(document.guarantees())
    title = document.primary.title
    measured = f"{words.capital(title)} on {words.evaluated_on(document.evaluated_on)}, {document.averaged}"
    measured += "." if bars else ", without intervals."
    epsilons = at_data([p.x for line in series for p in line.points])
    label = f"epsilon (smaller is more private), {epsilon_terms}" if epsilon_terms else ""
    panel = Lines(
        Axis(label, log=True, ticks=epsilons, named=bool(epsilons), phrase="at epsilon {}"),
        Axis(f"{words.capital(title)} (higher is better)", words.accuracy, tick_text=percent, limits=shown),
        tuple(series),
        tuple(levels),
    )
    return Chart(
        "frontier",
        f"Line chart of {title} against epsilon",
        measured + (f" Bars and band: {document.interval}." if document.interval and bars else ""),
        (panel,),
        terms=f"At {epsilon_terms or 'no guarantee'}.",
        tables=(_figures(document),),
    ).picture


def _figures(document: CompareDocument) -> Table:
    """Every cell's figures, and the cells that have none."""
    rows: list[Sequence[Value] | Group] = []
    several = _several(document)
    for arm in document.arms:
        cells = document.of(arm)
        guarantees = document.guarantees(arm)
        rows.append(Group(arm_labels.arm(arm), words.reach(guarantees) if guarantees else ""))
        rows += [_figure_row(cell, several) for cell in cells]
        missing = set(document.targets(arm)) - {cell.epsilon for cell in cells}
        dash = ["—"] * several
        rows += [
            (words.target(e), *dash, "not run", "—", "—") for e in sorted(missing, key=lambda e: e or 0.0)
        ]
    for name, cell in limits.rows(document):
        rows += [Group(name), _figure_row(cell, several)]
    measured = words.capital(document.primary.title)
    caption = f"{measured} on {words.evaluated_on(document.evaluated_on)}, in percent."
    if document.interval and any(cell.accuracy.interval for cell in document.cells):
        caption += f" Interval: {document.interval}."
    epsilon_terms = words.terms(document.guarantees())
    if epsilon_terms:
        caption += f" Each epsilon: {epsilon_terms}, against the observers named above its rows."
    head = ("Epsilon", *["Mechanism"] * several, "Mean", "Interval", "Each seed")
    return Table(caption, head, rows, numeric=frozenset(range(1 + several, 4 + several)))


def _several(document: CompareDocument) -> bool:
    """Whether several local mechanisms are compared, so that each cell names its own."""
    return any(arm.mechanism for arm in document.arms)


def _stored(document: CompareDocument) -> list[Block | Details]:
    """Where each run of the comparison is."""
    stored = [
        (arm_labels.arm(arm), words.target(cell.epsilon), run)
        for arm in document.arms
        for cell in document.of(arm)
        for run in cell.runs
    ]
    if not stored:
        return []
    where = "Folders beside this page. Each epsilon is the requested one, on the terms above."
    table = Table(where, ("Trust model", "Epsilon", "Folder"), stored)
    return [Details("Where each run is stored", [table])]


def _figure_row(cell: Cell, several: bool) -> Sequence[Value]:
    ends = [words.accuracy(end, unit="") for end in cell.accuracy.interval or ()]
    return (
        words.target(cell.epsilon),
        *[arm_labels.mechanism(cell.mechanism)] * several,
        words.accuracy(cell.accuracy.mean, unit=""),
        " to ".join(ends) or "—",
        ", ".join(words.accuracy(value, unit="") for value in cell.accuracies) or "—",
    )
