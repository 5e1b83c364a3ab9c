"""Plain values to Flower messages and back, on the clients' side."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedprivacy.messages import protocol
from fedprivacy.messages.protocol import Arrays, Values


def parts_of(message: Message) -> tuple[Arrays, Values]:
    """The arrays and scalars of a request.

    Raises:
        InputError: it has none.
    """
    content = message.content
    return protocol.parts_of(
        lambda: content.array_records["arrays"], lambda: content.config_records["values"]
    )


def reply_to(message: Message, arrays: Arrays, values: Values) -> Message:
    """The reply that carries these parts."""
    content = RecordDict(
        {
            "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
            "values": ConfigRecord(values),
        }
    )
    return Message(content, reply_to=message)
