"""Determines the charged part of a run's plan for every way to end: one rule for every record.

A run is charged for its whole plan, unless every planned round has completed. A user who stops a run has
usually looked at it, and its output (accuracy, failures, a model) depends on the data. Composition over a
fixed number of rounds does not cover a number that was chosen in this way; stopping early is post-processing
of all planned rounds (Rogers, Roth, Ullman and Vadhan 2016). The same applies to early stopping, which reads
released models (`fedprivacy.training.early_stopping`), and to a run that failed, since a fault may depend on
the data.

The record states the epsilon of the completed rounds as well, under `completed`, with the assumption that it
needs. It is not given where early stopping may end the run: the number of rounds then depends on released
models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fedprivacy.guarantees.assumptions import TrainingAssumption

COMPLETED = "completed"  # the key of the second ledger, and of its guarantees
UNDER_WAY = (
    "The work broke off before its end. Each guarantee here is of a result that has finished, and charges "
    "all that was planned for it. Whatever was under way has no line here: count it as released, at all "
    "that was planned for it."
)
BLINDLY = {  # by the status of a record
    "interrupted": TrainingAssumption.STOPPED_BLINDLY,
    "failed": TrainingAssumption.FAILED_BLINDLY,
}


class Chargeable(Protocol):
    """A ledger that can state the releases so far, and those of its whole plan."""

    def to_json(self) -> dict[str, Any]:
        """The releases so far."""
        ...

    def in_advance(self, *, broken_off: bool = False) -> Chargeable:
        """The releases of the whole plan."""
        ...


def charged(
    released: Chargeable, status: str, *, rounds: int, planned: int, early_stopping: bool, known: bool = True
) -> dict[str, Any]:
    """The ledger that a record states.

    Args:
        released: The ledger of the releases so far.
        status: Of the record: "running", "interrupted", "failed" or "finished".
        rounds: The number of completed rounds (or queries).
        planned: The number of planned ones.
        early_stopping: Whether a rule that reads released models may end the run (`server.patience`).
        known: Whether `released` includes all releases of earlier processes of a resumed run.

    Returns:
        The ledger as JSON. Its optional `completed` is the ledger of the releases so far, whose claims assume
        that the run ended without regard to the data.
    """
    # With all planned rounds done, nothing that looked at the data has shortened the run.
    complete = rounds >= planned
    if complete and not early_stopping:
        return released.to_json()
    claim = released.in_advance(broken_off=status == "failed" and not complete).to_json()
    # The smaller figure needs a number of rounds that does not depend on the data. Early stopping reads
    # models, and a resumed run may not know all its earlier releases: only the whole plan is charged then.
    if complete or early_stopping or not known or status not in BLINDLY:
        return claim
    return {**claim, COMPLETED: _assuming(released.to_json(), BLINDLY[status])}


def under_way(status: str) -> list[str]:
    """The note for interrupted work of many results; empty where it finished."""
    return [] if status in ("finished", "running") else [UNDER_WAY]


def _assuming(ledger: Mapping[str, Any], assumption: str) -> dict[str, Any]:
    """The ledger with one more assumption in its claims, and without the costs of single clients."""

    def assuming(claims: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [
            claim
            if claim["event"] is None
            else {**claim, "assumptions": [str(assumption), *claim["assumptions"]]}
            for claim in claims
        ]

    changed = {key: value for key, value in ledger.items() if key != "clients"}
    changed["claims"] = assuming(ledger["claims"])
    if "groups" in ledger:
        changed["groups"] = [{**group, "claims": assuming(group["claims"])} for group in ledger["groups"]]
    return changed
