"""The embedded engine: a Flower ``Grid`` that calls the ClientApp in this process.

No Ray, no server processes, no serialisation. One message at a time is taken from the (possibly lazy)
iterable, answered, and its reply handed on before the next message is taken, so memory does not grow
with the number of messages.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from flwr.app import Message, UserConfigValue
from flwr.clientapp import ClientApp

from scenarios.engines.simulated_grid import SimulatedGrid


class EmbeddedGrid(SimulatedGrid):
    """Flower's ``Grid`` on one ClientApp in this process, with one node for each configuration.

    Nodes have the ids 1 to n. Messages are answered in the order given, each before the next is taken: each
    ``next()`` takes one message and answers it. Not safe for use from several threads.

    Args:
        client_app: The app that answers for every node.
        node_configs: One ``Context.node_config`` for each node, in the order of node ids.
        run_config: ``Context.run_config``, the same on all nodes.

    Raises:
        ValueError: If there is no node.
    """

    def __init__(
        self,
        client_app: ClientApp,
        node_configs: Sequence[Mapping[str, UserConfigValue]],
        run_config: Mapping[str, UserConfigValue] | None = None,
    ) -> None:
        super().__init__(node_configs, run_config)
        self._client_app = client_app

    def _replies(
        self, messages: Iterable[Message], deadline: float, timeout: float | None
    ) -> Iterator[Message]:
        for message in messages:
            if time.monotonic() >= deadline:
                self._out_of_time(timeout)
                return
            reply = self._accept(message).answer_in_time(self._client_app, message)
            del message  # while the consumer works, and while the next message is made,
            yield reply
            del reply  # nothing of this one stays in memory
