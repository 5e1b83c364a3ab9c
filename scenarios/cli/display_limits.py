"""The lines of ablations and baselines on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedprivacy.io.percentages import percent

if TYPE_CHECKING:
    from fedprivacy.documents.comparison import CompareDocument
    from fedprivacy.documents.run import RunDocument


def lines_of_run(run: RunDocument) -> list[str]:
    """Returns what limits a run, and its ablations; nothing where they were not trained."""
    from fedprivacy.report.limits import cells_of, lines

    planned, variants = cells_of(run)
    return [] if run.limits is None else lines(run.limits.limiting, variants, planned)


def lines_of_comparison(comparison: CompareDocument) -> list[str]:
    """Returns the baseline of a comparison, what limits it, and its ablations."""
    from fedprivacy.report.limits import lines

    clipped = [cell.accuracy.mean for cell in comparison.baselines if cell.accuracy.mean is not None]
    baseline = [f"Clipping alone, no noise: {percent(mean)}" for mean in clipped]
    return [*baseline, *lines(comparison.limiting, comparison.limits, comparison.planned)]
