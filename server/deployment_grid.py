"""Flower's grid of a deployment, as our rounds use a grid: lazy, bounded in time, deaf to strangers."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterable, Iterator

from flwr.app import Message
from flwr.serverapp import Grid

from server.grid import MessageGrid, deadline_of

logger = logging.getLogger(__name__)

AT_ONCE = 32  # messages that were taken and not answered, so that memory does not grow with the cohort
POLL = 0.5  # seconds between two looks for replies; Flower's own loop looks every 3


class PollingGrid(MessageGrid):
    """Sends messages through Flower's grid, one per node at a time; yields replies as they arrive.

    Flower starts a process for each message that reaches a node, however many there are already.

    Flower's `HttpGrid.send_and_receive` goes over its messages twice, so a generator sends none at all (flwr
    1.41); it waits for all replies, and hands on an error of its own without the group that it answers.

    Args:
        grid: Flower's own.
    """

    one_each = True

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    @property
    def all_here(self) -> bool:
        """Whether the inner grid has all its nodes from the beginning."""
        return bool(getattr(self._grid, "all_here", False))

    @property
    def run(self):  # type: ignore[no-untyped-def]
        """The run."""
        return self._grid.run

    def set_run(self, run) -> None:  # type: ignore[no-untyped-def]
        """Take over the details of the run."""
        self._grid.set_run(run)

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
            messages: Sent as replies arrive; those that remain at the deadline are not sent.
            timeout: Seconds from this call after which no reply is waited for.
        """
        return self._replies(iter(messages), deadline_of(timeout))

    def _replies(self, messages: Iterator[Message], deadline: float) -> Iterator[Message]:
        held: list[Message] = []  # until their node is free
        waiting: dict[str, tuple[int, str]] = {}  # message id -> node, group
        while True:
            late = time.monotonic() >= deadline
            if not late:
                held += itertools.islice(messages, AT_ONCE - len(waiting) - len(held))
                held = self._push_free(held, waiting)
            if not waiting and not late:
                if not held:
                    return
                continue  # the message was not sent; its node is free
            came = list(self._grid.pull_messages(list(waiting))) if waiting else []
            for reply in came:
                chunk = waiting.pop(reply.metadata.reply_to_message_id, None)
                if chunk is None:
                    continue  # a reply to no request
                reply.metadata.group_id = chunk[1]  # the request's own id, regardless of the reply's
                yield reply
            if late:  # its replies have been yielded
                left = len(waiting) + len(held)
                if left or next(messages, None) is not None:
                    logger.warning(
                        "Time is up: %d replies did not come, and messages that remain are not sent.", left
                    )
                return
            if not came:
                time.sleep(POLL)

    def _push_free(self, held: list[Message], waiting: dict[str, tuple[int, str]]) -> list[Message]:
        """Sends one message to each node that has none under way, and returns the others."""
        busy = {node for node, _ in waiting.values()}
        fresh: list[Message] = []
        later: list[Message] = []
        for message in held:
            free = message.metadata.dst_node_id not in busy
            (fresh if free else later).append(message)
            busy.add(message.metadata.dst_node_id)
        if fresh:
            about = [(message.metadata.dst_node_id, message.metadata.group_id) for message in fresh]
            sent = list(self._grid.push_messages(fresh))
            waiting |= {key: entry for key, entry in zip(sent, about, strict=False) if key}
        return later
