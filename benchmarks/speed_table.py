"""The table of measured ratios in a Markdown file: one row for each work and peer of a measurement."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from benchmarks.machine import Machine

MARK = "<!-- rows are appended by benchmarks.against_peers -->"
LEAST_TURNS = 3  # a median of fewer turns has no middle


class Compared(Protocol):
    """One work and cohort beside one peer, as `against_peers.Row` measures it."""

    @property
    def work(self) -> str: ...
    @property
    def cohort(self) -> int: ...
    @property
    def peer(self) -> str: ...
    @property
    def peer_cohort(self) -> int: ...
    @property
    def ours(self) -> tuple[float, ...]: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def ratios(self) -> list[float]: ...


def lines(
    rows: Sequence[Compared],
    measured: Sequence[Mapping[str, Any]],
    machine: Machine,
    titles: Mapping[str, str],
) -> list[str]:
    """Returns the rows of the table; a peer that always failed has none.

    Args:
        rows: Each work and cohort beside each peer.
        measured: Our rows (`cohort.Row`), turn by turn, with the rate of matrix products beside each.
        machine: The machine that measured.
        titles: The peers' display names.
    """
    table = []
    for row in (row for row in rows if row.ratio is not None):
        turns = [each for each in measured if (each["work"], each["cohort"]) == (row.work, row.cohort)]
        products = statistics.median(each["products"] for each in turns) / 1e9
        shares = [each["share"] for each in turns if each["share"] is not None]
        share = f", {statistics.median(shares):.0%} of it reached" if shares else ""
        cells = [
            f"{machine.processor}, {machine.cores} cores",
            date.today().isoformat(),
            f"{row.work}, {row.cohort:,}",
            f"{statistics.median(row.ours):,.0f}",
            f"{titles[row.peer]}, {row.peer_cohort:,}",
            f"{row.ratio:,.3g} ({min(row.ratios):,.3g} to {max(row.ratios):,.3g})",
            f"{len(row.ratios)}",
            f"{products:,.0f} GFLOP/s{share}",
            machine.libraries,
        ]
        table.append(f"| {' | '.join(cells)} |")
    return table


def append(file: Path, rows: Sequence[str]) -> None:
    """Inserts rows at the end of the table, above the mark.

    Raises:
        ValueError: the file has no mark.
    """
    text = file.read_text(encoding="utf-8")
    if text.count(MARK) != 1:
        raise ValueError(f"{file} must have the line {MARK!r} once, below the table.")
    file.write_text(text.replace(MARK, "".join(f"{row}\n" for row in rows) + MARK), encoding="utf-8")
