"""The rounds in which a client takes part, and its refusals."""

from __future__ import annotations

import threading

from fedprivacy.errors import Refusal


class Rounds:
    """The rounds that a client has entered, each at most once.

    Threads and clients may share it. In memory: a node that restarts must enter no round that it may have
    entered before.
    """

    def __init__(self) -> None:
        self._entered: set[str] = set()
        self._lock = threading.Lock()

    def enter(self, round_id: str) -> None:
        """Records that the client takes part in a round.

        Raises:
            Refusal: It did before.
        """
        with self._lock:
            if round_id in self._entered:
                raise refusal(
                    round_id, "this client took part before, and sums once a round. Start a new round."
                )
            self._entered.add(round_id)


def refusal(round_id: str, text: str) -> Refusal:
    """A client's refusal to continue a secure sum."""
    return Refusal(f"secure sum of round {round_id}: {text}", "secure-sum")
