"""The assumptions of a run on remote nodes: who enforces the plan there, and where noise comes from.

A server cannot observe its nodes. Each guarantee therefore states the assumptions about them, as the
submitter's statement where there is one, and never as a fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.randomness.system import SEEDED, SYSTEM

_UNMEASURED = "and the observer does not measure when messages arrive"
_AT_SERVER = "floating-point noise and cohorts come from the operating system's entropy at the server"
# No message proves where a node's noise came from, so that both sentences are assumptions.
_STATED = (
    "what is drawn on the nodes (floating-point noise, batches) comes from their operating systems' entropy, "
    "as the submitter of the run states; no message shows it"
)
_ASSUMED = (
    "what is drawn on the nodes (floating-point noise, batches) comes from their operating systems' entropy, "
    "as the run requests: this is assumed, and no message shows it"
)
_SHARES_ASSUMED = (
    "rounding and integer noise on the nodes come from their operating systems' entropy, as the run "
    "requests: this is assumed, and no message shows it"
)
_SHARES_STATED = (
    "rounding and integer noise on the nodes come from their operating systems' entropy, as the submitter of "
    "the run states; no message shows it"
)
_NAMES = {SEEDED: "simulation-grade randomness", SYSTEM: "operating system's entropy"}


@dataclass(frozen=True)
class Stated:
    """The statements of a run's submitter about it.

    Args:
        pinned: That each node holds the run's plan itself.
        noise: Where noise and cohorts come from, "seeded" or "system". A pinned node draws as its owner
            decides; a seeded run claims nothing better of it.
        reads: That the server's process reads the records of all clients, out of a file, and the run is more
            than a simulation.
    """

    pinned: bool = False
    noise: str = SEEDED
    reads: bool = False

    def randomness(self, *, server: bool, nodes: bool) -> str:
        """The assumption of a guarantee about the randomness that it depends on.

        Args:
            server: Whether it rests on what the server draws.
            nodes: Whether it rests on what the nodes draw.
        """
        # Seeded noise is no secret to an observer with the seed, which can subtract it.
        if self.noise == SEEDED:
            return TrainingAssumption.SIMULATED
        parts = [_AT_SERVER] * server + [_STATED if self.pinned else _ASSUMED] * nodes
        return "; ".join([*parts, _UNMEASURED])

    @property
    def randomness_of_shares(self) -> str:
        """The assumption about rounding and noise in shares, which nodes draw."""
        if self.noise == SEEDED:
            return TrainingAssumption.SHARES_SIMULATED
        return f"{_SHARES_STATED if self.pinned else _SHARES_ASSUMED}; {_UNMEASURED}"

    def to_json(self, *, held: bool) -> dict[str, Any]:
        """The record's entry about a run's randomness.

        Args:
            held: Whether the clients were our own, of whom it is known.
        """
        stated = self.pinned and self.noise == SYSTEM
        known = "" if held else ", stated by the submitter of the run" if stated else ", assumed"
        return {"server": _NAMES[self.noise], "clients": _NAMES[self.noise] + known}


SIMULATION = Stated()


def possible(randomness: Mapping[str, Any], *, held: bool) -> Iterator[Stated]:
    """The statements that a record with this `randomness` (`Stated.to_json`) may rest on.

    Args:
        randomness: The record's entry.
        held: As `Stated.to_json` has it.
    """
    for pinned, noise, reads in product((False, True), _NAMES, (False, True)):
        stated = Stated(pinned, noise, reads)
        if stated.to_json(held=held) == randomness:
            yield stated
