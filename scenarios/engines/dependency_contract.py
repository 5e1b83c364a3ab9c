"""The contract with the internals of Flower and Ray that engines rely on, each as a check.

The tests hold Flower to it, and so does `fedprivacy doctor`. Each check leaves Flower's global state
as it was.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

IDENTITY = ("_task_id", "_run_id", "_node_id")


@dataclass(frozen=True)
class Promise:
    """One thing that must be so.

    Args:
        words: What.
        check: Raises an error with the actual state, where the promise does not hold.
    """

    words: str
    check: Callable[[], None]

    def broken(self) -> str | None:
        """The actual state, or None where the promise holds."""
        try:
            self.check()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None


class Broken(Exception):
    """A promise is not kept."""


def _expect(value: object, wanted: object) -> None:
    if value != wanted:
        raise Broken(f"{value!r}, and not {wanted!r}")


@contextmanager
def identity(*values: int | None) -> Iterator[Any]:
    """Flower's identity of the process (task, run, node), put back afterwards.

    Args:
        values: The values meanwhile; None is unset.
    """
    from flwr.supercore.task_identity import TaskIdentity

    before = {name: getattr(TaskIdentity, name) for name in IDENTITY}
    try:
        for name, value in zip(IDENTITY, values, strict=True):
            setattr(TaskIdentity, name, value)
        yield TaskIdentity
    finally:
        for name, stored in before.items():
            setattr(TaskIdentity, name, stored)


def _message(node: int = 3) -> Any:
    from flwr.app import Message, MessageType, RecordDict

    return Message(RecordDict(), node, MessageType.TRAIN)


def _is_there(module: str, name: str) -> Promise:
    def check() -> None:
        getattr(importlib.import_module(module), name)

    return Promise(f"{module}.{name} is where it was", check)


def _message_reads_identity() -> None:
    with identity(5, 6, 7):
        metadata = _message().metadata
        _expect((metadata.src_task_id, metadata.run_id, metadata.src_node_id), (5, 6, 7))


def _unset_identity() -> None:
    with identity(None, None, None):
        try:
            _message()
        except RuntimeError:
            return
    raise Broken("a message was made without one")


def _first_founds_the_run() -> None:
    from scenarios.engines.flower_internals import join_run

    with identity(None, None, None):
        first, second = join_run(), join_run()
        metadata = _message(1).metadata
        _expect((first.run_id, second.run_id), (metadata.run_id, metadata.run_id))
        if metadata.src_node_id == 1:
            raise Broken("the server has the id of the first node")


def _run_is_joined() -> None:
    from scenarios.engines.flower_internals import join_run

    with identity(5, 6, 7) as process:
        _expect(join_run().run_id, 6)
        _expect((process.task_id, process.run_id, process.node_id), (5, 6, 7))


def _empty_run() -> None:
    from flwr.supercore.run import Run

    run = Run.create_empty(4)
    _expect((run.run_id, run.override_config), (4, {}))


def _message_id() -> None:
    from flwr.app import Message, RecordDict

    from scenarios.engines.flower_internals import set_message_id

    with identity(1, 1, 0):
        message = _message(1)
        _expect(message.metadata.message_id, "")
        set_message_id(message, "seven")
        reply = Message(RecordDict(), reply_to=message)
        _expect((message.metadata.message_id, reply.metadata.reply_to_message_id), ("seven", "seven"))


def _error_codes() -> None:
    from scenarios.engines import flower_internals as internals

    codes = [
        internals.CLIENT_APP_RAISED_EXCEPTION,
        internals.MESSAGE_UNAVAILABLE,
        internals.NODE_UNAVAILABLE,
        internals.REPLY_MESSAGE_UNAVAILABLE,
    ]
    _expect([isinstance(code, int) for code in codes], [True] * 4)
    _expect(len(set(codes)), 4)


def _ray_speaks_here() -> None:
    worker = importlib.import_module("ray._private.worker")
    _expect(callable(worker.print_to_stdstream), True)


def _array_bytes() -> None:
    import numpy as np
    from flwr.app import Array

    from fedprivacy.io import npy

    sent = Array(np.arange(3))
    _expect((sent.stype, npy.array_of(sent.data).tolist()), ("numpy.ndarray", [0, 1, 2]))


PROMISES = (
    _is_there("flwr.supercore.task_identity", "TaskIdentity"),
    _is_there("flwr.supercore.run", "Run"),
    _is_there("flwr.common.constant", "ErrorCode"),
    Promise("a message takes its run and its source from the task identity", _message_reads_identity),
    Promise("an unset identity is a RuntimeError", _unset_identity),
    Promise("the first to join founds the run and the next joins it", _first_founds_the_run),
    Promise("a run that Flower started is joined, not replaced", _run_is_joined),
    Promise("an empty run has its id and no overrides", _empty_run),
    Promise("a message's id can be set, and its reply refers to it", _message_id),
    Promise("error codes are distinct whole numbers", _error_codes),
    Promise("an array travels as the bytes of a .npy file", _array_bytes),
)
# Of Ray's internals (`ray_cluster`), where it is installed.
RAY_PROMISES = (Promise("Ray prints what its workers say by print_to_stdstream", _ray_speaks_here),)
