"""The event of shuffled messages: a pure epsilon-DP message of each client, in random order."""

from __future__ import annotations

import attr
from dp_accounting import dp_event as dp

MIN_LOCAL, MAX_LOCAL = 1e-3, 25.0
MAX_CLIENTS = 10**10


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledDpEvent(dp.DpEvent):
    """Messages of clients, one each by one and the same pure mechanism, behind a shuffler.

    It hides a replaced answer, and no missing one. dp_accounting has no event for it.

    Args:
        local_epsilon: epsilon_0 of each message, from 0.001 to 25.
        clients: The number of messages whose randomness the observer does not know, the protected one's
            among them; at least 1.
    """

    local_epsilon: float
    clients: int
