"""The errors of private regressions on test records."""

from __future__ import annotations

from fedprivacy.documents.cell import Figures
from fedprivacy.documents.estimates import EstimatesDocument
from fedprivacy.report import words
from fedprivacy.report.blocks import Details, Entry, Section, Table, Value


def section(document: EstimatesDocument) -> list[Section]:
    """RMSE and R2 of every cell; no section without test records, or where classes are fitted."""
    rows = [
        (
            cell.approach,
            f"{cell.records:,}",
            words.target(cell.epsilon),
            _figure(errors.rmse),
            _figure(errors.r2),
        )
        for cell in document.fitted_cells
        if (errors := cell.held_out) is not None
    ]
    if not rows:
        return []
    target = document.setting("data", "target") or "the target"
    epsilon_terms = words.terms([g for cell in document.cells for g in cell.guarantees])
    caption = (
        f"Errors in predicting {target} of test records that no estimate was fitted on: the root mean "
        "squared error, in the unit of the target, and R2, the share of the variance that is explained "
        "(below 0: the mean of the test records explains more). A target beyond the public bounds counts as "
        "the bound. Means over noise with 95 % intervals, known to this simulation alone, since they are of "
        f"several estimates. Each epsilon: {epsilon_terms}."
    )
    head = ("Approach", "Records", "Epsilon", "RMSE", "R2")
    table = Table(caption, head, rows, numeric=frozenset({1, 2, 3, 4}))
    return [Section("held-out", "On test records", [Details("RMSE and R2 of every cell", [table])])]


def _figure(figure: Figures | None) -> Value:
    if figure is None or figure.mean is None:
        return "—"
    mean, ends = words.number(figure.mean, 3), figure.interval
    return Entry(mean, " to ".join(words.number(end, 3) for end in ends)) if ends else mean
