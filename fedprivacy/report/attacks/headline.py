"""Which figures of an attack may be a headline: none whose interval covers nearly everything."""

from __future__ import annotations

from fedprivacy.attacks.sample_size import GOAL, members_needed, nonmembers_needed, tells
from fedprivacy.documents.attack import Measure

TOO_FEW = "too few targets to tell"
SHORT = "too few"  # where a number would be


def telling(measure: Measure | None) -> Measure | None:
    """The figure where its interval is narrow enough for a result; else None."""
    return measure if measure is not None and tells(measure.low, measure.high) else None


def needed(fpr: float | None = None) -> str:
    """How many targets it would take, in words.

    Args:
        fpr: The false positive rate of a TPR; without one, for an area or a share of right guesses.
    """
    others = members_needed() if fpr is None else nonmembers_needed(fpr)
    return (
        f"about {_rounded(members_needed()):,} members and {_rounded(others):,} non-members in the half that "
        f"is measured would give an interval of {100 * GOAL:g} points"
    )


def _rounded(number: int) -> int:
    """Two digits, rounded up.

    >>> _rounded(104), _rounded(1675)
    (110, 1700)
    """
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
