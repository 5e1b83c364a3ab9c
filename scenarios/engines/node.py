"""A node in this process: it runs the ClientApp on a message and keeps state between messages.

What a real transport gives for free is kept: contents are isolated, a node's state outlives a message
but not a failure, and an exception in the app becomes an error reply.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from typing import Any

from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
    UserConfigValue,
)
from flwr.clientapp import ClientApp

from scenarios.engines.flower_internals import (
    CLIENT_APP_RAISED_EXCEPTION,
    MESSAGE_UNAVAILABLE,
    REPLY_MESSAGE_UNAVAILABLE,
    set_message_id,
)


class Node:
    """One node: its configuration, and the state that its ClientApp keeps between messages.

    Args:
        node_id: The id that messages are addressed to.
        node_config: The value of ``Context.node_config``, e.g. ``{"partition-id": 0}``.
        run_config: The value of ``Context.run_config``.
    """

    def __init__(
        self,
        node_id: int,
        node_config: Mapping[str, UserConfigValue],
        run_config: Mapping[str, UserConfigValue],
    ) -> None:
        self.node_id = node_id
        self.node_config = dict(node_config)
        self.run_config = dict(run_config)
        self.state = RecordDict()

    def answer_in_time(self, client_app: ClientApp, message: Message) -> Message:
        """The reply to a message, or an error reply where its time to live is over before or after."""
        expiry = message.metadata.created_at + message.metadata.ttl
        if time.time() > expiry:
            late = Error(MESSAGE_UNAVAILABLE, "The message expired before its node got it.")
            reply = Message(late, reply_to=message)
        else:
            reply = self.answer(client_app, message)
            if time.time() > expiry:
                late = Error(REPLY_MESSAGE_UNAVAILABLE, "The message expired before its node replied.")
                reply = Message(late, reply_to=message)
        set_reply_id(reply, message)
        return reply

    def answer(self, client_app: ClientApp, message: Message) -> Message:
        """The ClientApp's reply to a message, or an error reply with the reason.

        The app works on copies. Its state is kept only if it returned a proper reply, so that a failed
        message leaves no trace. ``KeyboardInterrupt``, ``SystemExit`` and the like pass through.
        """
        delivered = _deliverable(message)
        context = Context(
            run_id=message.metadata.run_id,
            node_id=self.node_id,
            node_config=dict(self.node_config),
            state=copy_records(self.state),
            run_config=dict(self.run_config),
        )
        try:
            reply = _checked(client_app(delivered, context), message)
            state = copy_records(context.state)
        except Exception as exception:
            return Message(Error(CLIENT_APP_RAISED_EXCEPTION, _reason(exception)), reply_to=message)
        self.state = state
        return reply


def set_reply_id(reply: Message, message: Message) -> None:
    """Numbers the reply to a message."""
    set_message_id(reply, f"{message.metadata.message_id}.reply")


def copy_records(records: RecordDict) -> RecordDict:
    """A copy that shares nothing mutable with the original; the arrays' ``bytes`` are shared."""
    return RecordDict({name: _copy_record(record) for name, record in records.items()})


def _copy_record(
    record: ArrayRecord | ConfigRecord | MetricRecord,
) -> ArrayRecord | ConfigRecord | MetricRecord:
    if isinstance(record, ArrayRecord):
        return ArrayRecord(dict(record))  # makes new Arrays around the same bytes
    values: dict[str, Any] = {k: list(v) if isinstance(v, list) else v for k, v in record.items()}
    return ConfigRecord(values) if isinstance(record, ConfigRecord) else MetricRecord(values)


def _deliverable(message: Message) -> Message:
    """The node's own copy of a message, contents and metadata."""
    metadata = message.metadata
    delivered = Message(
        copy_records(message.content),
        metadata.dst_node_id,
        metadata.message_type,
        ttl=metadata.ttl,
        group_id=metadata.group_id,
        dst_task_id=metadata.dst_task_id,
    )
    delivered.metadata.created_at = metadata.created_at
    set_message_id(delivered, metadata.message_id)
    return delivered


def _checked(reply: object, message: Message) -> Message:
    """The server's own copy of what a ClientApp returned; its metadata are the server's, not the app's.

    Raises:
        TypeError: If it is not a reply to the message.
    """
    remedy = "Return Message(content, reply_to=message)."
    if not isinstance(reply, Message):
        raise TypeError(f"The ClientApp returned {type(reply).__name__}, not a Message. {remedy}")
    if reply.metadata.reply_to_message_id != message.metadata.message_id:
        raise TypeError(f"The ClientApp returned a Message that does not reply to the one it got. {remedy}")
    if reply.has_error():
        return Message(Error(reply.error.code, reply.error.reason), reply_to=message)
    return Message(copy_records(reply.content), reply_to=message)


def _reason(exception: Exception) -> str:
    """Type and message of an exception first, then its traceback."""
    summary = "".join(traceback.format_exception_only(exception)).strip()
    return f"{summary}\n\n{''.join(traceback.format_exception(exception))}"
