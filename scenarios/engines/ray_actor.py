"""The code in a Ray actor: the ClientApp, on one message and the state of its node at a time.

A worker keeps nothing between messages but the app and its clients' data, so that one that dies takes no
node's state with it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

from fedprivacy.errors import FedPrivacyError
from fedprivacy.io.environment import versions
from fedprivacy.io.processes import use_one_thread
from scenarios.engines.flower_internals import Identity, set_message_id, take_identity
from scenarios.engines.node import Node
from scenarios.engines.plain_records import Plain, put_together, take_apart

MakeApp = Callable[[], ClientApp]
Changes = Callable[[RecordDict, RecordDict], RecordDict]


@dataclass(frozen=True)
class Call:
    """One message for a node, in plain values.

    Args:
        identity: Flower's identity of the process that sent it.
        node: The node's id, its configuration, and that of the run.
        state: The node's state.
        content: The message's content.
        metadata: The other arguments of `Message`.
        created_at: When it was made (seconds since 1970), by the sender's clock.
        message_id: Its number.
        begin_before: When it is too late to begin with it (seconds since 1970).
    """

    identity: Identity
    node: tuple[int, dict[str, Any], dict[str, Any]]
    state: Plain
    content: Plain
    metadata: dict[str, Any]
    created_at: float
    message_id: str
    begin_before: float = math.inf

    def message(self, content: RecordDict) -> Message:
        """The message again."""
        message = Message(content, self.node[0], **self.metadata)
        message.metadata.created_at = self.created_at
        set_message_id(message, self.message_id)
        return message


@dataclass(frozen=True)
class Answer:
    """The outcome of a call.

    Args:
        started: Whether there was time left for it; if not, all else is empty.
        content: The reply's content, or None where it is an error.
        error: The error's code and reason.
        state: The node's state now, or its changes, as agreed; None: nothing.
    """

    started: bool = True
    content: Plain | None = None
    error: tuple[int, str] | None = None
    state: Plain | None = None


class Worker:
    """A Ray actor's object: `begin` once, then `answer`."""

    def __init__(self) -> None:
        self._fetched: dict[str, bytes] = {}

    def begin(self, make_app: MakeApp, changes: Changes | None, folder: str) -> dict[str, Any]:
        """Makes the app, which reads its clients' data.

        Args:
            make_app: Makes it.
            changes: The part of a node's state to return (`clients.state_merge.changes`); None: all of it.
            folder: Where the run was started: relative paths begin there, if it exists here.

        Returns:
            `versions` here; or the `error` that ends the run, and whether `input` was wrong.
        """
        use_one_thread()
        self._changes = changes
        if os.path.isdir(folder):
            os.chdir(folder)
        try:
            self._app = make_app()
        except FedPrivacyError as error:
            return {"error": str(error), "input": error.exit_code == 2}
        return {"versions": versions()}

    def answer(self, call: Call) -> Answer:
        """The ClientApp's answer to one message."""
        if time.time() >= call.begin_before:
            return Answer(started=False)
        take_identity(call.identity)
        used: dict[str, bytes] = {}
        node = Node(*call.node)
        before = node.state = put_together(call.state, lambda data: self._fetch(data, used))
        message = call.message(put_together(call.content, lambda data: self._fetch(data, used)))
        self._fetched = used  # the model of a round stays for its next message
        reply = node.answer_in_time(self._app, message)
        state = None
        if node.state is not before:
            state = take_apart(self._changes(before, node.state) if self._changes else node.state, _large)
        if reply.has_error():
            return Answer(error=(reply.error.code, reply.error.reason or ""), state=state)
        return Answer(content=take_apart(reply.content, _large), state=state)

    def _fetch(self, data: Any, used: dict[str, bytes]) -> bytes:
        """The bytes of an array, which came along or lie in Ray's store."""
        if isinstance(data, bytes):
            return data
        import ray

        key = data.hex()
        if key not in used:
            used[key] = self._fetched[key] if key in self._fetched else ray.get(data).tobytes()
        return used[key]


def _large(data: bytes) -> Any:
    """Bytes as an array, which Ray sends without copying it into its own message."""
    return np.frombuffer(data, np.uint8)
