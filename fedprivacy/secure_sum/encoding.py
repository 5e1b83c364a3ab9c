"""Messages of a secure sum as bytes, on the wire and on a node's disk: one message, one form.

The fields follow each other in their order, each after its length, as do the parts of a field with several
values. Bytes that are not the form of a message are an InputError, so that no two of them are one message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from fedprivacy.errors import InputError
from fedprivacy.secure_sum.keys import encode
from fedprivacy.secure_sum.messages import AdvertisedKeys, Checked

AnyMessage = TypeVar("AnyMessage", bound=Checked)
LENGTH_BYTES = 8  # in front of each part


def encoded(message: Checked) -> bytes:
    """The bytes of a message."""
    return encode(*(_FORMS[str(each.type)][0](getattr(message, each.name)) for each in fields(message)))


def decoded(kind: type[AnyMessage], data: bytes) -> AnyMessage:
    """The message of these bytes.

    Args:
        kind: Its class.
        data: Of `encoded`.

    Raises:
        InputError: They are not the form of such a message.
    """
    try:
        parts, expected = split(data), fields(kind)
        values = {
            each.name: _FORMS[str(each.type)][1](part) for each, part in zip(expected, parts, strict=True)
        }
        message = kind(**values)
        if encoded(message) != data:  # such as a mapping whose clients are not in order, or listed twice
            raise ValueError("it has another form")
    except ValueError as error:  # an InputError of a value is none
        raise InputError(f"message {kind.__name__}: {error}. Leave it out.") from error
    return message


def split(data: bytes) -> list[bytes]:
    """The parts that `keys.encode` joined.

    Raises:
        ValueError: The bytes end within a part.
    """
    parts, start = [], 0
    while start < len(data):
        begin = start + LENGTH_BYTES
        end = begin + int.from_bytes(data[start:begin], "big")
        if end > len(data) or begin > len(data):
            raise ValueError("it ends too early")
        parts.append(data[begin:end])
        start = end
    return parts


def _number(data: bytes) -> int:
    if len(data) != LENGTH_BYTES:
        raise ValueError("a number has another length")
    return int.from_bytes(data, "big")


def _to_number(value: int) -> bytes:
    return value.to_bytes(LENGTH_BYTES, "big")


def _by_client(data: bytes) -> dict[int, bytes]:
    parts = split(data)
    return {_number(client): part for client, part in zip(parts[::2], parts[1::2], strict=True)}


def _from_clients(value: Mapping[int, bytes]) -> bytes:
    return encode(*(part for client in sorted(value) for part in (_to_number(client), value[client])))


# By the declared type of a field, as `messages.VALID`: to bytes and back.
_FORMS: Mapping[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "int": (_to_number, _number),
    "str": (str.encode, bytes.decode),
    "bytes": (bytes, bytes),
    "tuple[int, ...]": (
        lambda value: encode(*map(_to_number, value)),
        lambda data: tuple(map(_number, split(data))),
    ),
    "tuple[AdvertisedKeys, ...]": (
        lambda value: encode(*map(encoded, value)),
        lambda data: tuple(decoded(AdvertisedKeys, part) for part in split(data)),
    ),
    "Mapping[int, bytes]": (_from_clients, _by_client),
}
