"""The lines of ablations and baselines on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedprivacy.documents.comparison import CompareDocument
    from fedprivacy.documents.run import RunDocument


def lines_of_run(run: RunDocument) -> list[str]:
    """Returns what limits a run, and its ablations; nothing where they were not trained."""
    from fedprivacy.documents.comparison import Ablated, Cell
    from fedprivacy.report.limits import lines

    if run.limits is None or run.limits.planned is None:
        return []
    planned, variants = run.limits.planned, [Ablated.model_validate(cell) for cell in run.limits.variants]
    return lines(run.limits.limiting, variants, Cell.model_validate(planned))


def lines_of_comparison(comparison: CompareDocument) -> list[str]:
    """Returns the baseline of a comparison, what limits it, and its ablations."""
    from fedprivacy.report.limits import lines

    clipped = [cell.accuracy.mean for cell in comparison.baselines if cell.accuracy.mean is not None]
    baseline = [f"Clipping alone, no noise: {mean:.3f}" for mean in clipped]
    return [*baseline, *lines(comparison.limiting, comparison.limits, comparison.planned)]
