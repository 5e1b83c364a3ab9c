"""The common part of our Flower ``Grid`` classes, on one machine and over many."""

from __future__ import annotations

import math
import time

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid


class MessageGrid(Grid):
    """A grid whose messages are made as Flower recommends."""

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """The same as ``Message(...)``."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)


def deadline_of(timeout: float | None) -> float:
    """The ``time.monotonic`` of a deadline in so many seconds; infinite without a timeout."""
    return math.inf if timeout is None else time.monotonic() + timeout
