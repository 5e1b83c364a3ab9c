"""The learning curves of a comparison: the mean over seeds, by trust model, mechanism and epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fedprivacy.documents.comparison import Cell, CompareDocument
from fedprivacy.report import common, learning, names, plots, words
from fedprivacy.report.blocks import Picture, Section, Table


def of_comparison(document: CompareDocument) -> list[Section]:
    """How each arm learned at some of its epsilons; the tables have all of them."""
    panels, tables = [], []
    stands_with = words.terms(document.guarantees())
    epsilon = f" Epsilon stands at {stands_with}, against the observers named above." if stands_with else ""
    for arm in document.arms:
        cells = [cell for cell in document.of(arm) if cell.curve]
        if not cells:
            continue
        drawn = tuple(map(_curve, common.spaced(cells, len(learning.LINES))))
        panels.append(learning.Panel(plots.look(arm), names.arm(arm), drawn))
        tables.append(_table(f"{names.arm(arm)}: accuracy by round, {document.averaged}.{epsilon}", cells))
    if not panels:
        return []
    spoken = " ".join(
        f"{panel.label}: "
        + words.listed(
            f"{curve.printed(curve.values[0])} in round {curve.rounds[0]}, "
            f"{curve.printed(curve.values[-1])} in round {curve.rounds[-1]} ({curve.label})"
            for curve in panel.curves
        )
        + "."
        for panel in panels
    )
    title = "Line charts of accuracy by round, one for each line of the picture above"
    values = [value for panel in panels for curve in panel.curves for value in curve.values]
    measured = f"Accuracy on {words.evaluated_on(document.evaluated_on)} by round, {document.averaged}."
    some = any(len(table.head) - 1 > len(learning.LINES) for table in tables)
    caption = measured + (" The tables have the other epsilons." if some else "")
    if any(cell.ended_early for arm in document.arms for cell in document.of(arm)):
        caption += " Early stopping has ended runs: a line ends with the first of its seeds that it ended."
    picture = Picture(
        draw=partial(learning.compared, panels, title, spoken),
        caption=caption + epsilon + words.cut_axis(plots.accuracy_range(values)[0]),
        tables=tables,
    )
    return [Section("learning", "How it learned", [picture])]


def _table(caption: str, cells: Sequence[Cell]) -> Table:
    """A row for each evaluated round, a column for each epsilon."""
    curves = [{event.round: event.accuracy for event in cell.curve or ()} for cell in cells]
    rounds = sorted(set().union(*curves))
    rows = [(f"{at:,}", *(words.accuracy(curve.get(at)) for curve in curves)) for at in rounds]
    head = (
        "Round",
        *("Accuracy" if c.epsilon is None else f"Epsilon {words.number(c.epsilon)}" for c in cells),
    )
    return common.sampled(caption, head, rows)


def _curve(cell: Cell) -> learning.Curve:
    return learning.Curve(
        label="no noise" if cell.epsilon is None else f"epsilon {words.number(cell.epsilon, 3)}",
        rounds=tuple(event.round for event in cell.curve or ()),
        values=tuple(event.accuracy for event in cell.curve or ()),
        share=True,
    )
