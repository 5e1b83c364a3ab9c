"""Terminal output of private estimates: progress on stderr, losses on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.table import Table

from fedprivacy.documents.estimates import EstimatesCell, EstimatesDocument
from fedprivacy.documents.kinds import read_whole
from fedprivacy.erm.study.approaches import cells_of
from fedprivacy.io.console import Terminal
from fedprivacy.io.escape import first_line
from fedprivacy.report.words import direction
from fedprivacy.scenario.erm import ErmScenario
from scenarios.cli.brief import answer_of, show_brief
from scenarios.cli.display import Event, live


@contextmanager
def cell_progress(scenario: ErmScenario) -> Iterator[Callable[[Event], None]]:
    """Shows the cells of a study; quiet where stderr is not a terminal."""
    with live() as progress:
        task = progress.add_task("fitting", total=sum(1 for _ in cells_of(scenario)))

        def on_cell(cell: Event) -> None:
            progress.update(task, advance=1, description=f"{cell['approach']} at epsilon {cell['epsilon']:g}")

        yield on_cell


def show_estimates(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the best approach in at most six lines; `verbose`: every cell, slope and guarantee."""
    study = read_whole(EstimatesDocument, document)
    if not verbose:
        guarantees = [guarantee for cell in study.cells for guarantee in cell.against_all]
        show_brief(document, "; ".join([answer_of(document), *_notes(study)]), guarantees, _only(study))
        return
    console, plain = Terminal(), Terminal(soft_wrap=True)
    table = Table(title=study.name, title_justify="left")
    heads = ("approach", "records", "epsilon", "delta", "excess (simulation only)", "95 %", "bound")
    for name in heads:
        table.add_column(name, overflow="fold")
    for cell in study.cells:
        table.add_row(*_row(cell))
    console.print(table)
    for slope in study.slopes:
        over, way = "n" if slope.over == "records" else "epsilon", direction(slope.slope)
        plain.print(f"{slope.approach}: excess {way} as {over}^{slope.slope:.2f}")
    rows = {cell.approach: guarantee.words for cell in study.cells for guarantee in cell.guarantees}
    for name, words in rows.items():
        plain.print(f"- {name}: {words}")
    for cell in study.cells:
        if cell.absent:
            plain.print(absence(cell))
    if study.finding:
        plain.print(study.finding)
    plain.print(study.cost)
    plain.print(f"report: {study.path}/report.html")


def _only(study: EstimatesDocument) -> dict[str, str]:
    """Returns, by observer, the approaches with a guarantee against it, where others have none."""
    stating: dict[str, dict[str, None]] = {}
    for cell in study.fitted_cells:
        for guarantee in (each for each in cell.guarantees if each.holds):
            stating.setdefault(guarantee.observer, {})[cell.approach] = None
    every = {cell.approach for cell in study.fitted_cells}
    return {name: f"only {', '.join(those)}" for name, those in stating.items() if set(those) != every}


def _notes(study: EstimatesDocument) -> list[str]:
    """Returns how many cells were refused, and how many answers of silos are missing."""
    refused = sum(cell.refused is not None for cell in study.cells)
    absent = sum(cell.absent or 0 for cell in study.cells)
    notes = ["simulation only"] if study.fitted_cells else []
    notes += [f"{refused:,} of {len(study.cells):,} cells refused"] if refused else []
    return notes + ([f"operator-only: {absent:,} answers of silos are missing"] if absent else [])


def absence(cell: EstimatesCell) -> str:
    """Describes missing answers of silos in a sentence."""
    why = first_line(str(cell.first_absence))
    return (
        f"{cell.approach} at epsilon {cell.epsilon:g}, {cell.records:,} records: {cell.absent:,} "
        f"answers of silos did not come, and count as zero. First: {why}"
    )


def _row(cell: EstimatesCell) -> list[str]:
    row = [cell.approach, f"{cell.records:,}", f"{cell.epsilon:g}"]
    if cell.refused:
        return [*row, "", "refused", cell.refused, ""]
    excess, bound = cell.excess, cell.bound
    return [
        *row,
        f"{cell.delta:g}",
        f"{excess.mean:.2g}",
        f"{excess.low:.2g} to {excess.high:.2g}",
        "" if bound is None else f"{bound:.2g}",
    ]
