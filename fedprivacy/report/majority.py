"""The baseline of always naming the most frequent class, which a model has to exceed.

Records that the model gets right outside the most frequent class speak for it, wrong ones inside it against:
the test is McNemar's for two classifiers on the same records, with Edwards' correction (1948).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.quality import ClassAccuracy
from fedprivacy.documents.run import RunDocument

NAMING = "always naming the most frequent class"
NOT_MEASURABLY = f"not measurably better than {NAMING}"
Z = 1.96  # 95 %, two-sided


def share(classes: Sequence[ClassAccuracy] | None) -> float | None:
    """The accuracy of naming the most frequent class of the held-out records every time; None if unknown."""
    counts = [entry.records or 0 for entry in classes or ()]
    return max(counts) / sum(counts) if counts and min(counts) >= 0 < sum(counts) else None


def verdict(classes: Sequence[ClassAccuracy] | None) -> str:
    """A clause that a model does not exceed the most frequent class; empty where it does, or if unknown.

    Args:
        classes: The accuracy within each class; of several seeds, the mean.

    >>> often = ClassAccuracy(**{"class": 0}, accuracy=1.0, records=90)
    >>> seldom = [ClassAccuracy(**{"class": 1}, accuracy=share, records=10) for share in (0.0, 0.8)]
    >>> verdict([often, seldom[0]]), verdict([often, seldom[1]])
    ('no better than always naming the most frequent class', '')
    """
    known = [(entry.records or 0, entry.accuracy) for entry in classes or () if entry.records]
    measured = all(accuracy is not None and 0 <= accuracy <= 1 for _, accuracy in known)
    if share(classes) is None or not measured:
        return ""
    right = [records * (accuracy or 0.0) for records, accuracy in known]
    most = max(range(len(known)), key=lambda at: known[at][0])
    gained, lost = sum(right) - right[most], known[most][0] - right[most]
    if gained <= lost:
        return f"no better than {NAMING}"
    exceeds = gained - lost - 1 > Z * math.sqrt(gained + lost)
    return "" if exceeds else NOT_MEASURABLY


def of_run(document: RunDocument) -> str:
    """The clause of `verdict` about the final model of a run."""
    return "" if document.final is None else verdict(document.final.per_class)


def of_cell(cell: Cell) -> str:
    """The clause of `verdict` about the models of a cell, which holds over its seeds too."""
    always, low = share(cell.per_class), cell.accuracy.low
    if always is not None and low is not None and low <= always:
        return verdict(cell.per_class) or NOT_MEASURABLY
    return verdict(cell.per_class)
