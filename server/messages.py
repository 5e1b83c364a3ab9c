"""Plain values to Flower messages, on the server's side."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedprivacy.errors import FedPrivacyError
from fedprivacy.protocol import Arrays, Values


def request_to(node: int, kind: str, group: str, arrays: Arrays, values: Values) -> Message:
    """A request with these parts.

    Args:
        node: The id of the node that it is for.
        kind: Flower's message type.
        group: Its group id, which ends in the message's number (`aggregation.message_number`).
        arrays: Arrays by name.
        values: Scalars by name.
    """
    content = RecordDict(
        {
            "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
            "values": ConfigRecord(values),
        }
    )
    return Message(content, dst_node_id=node, message_type=kind, group_id=group)


def parts_of(message: Message) -> tuple[Arrays, Values]:
    """The arrays and scalars of a reply.

    Raises:
        FedPrivacyError: it has not these parts. What a node sends is not ours: no other error may come of it.
    """
    try:
        arrays = {name: array.numpy() for name, array in message.content.array_records["arrays"].items()}
        return arrays, dict(message.content.config_records["values"])
    except Exception as error:
        raise FedPrivacyError(f"not a reply: {type(error).__name__}: {error}") from error
