"""What a threshold makes of the evaluation half of a run, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

from fedprivacy.attacks.targets import Targets


@dataclass(frozen=True)
class Counts:
    """One operating point of one attack on one run: who is called a member there.

    The threshold was fitted on the calibration half, and all counts are of the evaluation half: given the
    threshold they are numbers of successes in so many trials.

    Args:
        hits: Members that are called members.
        members: All of them.
        alarms: Non-members that are called members.
        nonmembers: All of them.
    """

    hits: int
    members: int
    alarms: int
    nonmembers: int

    def to_json(self) -> dict[str, int]:
        """The counts as a JSON object."""
        return {
            "hits": self.hits,
            "members": self.members,
            "alarms": self.alarms,
            "nonmembers": self.nonmembers,
        }


def count(targets: Targets, threshold: float) -> Counts:
    """The counts of the evaluation half at a threshold; who is above it is called a member."""
    members, others = (targets.of(member=member, calibration=False) for member in (True, False))
    return Counts(
        int((members > threshold).sum()), len(members), int((others > threshold).sum()), len(others)
    )
