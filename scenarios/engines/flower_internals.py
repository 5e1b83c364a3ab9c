"""Flower's internals that an engine needs, all of them, each with its reason.

An in-process ``Grid`` replaces Flower's SuperLink, and does what only a SuperLink does: it
names the run, and it numbers the messages. Flower has no public way to do either. Everything else that
the engines use is public (``flwr.app``, ``flwr.clientapp``, ``flwr.serverapp``). Internals move between
Flower's versions: ``tests/scenarios/engines/test_flower_internals.py`` checks each of these.
"""

from __future__ import annotations

from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

__all__ = [
    "CLIENT_APP_RAISED_EXCEPTION",
    "MESSAGE_UNAVAILABLE",
    "NODE_UNAVAILABLE",
    "REPLY_MESSAGE_UNAVAILABLE",
    "Identity",
    "Run",
    "identity",
    "join_run",
    "set_message_id",
    "take_identity",
]

# The codes of flwr.app.Error have no public names. A strategy may distinguish failures by them.
CLIENT_APP_RAISED_EXCEPTION: int = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
MESSAGE_UNAVAILABLE: int = ErrorCode.MESSAGE_UNAVAILABLE
NODE_UNAVAILABLE: int = ErrorCode.NODE_UNAVAILABLE
REPLY_MESSAGE_UNAVAILABLE: int = ErrorCode.REPLY_MESSAGE_UNAVAILABLE

_TASK_ID = 1
_RUN_ID = 1
# Flower's own server is node 1. Here nodes count from 1, so the server is 0: src and dst always differ.
_SERVER_NODE_ID = 0


def join_run() -> Run:
    """The run of this process: the first grid founds it, every later one joins it.

    ``Message(content, node, type)`` reads its run and source from ``TaskIdentity``, a global of the
    process, and fails while that is unset. If each grid set a run of its own, a message made for one
    grid after another grid was made would carry the wrong run; with one run for the process, grids
    can be used in turn, interleaved, and inside a process that Flower itself started.

    Returns:
        An empty ``Run`` (``Grid.run`` must return one) with the id that messages will carry.
    """
    try:
        run_id, _, _ = TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id
    except RuntimeError:  # Flower's sign that this process has no identity yet
        run_id = _RUN_ID
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = _TASK_ID, run_id, _SERVER_NODE_ID
    return Run.create_empty(run_id)


Identity = tuple[int, int, int]


def identity() -> Identity:
    """Flower's identity of this process: task, run and node. A grid has joined a run before."""
    return TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id


def take_identity(of: Identity) -> None:
    """Makes messages here as another process does, whose messages are answered here."""
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = of


def set_message_id(message: Message, message_id: str) -> None:
    """Number a message, as a SuperLink does (``Metadata.message_id`` has no setter)."""
    message.metadata.__dict__["_message_id"] = message_id
