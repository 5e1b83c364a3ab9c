"""Compact tables of comparisons: arms down, epsilons across, a figure with its interval in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table

from fedprivacy.io.console import Terminal

if TYPE_CHECKING:  # the command starts without what only a result takes
    from fedprivacy.documents.cell import Figures

_GAP = 2  # columns between two cells
_LABEL = 30  # columns that a label has at most; a longer one is folded


@dataclass(frozen=True)
class Line:
    """One arm.

    Args:
        label: Its name.
        cells: Its figures by epsilon.
        heading: What stands above it and above the lines after it with the same.
    """

    label: str
    cells: Mapping[float, str]
    heading: str = ""


def show_matrix(lines: Sequence[Line], console: Terminal) -> None:
    """Prints lines with a column for each epsilon; of more than fit the terminal, in several tables.

    Args:
        lines: The arms.
        console: Where; its width is that of the tables.
    """
    epsilons = sorted({epsilon for line in lines for epsilon in line.cells})
    label = min(_LABEL, max([len("epsilon"), *(len(line.label) for line in lines)]))
    widest = max((len(text) for line in lines for text in line.cells.values()), default=0)
    fitting = max(1, (console.width - label) // (widest + _GAP))
    for start in range(0, len(epsilons), fitting):
        shown = epsilons[start : start + fitting]
        for place, (heading, group) in enumerate(groupby(lines, key=lambda line: line.heading)):
            if heading:
                console.print(heading, style="bold")
            console.print(_table(list(group), shown, (label, widest), header=place == 0))


def with_interval(figures: Figures, digits: int = 1, scale: float = 1.0) -> str:
    """Returns a mean with its interval, as `95.1 ±0.4`; one that is cut at 0 or 100 % has both ends.

    Args:
        figures: The mean over seeds.
        digits: Decimals.
        scale: What the figures are multiplied by.
    """
    if figures.mean is None:
        return "-"
    text = f"{scale * figures.mean:.{digits}f}"
    if figures.interval is None:
        return text
    below, above = (scale * abs(end - figures.mean) for end in figures.interval)
    if abs(below - above) < 10**-digits:
        return f"{text} ±{max(below, above):.{digits}f}"
    return f"{text} ({' to '.join(f'{scale * end:.{digits}f}' for end in figures.interval)})"


def _table(
    lines: Sequence[Line], epsilons: Sequence[float], widths: tuple[int, int], *, header: bool
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=header)
    table.add_column("epsilon", overflow="fold", width=widths[0])
    for epsilon in epsilons:
        table.add_column(f"{epsilon:g}", justify="right", no_wrap=True, width=widths[1])
    for line in lines:
        table.add_row(line.label, *(line.cells.get(epsilon, "") for epsilon in epsilons))
    return table
