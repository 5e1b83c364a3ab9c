"""Sentences about the exposed records of a replay."""

from __future__ import annotations

from fedprivacy.documents.exposure import Exposure
from fedprivacy.report import words
from fedprivacy.report.attacks import figures


def basis(exposure: Exposure) -> str:
    """The basis of the figures."""
    return (
        f"{figures.score(exposure.method)}, on each of {exposure.models:,} reference models in turn, with "
        f"the help of the others; each was trained without noise on a half of the {exposure.records:,} "
        "records. A record is called a member above a threshold that "
        f"{figures.percent(exposure.fpr)} of a model's non-members pass. So this is what records stand to "
        "lose to models that are trained like the released one without privacy: a guarantee of the run "
        "is not reckoned with."
    )


def summary(exposure: Exposure) -> str:
    """The number of certainly exposed records."""
    return (
        f"{exposure.exposed:,} of {exposure.records:,} records are exposed for certain: models that were "
        "trained on them call them members more often than others do (Fisher's exact test at 5 %, "
        "corrected for their number)."
    )


def carrying(exposure: Exposure) -> str:
    """The share of the leakage that the most exposed records carry; empty if unknown."""
    if not exposure.carried:
        return ""
    each = [
        " and ".join(
            [
                f"{figures.percent(part.hits)} of the true positives",
                *([f"{figures.percent(part.alarms)} of the false alarms"] if part.alarms is not None else []),
            ]
        )
        + f" fall on the {part.records:,} most exposed ({figures.percent(part.records / exposure.records)})"
        for part in exposure.carried
    ]
    return (
        f"Of the {exposure.records:,} records, {words.listed(each)}. They are ranked by what one half of the "
        "models say of them and counted on the other half, so that luck does not flatter. Were all "
        "records alike, each part would have its own share."
    )
