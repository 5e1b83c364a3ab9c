"""The base of simulating engines: a Flower ``Grid`` with the state of nodes in this process.

A node is a configuration and a state; where its ClientApp runs is the engine's matter.
"""

from __future__ import annotations

import copy
import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from flwr.app import Message, RecordDict, UserConfigValue

from fedprivacy.errors import InputError
from scenarios.engines.flower_internals import Run, join_run, set_message_id
from scenarios.engines.node import Node
from scenarios.engines.node_states import NodeArray, decode_states, encode_states
from server.grid import MessageGrid, deadline_of

logger = logging.getLogger(__name__)


class SimulatedGrid(MessageGrid):
    """Flower's ``Grid`` with one simulated node for each configuration.

    Nodes have the ids 1 to n. Replies come in the order of the messages. Not safe for use from several
    threads.

    Args:
        node_configs: One ``Context.node_config`` for each node, in the order of node ids.
        run_config: ``Context.run_config``, the same on all nodes.

    Raises:
        ValueError: If there is no node.
    """

    all_here = True  # no node registers later
    merges = False
    """Whether a node may have several messages under way at once, whose changes of its state are merged."""

    def __init__(
        self,
        node_configs: Sequence[Mapping[str, UserConfigValue]],
        run_config: Mapping[str, UserConfigValue] | None = None,
    ) -> None:
        if not node_configs:
            raise ValueError("A grid needs at least one node: node_configs is empty.")
        self._nodes = {
            node_id: Node(node_id, node_config, run_config or {})
            for node_id, node_config in enumerate(node_configs, start=1)
        }
        self._run = join_run()
        self._sent = 0
        self._ready: dict[str, Message] = {}

    @property
    def retried(self) -> int:
        """The number of messages sent again so far, since their worker died."""
        return 0

    @property
    def run(self) -> Run:
        """The run of this grid (a copy)."""
        return copy.copy(self._run)

    def set_run(self, run: Run) -> None:
        """Take over the details of the run; its id is the process's and stays.

        Raises:
            ValueError: If the id is another one.
        """
        if run.run_id != self._run.run_id:
            raise ValueError(f"This grid belongs to run {self._run.run_id}, it cannot join run {run.run_id}.")
        self._run = copy.copy(run)

    def get_node_ids(self) -> list[int]:
        """The ids of all nodes, ascending."""
        return list(self._nodes)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Have each message answered now, and keep the replies until they are pulled.

        Returns:
            The messages' ids, in order.

        Raises:
            ValueError: At the first message that cannot be sent; those before it have been answered.
        """
        message_ids = []
        for reply in self.send_and_receive(messages):
            self._ready[reply.metadata.reply_to_message_id] = reply
            message_ids.append(reply.metadata.reply_to_message_id)
        return message_ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """The replies to these messages, each once, in the order in which the messages were pushed."""
        wanted = set(message_ids)
        return [self._ready.pop(message_id) for message_id in list(self._ready) if message_id in wanted]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        """The replies, one by one, in the order of the messages.

        Nothing happens until a reply is requested.

        Args:
            messages: Taken as replies are consumed; how far ahead is the engine's matter.
            timeout: Seconds from this call after which no message is begun any more. One that has begun
                is finished and replied; the rest gets no reply, and a warning is logged.

        Raises:
            ValueError: At a message that cannot be sent, while iterating.
        """
        return self._replies(messages, deadline_of(timeout), timeout)

    @abstractmethod
    def _replies(
        self, messages: Iterable[Message], deadline: float, timeout: float | None
    ) -> Iterator[Message]:
        """The replies; nothing is begun after `deadline` (``time.monotonic``), see `_out_of_time`."""

    @staticmethod
    def _out_of_time(timeout: float | None) -> None:
        logger.warning("The timeout of %s s is over: the messages that remain are not sent.", timeout)

    @property
    def states(self) -> dict[int, RecordDict]:
        """The state that each node keeps between messages, by node id."""
        return {node_id: node.state for node_id, node in self._nodes.items()}

    def node_states(self) -> dict[str, NodeArray]:
        """The state of all nodes as arrays for a checkpoint, see ``restore_node_states``.

        Returns:
            Each array under ``node/<id>/<record>/<array>`` (names percent-encoded), and under
            ``node/index`` JSON as bytes: the order of all names, and the Config- and MetricRecords.

        Raises:
            TypeError: If a state holds what safetensors or JSON cannot (text arrays, ``bytes``, ...).
        """
        return encode_states(self.states)

    def restore_node_states(self, arrays: Mapping[str, NodeArray]) -> None:
        """Give all nodes the states of ``node_states()``. Keys that do not begin with ``node/`` are ignored.

        Raises:
            InputError: If the arrays are not the states of as many nodes; nothing was changed then.
        """
        states = decode_states(arrays)
        if states.keys() != self._nodes.keys():
            raise InputError(f"The checkpoint holds {len(states)} nodes, this run has {len(self._nodes)}.")
        for node_id, state in states.items():
            self._nodes[node_id].state = state

    def _accept(self, message: Message) -> Node:
        """The node that a message is for; numbers the message."""
        if not isinstance(message, Message):
            raise TypeError(f"A grid sends flwr.app.Message, not {type(message).__name__}.")
        metadata = message.metadata
        if metadata.run_id != self._run.run_id:
            raise ValueError(
                f"The message carries run id {metadata.run_id}, this grid's run is {self._run.run_id}. "
                "Make messages in the process of their grid, after the grid."
            )
        if metadata.reply_to_message_id:
            raise ValueError("The message is a reply: a server sends only messages with a destination node.")
        if metadata.message_id:
            raise ValueError(f"Message {metadata.message_id} was sent before. Make a new Message each time.")
        if metadata.ttl <= 0:
            raise ValueError(f"The message's time to live is {metadata.ttl} s; it must be above 0.")
        if metadata.dst_node_id not in self._nodes:
            raise ValueError(f"No node {metadata.dst_node_id}: the nodes are 1 to {len(self._nodes)}.")
        self._sent += 1
        set_message_id(message, str(self._sent))
        return self._nodes[metadata.dst_node_id]
