"""How much of its plan a run is charged for: one rule for every record, however the run ended.

A run is charged for its whole plan, unless every planned round has completed. Whoever stops a run has usually
looked at it, and what a run shows (accuracy, failures, a model) depends on the data. Composition over a fixed
number of rounds says nothing about a number that was chosen in this way; stopping early is post-processing of
all planned rounds (Rogers, Roth, Ullman and Vadhan 2016). The same holds for early stopping, which reads
released models (`fedprivacy.training.early_stopping`), and for a run that failed, since a fault may depend on
the data.

The epsilon of the rounds that did complete stands beside the claim, as `completed`, with the assumption under
which alone it holds. It is not given where early stopping may end the run: the number of rounds then depends
on released models, whoever stops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

COMPLETED = "completed"  # the key of the second ledger, and of its guarantees
STOPPED_BLINDLY = (
    "the decision when to stop looked at nothing that depends on the data (no model, accuracy or count of "
    "failures), since else only the planned charge holds"
)
FAILED_BLINDLY = (
    "the fault that ended the run, and its round, depend on nobody's data, since else only the planned "
    "charge holds"
)
UNDER_WAY = (
    "The work broke off before its end. Each guarantee here is of a result that has finished, and charges "
    "all that was planned for it. Whatever was under way has no line here: count it as released, at all "
    "that was planned for it."
)
BLINDLY = {"interrupted": STOPPED_BLINDLY, "failed": FAILED_BLINDLY}  # by the status of a record


class Chargeable(Protocol):
    """A ledger that can be stated as far as it came, and for its whole plan."""

    def to_json(self) -> dict[str, Any]:
        """What has been released so far."""
        ...

    def in_advance(self, *, broken_off: bool = False) -> Chargeable:
        """What the whole plan releases at most."""
        ...


def charged(
    released: Chargeable, status: str, *, rounds: int, planned: int, early_stopping: bool, known: bool = True
) -> dict[str, Any]:
    """The ledger that a record states.

    Args:
        released: What has been released so far.
        status: Of the record: "running", "interrupted", "failed" or "finished".
        rounds: How many rounds (or queries) have completed.
        planned: How many were planned.
        early_stopping: Whether a rule that reads released models may end the run (`server.patience`).
        known: Whether `released` holds all that earlier processes released of a run that was resumed.

    Returns:
        The ledger as JSON. Its `completed`, where there is one, is the ledger of what has been released so
        far, whose claims assume that the run ended without regard to the data.
    """
    complete = rounds >= planned
    if complete and not early_stopping:
        return released.to_json()
    claim = released.in_advance(broken_off=status == "failed" and not complete).to_json()
    if complete or early_stopping or not known or status not in BLINDLY:
        return claim
    return {**claim, COMPLETED: _assuming(released.to_json(), BLINDLY[status])}


def under_way(status: str) -> list[str]:
    """The note of work of many results that broke off; none where it finished."""
    return [] if status in ("finished", "running") else [UNDER_WAY]


def _assuming(ledger: Mapping[str, Any], assumption: str) -> dict[str, Any]:
    """A ledger whose claims rest on one assumption more; what single clients have cost is left out."""
    claims = [
        claim if claim["event"] is None else {**claim, "assumptions": [assumption, *claim["assumptions"]]}
        for claim in ledger["claims"]
    ]
    return {**{key: value for key, value in ledger.items() if key != "clients"}, "claims": claims}
