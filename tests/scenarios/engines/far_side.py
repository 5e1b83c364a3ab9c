"""The far side of a deployment in one process: Flower's own SuperLink over HTTP, and nodes on its Fleet API.

A process of its own, since it answers as other tasks than the server's, which Flower tells by a global. It
is started once and serves one federation after another; the contract suite speaks to it through Flower's `HttpGrid`.

Flower's: the SuperLink with its state, its three interfaces and their HTTP, the nodes' connections, how messages
are taken apart and put together. Ours: the loop that runs the ClientApp, where a SuperNode would start a process
for each message (seconds, so that is left to the whole federation in test_superlink.py). What a node keeps between
messages is therefore no subject here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import uvicorn
from flwr.app import Context, Error, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.constant import ErrorCode
from flwr.supercore.constant import NOOP_FEDERATION_ID, TaskType
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import (
    inflate_object_from_contents,
    pull_objects,
    push_objects,
)
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.main import create_app
from flwr.supernode.fleet_http_connection import http_request_response

ENVIRONMENT = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "OMP_NUM_THREADS": "1"}


class FarSide:
    """The process, seen from a test.

    Args:
        home: A folder for Flower.
    """

    def __init__(self, home: str) -> None:
        self._line, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **ENVIRONMENT, "FLWR_HOME": home, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        theirs.close()

    @contextmanager
    def federation(self, asked: bytes) -> Iterator[tuple[str, int, int, str]]:
        """A SuperLink with one run, and nodes that are online.

        Args:
            asked: The app, node configs and run config, pickled; nodes get their configs in the order of
                their ids, which Flower draws.

        Yields:
            Its address, and the run's id, task and token.
        """
        self._line.send_bytes(asked)
        address = self._line.recv()
        try:
            yield address
        finally:
            self._line.send_bytes(b"end")
            ended = self._line.recv()
        assert ended == "ended"

    def close(self) -> None:
        """Ends the process."""
        self._line.close()
        self._process.wait(timeout=60)


class _Node:
    """A node: its connection, and what the ClientApp is told.

    Args:
        connection: What Flower's connection gives.
        run_config: Of the run.
    """

    def __init__(self, connection: tuple[Any, ...], run_config: Mapping[str, Any]) -> None:
        self.node_id, self._receive, self._send, _, _, self._pull, self._push, self._confirm = connection
        self.node_config: Mapping[str, Any] = {}
        self._run_config, self._state = run_config, RecordDict()

    def work(self, app: Callable[[Message, Context], Message]) -> None:
        """Answers a message if there is one, as Flower's `run_clientapp` does."""
        got = self._receive()
        if got is None:
            return
        told, tree = got
        run, name = told.metadata.run_id, tree.object_id
        parts = [part.object_id for part in iterate_object_tree(tree)]
        content = pull_objects(parts, lambda part: self._pull(run, part))
        message = inflate_object_from_contents(name, content)
        message.metadata.__dict__["_message_id"] = name  # type: ignore[attr-defined]
        self._confirm(run, name)
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, run, self.node_id
        config = dict(self._run_config)
        context = Context(run, self.node_id, dict(self.node_config), deepcopy(self._state), config)
        try:
            reply = app(message, context)  # type: ignore[arg-type]
            self._state = context.state
        except Exception as error:
            reason = f"{type(error)}:<'{error}'>"
            reply = Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=message)  # type: ignore[arg-type]
        reply.metadata.__dict__["_message_id"] = reply.object_id
        with no_object_id_recompute():
            missing, session = self._send(remove_content_from_message(reply), get_object_tree(reply), 0.0)
            push_objects(
                get_all_nested_objects(reply),
                lambda part, data: self._push(run, session, part, data),
                object_ids_to_push=missing,
            )


def _serve(line: Connection) -> None:
    while True:
        try:
            app, configs, run_config = pickle.loads(line.recv_bytes())
        except EOFError:
            return
        superlink = create_app()
        server = uvicorn.Server(uvicorn.Config(superlink, host="127.0.0.1", port=0, log_config=None))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        address = f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        with ExitStack() as connections:
            nodes = [
                _Node(connections.enter_context(http_request_response(address, True)), run_config)
                for _ in configs
            ]
            nodes.sort(key=lambda node: node.node_id)
            for node, config in zip(nodes, configs, strict=True):
                node.node_config = config
            line.send((address, *_begin_run(superlink.state.linkstate_factory.state())))
            while not line.poll(0.02):
                for node in nodes:
                    node.work(app)
            line.recv_bytes()
        server.should_exit = True
        thread.join()
        line.send("ended")


def _begin_run(state: Any) -> tuple[int, int, str]:
    """A run whose ServerApp has begun: its id, task and token."""
    nothing: tuple[None, ...] = (None, None, None)
    run = state.create_run(*nothing, {}, NOOP_FEDERATION_ID, None, None, TaskType.SERVER_APP)
    (about,) = state.get_run_info(run_ids=[run])
    token = state.claim_task(about.primary_task_id)
    assert state.activate_task(about.primary_task_id)
    return run, about.primary_task_id, token


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
