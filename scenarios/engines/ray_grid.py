"""The ray engine: a Flower ``Grid`` whose messages are answered by Ray actors side by side.

The nodes' states stay in this process. Each message takes its node's state along and brings back what has
become of it, so that an actor that dies takes nothing with it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from flwr.app import Error, Message, RecordDict, UserConfigValue

from fedprivacy.errors import Refusal
from scenarios.engines.flower_internals import CLIENT_APP_RAISED_EXCEPTION, NODE_UNAVAILABLE, identity
from scenarios.engines.node import Node, set_reply_id
from scenarios.engines.plain_records import put_together, take_apart
from scenarios.engines.ray_actor import Answer, Call
from scenarios.engines.ray_worker_pool import Ticket, Workers
from scenarios.engines.simulated_grid import SimulatedGrid

_SMALL = (
    50_000  # bytes that travel with a message; larger arrays are put into Ray's store, once for all messages
)

Merge = Callable[[RecordDict, RecordDict], RecordDict]


@dataclass
class _Sent:
    """A message under way."""

    message: Message
    node: Node
    ticket: Ticket


class RayGrid(SimulatedGrid):
    """Flower's ``Grid`` over the Ray actors of a run.

    It takes up to ``Workers.ahead`` messages before their replies are consumed, like ``SimulatedGrid``.

    Messages of different nodes are answered at once. Those of one node are answered one after the other, or
    where changes of its state can be merged, at once too: each on the state at the begin of
    ``send_and_receive``. A state changes when the reply is handed on.

    Args:
        workers: The actors, which have the ClientApp.
        node_configs: One ``Context.node_config`` for each node, in the order of node ids.
        run_config: ``Context.run_config``, the same on all nodes.
        merge: Where workers send only the changes of a state: adds them to another (`clients.state_merge`).
        patient: Whether a message that has begun may take as long as it takes, since the app stops by itself
            what hangs. Else a worker that is still at work on one as long again as the timeout is ended, and
            the reply is an error.

    Raises:
        ValueError: If there is no node, or only one of the two sides merges.
    """

    def __init__(
        self,
        workers: Workers,
        node_configs: Sequence[Mapping[str, UserConfigValue]],
        run_config: Mapping[str, UserConfigValue] | None = None,
        merge: Merge | None = None,
        patient: bool = False,
    ) -> None:
        super().__init__(node_configs, run_config)
        if (merge is None) != (workers.changes is None):
            raise ValueError("Workers tell what changed in a state if and only if the grid merges it.")
        self._workers, self._merge, self._patient = workers, merge, patient
        self.merges = merge is not None

    @property
    def retried(self) -> int:
        """The number of messages retried so far because their worker died."""
        return self._workers.retried

    def _replies(
        self, messages: Iterable[Message], deadline: float, timeout: float | None
    ) -> Iterator[Message]:
        taking = _Taking(self, iter(messages), deadline)
        until = math.inf if self._patient or timeout is None else deadline + timeout
        try:
            while True:
                taking.fill()
                if not taking.under_way:
                    break
                sent = taking.under_way.popleft()
                answer = self._workers.wait(sent.ticket, until).answer
                if answer is not None and not answer.started:
                    taking.late = True
                    continue
                reply = self._reply(sent, answer)
                del sent, answer  # while the consumer works nothing of this one stays in memory
                yield reply
                del reply
        finally:
            for sent in taking.under_way:
                self._workers.forget(sent.ticket)
        if taking.late:
            self._out_of_time(timeout)
        if taking.stopped is not None:
            raise taking.stopped

    def _send(self, message: Message, node: Node, state: RecordDict, share: _Share, deadline: float) -> _Sent:
        metadata = message.metadata
        call = Call(
            identity=identity(),
            node=(node.node_id, node.node_config, node.run_config),
            state=take_apart(state, share),
            content=take_apart(message.content, share),
            metadata={
                "message_type": metadata.message_type,
                "ttl": metadata.ttl,
                "group_id": metadata.group_id,
                "dst_task_id": metadata.dst_task_id,
            },
            created_at=metadata.created_at,
            message_id=metadata.message_id,
            begin_before=time.time() + deadline - time.monotonic(),
        )
        return _Sent(message, node, self._workers.submit(call))

    def _reply(self, sent: _Sent, answer: Answer | None) -> Message:
        """The reply to a message; with it, the node's state changes."""
        message, node = sent.message, sent.node
        if answer is None:
            reply = Message(Error(NODE_UNAVAILABLE, sent.ticket.error or ""), reply_to=message)
        else:
            try:
                if answer.state is not None:
                    state = put_together(answer.state, _bytes)
                    node.state = state if self._merge is None else self._merge(node.state, state)
            except Refusal as refusal:
                answer = Answer(error=(CLIENT_APP_RAISED_EXCEPTION, f"Refusal: {refusal}"))
            if answer.error is not None:
                reply = Message(Error(*answer.error), reply_to=message)
            else:
                reply = Message(put_together(answer.content or [], _bytes), reply_to=message)
        set_reply_id(reply, message)
        return reply


class _Taking:
    """Accepts messages of one ``send_and_receive`` as workers become free.

    Args:
        grid: Where they go.
        messages: The remaining ones.
        deadline: When no message is begun any more (``time.monotonic``).
    """

    def __init__(self, grid: RayGrid, messages: Iterator[Message], deadline: float) -> None:
        self._grid, self._messages, self._deadline = grid, messages, deadline
        self._share = _Share()
        self._states: dict[int, RecordDict] = {}
        self._held: Message | None = None  # taken; another message of its node is under way
        self._ended = False
        self.under_way: deque[_Sent] = deque()
        self.late = False  # whether a message was not begun for want of time
        self.stopped: Exception | None = None  # what the next message raised: after the replies before it

    def fill(self) -> None:
        """Sends messages until enough are in progress, or the next one has to wait."""
        while not self._ended and len(self.under_way) < self._grid._workers.ahead:
            try:
                if self._held is None:
                    self._held = next(self._messages, None)
                    if self._held is None:
                        self._ended = True
                        return
                if time.monotonic() >= self._deadline:
                    self._ended = self.late = True
                    return
                if self._waits(self._held):
                    return
                node = self._grid._accept(self._held)
            except Exception as error:
                self._ended, self.stopped = True, error
                return
            state = node.state
            if self._grid.merges:
                state = self._states.setdefault(node.node_id, node.state)
            sent = self._grid._send(self._held, node, state, self._share, self._deadline)
            self.under_way.append(sent)
            self._held = None

    def _waits(self, message: Message) -> bool:
        if self._grid.merges or not isinstance(message, Message):
            return False
        return any(sent.node.node_id == message.metadata.dst_node_id for sent in self.under_way)


class _Share:
    """Puts large arrays into Ray's store, each once for all messages of a round that carry it.

    Each message has its own copy of the model, so arrays are compared by their bytes.
    """

    def __init__(self) -> None:
        self._stored: dict[int, list[tuple[bytes, Any]]] = {}

    def __call__(self, data: bytes) -> Any:
        import numpy as np

        if len(data) <= _SMALL:
            return data
        known = self._stored.setdefault(len(data), [])
        for stored, reference in known:
            if stored == data:
                return reference
        known.append((data, ray.put(np.frombuffer(data, np.uint8))))
        del known[:-4]  # without merging, a node's state is another one for each message
        return known[-1][1]


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else bytes(data.tobytes())
