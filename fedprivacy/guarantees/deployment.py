"""What a run over nodes of others rests on: who holds the plan there, and where noise comes from.

A server cannot see what its nodes do. What is assumed of them is therefore said in each guarantee, as
somebody's statement where somebody made one, and never as a fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedprivacy.randomness.system import SEEDED, SYSTEM

SIMULATED = (
    "simulation-grade randomness: floating-point noise and sampling come from a seeded stream that the "
    "observer does not know; it sees this run alone, and each round once (what is played again, after a "
    "break, from the start or by another version, has the same noise); and it does not measure when messages "
    "arrive"
)
_UNMEASURED = "and the observer does not measure when messages arrive"
_AT_SERVER = "floating-point noise and cohorts come from the operating system's entropy at the server"
_STATED = (
    "what is drawn on the nodes (floating-point noise, batches) comes from their operating systems' entropy, "
    "as whoever submitted the run states, and no message shows"
)
_ASSUMED = (
    "what is drawn on the nodes (floating-point noise, batches) comes from their operating systems' entropy, "
    "as the run asks of them: this is assumed, and no message shows it"
)
THIS_CODE = "and the code that came with the run to its node is this code, unchanged"
_PINNED = (
    "each client holds this plan itself, pinned on its own node, as whoever submitted the run states and no "
    "message shows: by it the client {does} and counts its own answers, whatever the server asks; "
)
PINNED = _PINNED.format(does="clips, draws its own noise") + THIS_CODE
STEPS_PINNED = (
    _PINNED.format(does="clips the gradient of each record, draws its own batches and noise") + THIS_CODE
)
ANSWERS_PINNED = _PINNED.format(does="randomises its own answers, answers each query once") + THIS_CODE
SERVER_READS = "the server's process has read the records itself, out of the file that holds all of them"
FILE_READ = (
    "the records are in one file, and the processes of the run that read it, the server's among them, make "
    "nothing else of it than this plan does"
)
NODES_ANSWER = (
    "no client's records make its training hang or kill its process, which the server would see "
    "(federation.client_timeout in the node's own scenario keeps that from it)"
)
_NAMES = {SEEDED: "simulation-grade randomness", SYSTEM: "operating system's entropy"}


@dataclass(frozen=True)
class Stated:
    """What whoever submits a run states of it.

    Args:
        pinned: That each node holds the run's plan itself.
        noise: Where noise and cohorts come from, "seeded" or "system". A pinned node draws as its owner says:
            from a run that is seeded nothing better is claimed of it.
        reads: That the server's process reads the records of all clients, out of a file, and the run is more
            than a simulation.
    """

    pinned: bool = False
    noise: str = SEEDED
    reads: bool = False

    def randomness(self, *, server: bool, nodes: bool) -> str:
        """What a guarantee assumes of the randomness that it rests on.

        Args:
            server: Whether it rests on what the server draws.
            nodes: Whether it rests on what the nodes draw.
        """
        if self.noise == SEEDED:
            return SIMULATED
        parts = [_AT_SERVER] * server + [_STATED if self.pinned else _ASSUMED] * nodes
        return "; ".join([*parts, _UNMEASURED])

    def to_json(self, *, held: bool) -> dict[str, Any]:
        """What a record says of a run's randomness.

        Args:
            held: Whether the clients were our own, of whom it is known.
        """
        told = self.pinned and self.noise == SYSTEM
        known = "" if held else ", stated by whoever submitted the run" if told else ", assumed"
        return {"server": _NAMES[self.noise], "clients": _NAMES[self.noise] + known}


SIMULATION = Stated()


def possible(randomness: Mapping[str, Any], *, held: bool) -> Iterator[Stated]:
    """The statements that a record with this `randomness` (`Stated.to_json`) may rest on.

    Args:
        randomness: What the record says.
        held: As `Stated.to_json` has it.
    """
    for pinned, noise, reads in product((False, True), _NAMES, (False, True)):
        stated = Stated(pinned, noise, reads)
        if stated.to_json(held=held) == randomness:
            yield stated
