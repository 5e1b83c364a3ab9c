"""Passive attacks: membership from the messages that an honest party would see (Nasr et al. 2019)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedprivacy.attacks.rounds_attack import Ids, RoundsAttack


class Passive(RoundsAttack):
    """Observes the messages that an honest party would see."""

    label: ClassVar[str] = "passive"

    kind: Literal["passive"]
    rounds: int = Field(20, ge=1, le=10**5, description="How many rounds are observed, such as 20.")
    skip: int = Field(
        0, ge=0, le=10**6, description="How many rounds go by before the first that is observed."
    )
    every: int = Field(1, ge=1, le=10**5, description="Of how many rounds one is observed, such as 5.")

    @property
    def watched(self) -> range:
        """The rounds that are observed; 0 is the first after the warm-up."""
        return range(self.skip, self.skip + self.rounds * self.every, self.every)

    @property
    def view(self) -> str:
        """Which rounds it can look at: from which seat, and of which stream."""
        parts = ["passive", self.seat, *["sum"] * self.in_sum, *["isolating"] * self.isolating]
        return "-".join([*parts, *([] if self.attacker is None else [str(self.attacker)])])

    @property
    def shared_key(self) -> str:
        """Passive attacks of one seat look at rounds of one training; no name of an attack has a slash."""
        return f"/{self.view}"

    def branch_key(self, rounds: int) -> str:
        """The view and its rounds."""
        return f"{self.view}/{rounds}"

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds; a participant needs one more to see the last result."""
        return self.watched[-1] + 1 + (self.seat == "participant")

    def turns(self, targets: int, stream: np.random.Generator) -> list[Ids | None]:
        """All targets in each round."""
        return [None] * (self.watched[-1] + 1)
