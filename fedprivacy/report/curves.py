"""The learning curves of a comparison: the mean over seeds, by trust model, mechanism and epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.report import arm_labels, learning_curves, page_end, words
from fedprivacy.report.blocks import Section, Table
from fedprivacy.report.charts import Chart, Lines, Series, looks
from fedprivacy.report.charts.looks import Look
from fedprivacy.report.charts.spacing import spaced


def of_comparison(document: CompareDocument) -> list[Section]:
    """How each arm learned at some of its epsilons; the tables have all of them."""
    arms, tables = [], []
    epsilon_terms, title = words.terms(document.guarantees()), document.primary.title
    epsilon = f" Each epsilon: {epsilon_terms}, against the observers named above." if epsilon_terms else ""
    for arm in document.arms:
        cells = [cell for cell in document.of(arm) if cell.curve]
        if not cells:
            continue
        arms.append((arm, spaced(cells, looks.EPSILONS)))
        tables.append(
            _table(f"{arm_labels.arm(arm)}: {title} by round, {document.averaged}.{epsilon}", cells, title)
        )
    if not arms:
        return []
    values = [event.accuracy for _, cells in arms for cell in cells for event in cell.curve or ()]
    on = words.evaluated_on(document.evaluated_on)
    measured = f"{words.capital(title)} on {on} by round, {document.averaged}."
    some = any(len(table.head) - 1 > looks.EPSILONS for table in tables)
    caption = measured + (" The tables have the other epsilons." if some else "")
    if any(cell.ended_early for arm in document.arms for cell in document.of(arm)):
        caption += " Early stopping has ended runs: a line ends with the first of its seeds that it ended."
    chart = Chart(
        "curves",
        f"Line charts of {title} by round, one for each line of the picture above",
        caption + epsilon,
        tuple(_panels(document, arms, values)),
        tables=tuple(tables),
    )
    return [Section("learning", "How it learned", [chart.picture])]


def _panels(
    document: CompareDocument, arms: Sequence[tuple[Arm, Sequence[Cell]]], values: Sequence[float]
) -> list[Lines]:
    """A panel for each arm; an epsilon looks the same in all of them."""
    names_of_cells = dict.fromkeys(_name(cell) for _, cells in arms for cell in cells)
    of_epsilons = dict(zip(names_of_cells, looks.others(len(names_of_cells)), strict=True))
    titled = looks.arms(document.arms)
    return [_panel(arm, cells, values, titled[arm][0], of_epsilons) for arm, cells in arms]


def _name(cell: Cell) -> str:
    return "no noise" if cell.epsilon is None else f"epsilon {words.target(cell.epsilon)}"


def _panel(
    arm: Arm, cells: Sequence[Cell], values: Sequence[float], color: str, of_epsilons: Mapping[str, Look]
) -> Lines:
    """The lines of one arm, each named by its epsilon; all panels have one accuracy axis."""
    label = arm_labels.arm(arm)
    series = []
    for cell in cells:
        name = _name(cell)
        curve = [(event.round, event.accuracy) for event in cell.curve or ()]
        # "No noise" as the panel's title is enough.
        shown = "" if name == label.lower() else name
        series.append(Series(of_epsilons[name], shown, learning_curves.points(curve), width=1.75))
    last = max(event.round for cell in cells for event in cell.curve or ())
    y = learning_curves.accuracy("", values)
    return Lines(learning_curves.rounds(last), y, tuple(series), title=label, color=color)


def _table(caption: str, cells: Sequence[Cell], title: str) -> Table:
    """A row for each evaluated round, a column for each epsilon."""
    curves = [{event.round: event.accuracy for event in cell.curve or ()} for cell in cells]
    rounds = sorted(set().union(*curves))
    rows = [(f"{at:,}", *(words.accuracy(curve.get(at)) for curve in curves)) for at in rounds]
    head = (
        "Round",
        *(words.capital(title) if c.epsilon is None else f"Epsilon {words.target(c.epsilon)}" for c in cells),
    )
    return page_end.sampled(caption, head, rows)
