"""Plain values to Flower messages, on the server's side."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedprivacy.messages.protocol import Arrays, Values


def request_to(node: int, kind: str, group: str, arrays: Arrays, values: Values) -> Message:
    """A request with these parts.

    Args:
        node: The id of the node that it is for.
        kind: Flower's message type.
        group: Its group id, which ends in the message's number (`aggregation.message_number`).
        arrays: Arrays by name.
        values: Scalars by name.
    """
    return Message(record_of(arrays, values), dst_node_id=node, message_type=kind, group_id=group)


def record_of(arrays: Arrays, values: Values) -> RecordDict:
    """The content of a message with these parts."""
    return RecordDict(
        {
            "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
            "values": ConfigRecord(values),
        }
    )
