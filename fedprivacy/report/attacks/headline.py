"""Which figures of an attack may be a headline: none whose interval covers nearly everything."""

from __future__ import annotations

from fedprivacy.attacks.sample_size import GOAL, members_needed, rounded_up, targets_needed, tells
from fedprivacy.documents.attack import Measure

TRAINING = "training seeds too"  # what an interval over repeated training covers
SHORT = "too few"  # where a number would be


def telling(measure: Measure | None) -> Measure | None:
    """The figure where its interval is narrow enough for a result; else None."""
    return measure if measure is not None and tells(measure.low, measure.high) else None


def too_few(measure: Measure | None) -> str:
    """The lack that leaves an interval too wide: of targets, or of repeated training.

    >>> too_few(None), too_few(Measure(value=0.7, low=0.0, high=1.0, covers=TRAINING))
    ('too few targets to tell', 'too few runs to tell')
    """
    what = "runs" if measure is not None and measure.covers == TRAINING else "targets"
    return f"too few {what} to tell"


def needed(measure: Measure | None, fpr: float | None = None) -> str:
    """How many targets it would take, in words; or runs, without a number.

    Args:
        measure: The figure whose interval is too wide.
        fpr: The false positive rate of a TPR; without one, for an area or a share of right guesses.
    """
    if measure is not None and measure.covers == TRAINING:
        return "more runs, game.repeats, narrow the interval"
    members, others = (members_needed(), members_needed()) if fpr is None else targets_needed(fpr)
    return (
        f"about {rounded_up(members):,} members and {rounded_up(others):,} non-members would give "
        f"an interval of {100 * GOAL:g} points"
    )
