"""What the engines rely on in Flower's internals: if Flower moves it, these fail and say what to adapt."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import flwr
import pytest
from flwr.app import Message, MessageType, RecordDict

ADAPT = f"Flower {flwr.__version__} has changed an internal: adapt scenarios/engines/flower_internals.py."

IDENTITY = ("_task_id", "_run_id", "_node_id")


@pytest.fixture
def identity() -> Iterator[Any]:
    """Flower's global identity of the process, put back afterwards."""
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ImportError as error:
        pytest.fail(f"{ADAPT} {error}")
    before = {name: getattr(TaskIdentity, name) for name in IDENTITY}
    yield TaskIdentity
    for name, value in before.items():
        setattr(TaskIdentity, name, value)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("flwr.supercore.task_identity", "TaskIdentity"),
        ("flwr.supercore.run", "Run"),
        ("flwr.common.constant", "ErrorCode"),
    ],
)
def test_the_internals_are_where_they_were(module: str, name: str) -> None:
    try:
        found = hasattr(importlib.import_module(module), name)
    except ImportError:
        found = False
    assert found, f"{ADAPT} {module}.{name} is gone."


def test_a_message_takes_run_and_source_from_the_task_identity(identity: Any) -> None:
    identity.task_id, identity.run_id, identity.node_id = 5, 6, 7
    metadata = Message(RecordDict(), 3, MessageType.TRAIN).metadata
    got = (metadata.src_task_id, metadata.run_id, metadata.src_node_id)
    assert got == (5, 6, 7), f"{ADAPT} Message() no longer reads TaskIdentity: {got}."


def test_an_unset_identity_is_a_runtime_error(identity: Any) -> None:
    for name in IDENTITY:
        setattr(identity, name, None)
    with pytest.raises(RuntimeError):
        Message(RecordDict(), 3, MessageType.TRAIN)


def test_the_first_to_join_founds_the_run_and_the_next_joins_it(identity: Any) -> None:
    from scenarios.engines.flower_internals import join_run

    for name in IDENTITY:
        setattr(identity, name, None)
    first, second = join_run(), join_run()
    metadata = Message(RecordDict(), 1, MessageType.TRAIN).metadata
    assert first.run_id == second.run_id == metadata.run_id
    assert metadata.src_node_id != 1, "the server must not have the id of the first node"


def test_a_run_that_flower_started_is_joined_not_replaced(identity: Any) -> None:
    from scenarios.engines.flower_internals import join_run

    identity.task_id, identity.run_id, identity.node_id = 5, 6, 7
    assert join_run().run_id == 6
    assert (identity.task_id, identity.run_id, identity.node_id) == (5, 6, 7)


def test_an_empty_run_has_its_id_and_no_overrides() -> None:
    from flwr.supercore.run import Run

    run = Run.create_empty(4)
    assert (run.run_id, run.override_config) == (4, {}), ADAPT


def test_a_message_id_can_be_set_and_its_reply_refers_to_it(identity: Any) -> None:
    from scenarios.engines.flower_internals import join_run, set_message_id

    join_run()
    message = Message(RecordDict(), 1, MessageType.TRAIN)
    assert message.metadata.message_id == "", f"{ADAPT} A new message has an id already."
    set_message_id(message, "seven")
    reply = Message(RecordDict(), reply_to=message)
    got = (message.metadata.message_id, reply.metadata.reply_to_message_id)
    assert got == ("seven", "seven"), f"{ADAPT} Metadata keeps its id elsewhere: {got}."


def test_error_codes_are_distinct_integers() -> None:
    from scenarios.engines import flower_internals as internals

    codes = [
        internals.CLIENT_APP_RAISED_EXCEPTION,
        internals.MESSAGE_UNAVAILABLE,
        internals.REPLY_MESSAGE_UNAVAILABLE,
    ]
    assert all(isinstance(code, int) for code in codes), ADAPT
    assert len(set(codes)) == len(codes), ADAPT
