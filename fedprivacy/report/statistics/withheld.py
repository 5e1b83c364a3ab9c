"""The wording of guarantees on a page that leaves true values and errors out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedprivacy.documents.envelope import Document
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report.protection import Protected
from fedprivacy.statistics.assumptions import StatisticsAssumption

MET = " (this page leaves them out)"


def truth(document: Document, cells: Sequence[Protected]) -> list[Protected]:
    """The guarantees; on a page without true values, the assumption that they are hidden says so.

    Args:
        document: The run or comparison.
        cells: Its guarantees.
    """
    if not document.lacks_truth:
        return list(cells)
    return [replace(cell, guarantees=[_met(guarantee) for guarantee in cell.guarantees]) for cell in cells]


def _met(guarantee: Guarantee) -> Guarantee:
    hidden = str(StatisticsAssumption.TRUTH_HIDDEN)
    assumptions = (text + MET * (text == hidden) for text in guarantee.assumptions)
    words = guarantee.words and guarantee.words.replace(hidden, hidden + MET)
    return guarantee.model_copy(update={"assumptions": tuple(assumptions), "words": words})
