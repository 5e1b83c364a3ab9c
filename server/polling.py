"""Flower's grid of a deployment, as our rounds use a grid: lazy, bounded in time, deaf to strangers."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Iterable, Iterator

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

logger = logging.getLogger(__name__)

AT_ONCE = 32  # messages under way at once, so that memory does not grow with the cohort
POLL = 0.5  # seconds between two looks for replies; Flower's own loop looks every 3


class PollingGrid(Grid):
    """Sends a few messages at a time through Flower's grid, and yields replies as they come.

    Flower's `HttpGrid.send_and_receive` goes over its messages twice, so a generator sends none at all (flwr
    1.41); it waits for all replies, and hands on an error of its own without the group that it answers.

    Args:
        grid: Flower's own.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    @property
    def run(self):  # type: ignore[no-untyped-def]
        """The run."""
        return self._grid.run

    def set_run(self, run) -> None:  # type: ignore[no-untyped-def]
        """Take over the details of the run."""
        self._grid.set_run(run)

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

    def get_node_ids(self) -> Iterable[int]:
        """The ids of the nodes that are online."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Sends messages and returns their ids."""
        return self._grid.push_messages(list(messages))

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies that are there."""
        return self._grid.pull_messages(list(message_ids))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        """The replies, one by one, as they come.

        Args:
            messages: Taken as replies come in; those that are left when time is up are not sent.
            timeout: Seconds from this call after which no reply is waited for.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        return self._replies(iter(messages), deadline)

    def _replies(self, messages: Iterator[Message], deadline: float) -> Iterator[Message]:
        waiting: dict[str, str] = {}  # message id -> group
        while True:
            fresh = list(itertools.islice(messages, AT_ONCE - len(waiting)))
            if fresh:
                groups = [message.metadata.group_id for message in fresh]
                sent = list(self._grid.push_messages(fresh))
                del fresh
                waiting |= {key: group for key, group in zip(sent, groups, strict=False) if key}
            if not waiting:
                return
            if time.monotonic() >= deadline:
                logger.warning("Time is up: %d replies did not come.", len(waiting))
                return
            came = list(self._grid.pull_messages(list(waiting)))
            for reply in came:
                group = waiting.pop(reply.metadata.reply_to_message_id, None)
                if group is None:
                    continue  # nobody asked for it
                reply.metadata.group_id = group  # what was asked, whatever the reply says
                yield reply
            if not came:
                time.sleep(POLL)
