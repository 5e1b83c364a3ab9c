"""Early stopping: ends training once the loss on public records no longer falls.

The rule reads the losses of released models on public records alone, so the time of stopping reveals nothing
beyond these models. But the number of rounds then depends on the releases, and composition over a fixed
number of rounds proves no epsilon for the completed ones (Rogers, Roth, Ullman and Vadhan 2016: a privacy
filter may end a composition early within the budget set in advance; an odometer of the spent part costs
more). Stopping early is post-processing of all planned rounds, so a run with this rule is always charged for
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PUBLIC_LOSS = "public_loss"  # of an event: what the rule reads, where the model is evaluated on other records


def has_stopped(losses: Sequence[float], patience: int) -> bool:
    """Whether training ends after these measurements.

    Args:
        losses: On public records, in order; one that is not finite is no improvement.
        patience: Training ends after this many consecutive measurements without a new minimum.

    >>> has_stopped([3.0, 1.0, 2.0, 1.5], 2), has_stopped([3.0, 1.0, 2.0, 0.5], 2)
    (True, False)
    """
    best, since = float("inf"), 0
    for loss in losses:
        best, since = (loss, 0) if loss < best else (best, since + 1)
    return since >= patience


def has_ended(rounds: Sequence[Mapping[str, Any]], planned: int, patience: int | None) -> bool:
    """Whether a run has come to its end, early or not.

    Args:
        rounds: As `fedprivacy.records.run_record.round_event` made them.
        planned: How many there may be.
        patience: As `has_stopped` has it; None: it never ends early.
    """
    if len(rounds) >= planned or patience is None:
        return len(rounds) >= planned
    # Where the model is evaluated on the public records too, that loss is the one (`evaluation.on`).
    measured = [
        event.get(PUBLIC_LOSS, event["loss"])
        for event in rounds
        if PUBLIC_LOSS in event or "score" in event or event["accuracy"] is not None
    ]
    return has_stopped([float("inf") if loss is None else loss for loss in measured], patience)


def words(completed: int, planned: int, patience: int, *, stopped: bool, noise: bool) -> str:
    """The record's entry about the rule.

    Args:
        completed: The rounds that were.
        planned: The rounds that might have been.
        patience: Measurements without a lower loss.
        stopped: Whether the rule has ended training.
        noise: Whether somebody adds noise, so that rounds are charged.
    """
    ended = f"ended after {completed} of {planned} rounds" if stopped else "was not ended by it"
    return _words(ended, f"{planned}", patience, noise=noise)


def words_of_runs(runs: Sequence[tuple[int, int]], patience: int, *, noise: bool) -> str:
    """A comparison's entry about the rule.

    Args:
        runs: The completed and the planned rounds of each finished run.
        patience: Measurements without a lower loss.
        noise: Whether any of them has noise.

    >>> words_of_runs([(4, 9), (9, 9), (6, 9)], 2, noise=False)[:71]
    'Early stopping: training ended after 4 to 6 of 9 rounds in 2 of 3 runs.'
    """
    early = [completed for completed, planned in runs if completed < planned]
    whole = _span([planned for _, planned in runs])
    ended = f"ended after {_span(early)} of {whole} rounds in {len(early)} of {len(runs)} runs"
    return _words(ended if early else "was not ended by it in any run", whole, patience, noise=noise)


def _words(ended: str, planned: str, patience: int, *, noise: bool) -> str:
    times = "1 measurement" if patience == 1 else f"{patience} measurements"
    text = (
        f"Early stopping: training {ended}. The rule (no lower loss in {times}) looked at released models "
        "and public records alone."
    )
    return text + (f" All {planned} planned rounds are charged, whenever it ends." if noise else "")


def _span(numbers: Sequence[int]) -> str:
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{least}" if least == most else f"{least} to {most}"
