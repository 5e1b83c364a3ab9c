"""A malicious or curious server: it sits between the honest server code and the grid.

The honest path does not know it. A curious server (passive) reads the replies; a malicious one
also changes what is sent. An attack implements `ServerAdversary`; `Interposed` puts it in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from flwr.app import Message
from flwr.serverapp import Grid


class ServerAdversary(Protocol):
    """What an adversary at the server does with each message."""

    def act(self, request: Message) -> Message:
        """What is really sent instead of `request` (passive: the request itself)."""
        ...

    def observe(self, reply: Message) -> Message:
        """Looks at a reply, and says what the honest code gets to see of it."""
        ...


class Interposed(Grid):
    """A grid with an adversary in the server's seat. Replies still stream.

    Args:
        grid: The real grid.
        adversary: Sees every message both ways.
    """

    def __init__(self, grid: Grid, adversary: ServerAdversary) -> None:
        self._grid, self._adversary = grid, adversary

    def set_run(self, run: Any) -> None:
        """Passed on to the real grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The real grid's run."""
        return self._grid.run

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Made by the real grid."""
        return self._grid.create_message(*args, **kwargs)

    def get_node_ids(self) -> Iterable[int]:
        """The real grid's nodes."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Pushes what the adversary makes of the messages."""
        return self._grid.push_messages(self._adversary.act(message) for message in messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pulls replies, through the adversary's hands."""
        return (self._adversary.observe(reply) for reply in self._grid.pull_messages(message_ids))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        """Sends what the adversary makes of the messages and yields what it makes of the replies."""
        sent = (self._adversary.act(message) for message in messages)
        for reply in self._grid.send_and_receive(sent, timeout=timeout):
            yield self._adversary.observe(reply)
