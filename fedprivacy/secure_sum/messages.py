"""Messages of a secure sum, as plain values: integers, text and bytes.

Each goes between one client and the server. Clients reach each other through the server alone. A message
with a value of another type is an InputError: a transport treats its bytes as no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from fedprivacy.errors import InputError


def is_identity(value: object) -> bool:
    """Whether a value is an integer in [0, 2^64)."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def is_round_id(value: object) -> bool:
    """Whether a value is text that UTF-8 can encode."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


# By the declared type of a field.
VALID: dict[str, Callable[[object], bool]] = {
    "int": is_identity,
    "str": is_round_id,
    "bytes": lambda value: isinstance(value, bytes),
    "tuple[int, ...]": lambda value: isinstance(value, tuple) and all(map(is_identity, value)),
    "tuple[AdvertisedKeys, ...]": lambda value: (
        isinstance(value, tuple) and all(isinstance(each, AdvertisedKeys) for each in value)
    ),
    "Mapping[int, bytes]": lambda value: (
        isinstance(value, Mapping)
        and all(is_identity(client) and isinstance(data, bytes) for client, data in value.items())
    ),
}


@dataclass(frozen=True)
class Checked:
    """A message whose values have their declared types; the error shows none of them."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not VALID[str(each.type)](getattr(self, each.name)):
                raise InputError(
                    f"message {type(self).__name__}: {each.name}: must be a valid {each.type}. Leave it out."
                )


@dataclass(frozen=True)
class AdvertisedKeys(Checked):
    """Client to server: its two public keys of a round, signed by its node key.

    Args:
        sender: The client's identity.
        round_id: Names the round; no two rounds of any run have the same.
        sealing_key: X25519, for shares sent to it.
        mask_key: X25519, for masks.
        signature: Of the round, its parameters, the sender and both keys.
    """

    sender: int
    round_id: str
    sealing_key: bytes
    mask_key: bytes
    signature: bytes


@dataclass(frozen=True)
class KeyList(Checked):
    """Server to all: the keys of the clients in this round.

    Args:
        round_id: The round.
        keys: Of n clients at most.
    """

    round_id: str
    keys: tuple[AdvertisedKeys, ...]


@dataclass(frozen=True)
class SealedShares(Checked):
    """Client to server: shares of its two secrets, sealed for each peer.

    Args:
        sender: The client's identity.
        round_id: The round.
        commitment: Of the seed of its self mask: what the server opens is compared with it.
        sealed: By peer.
    """

    sender: int
    round_id: str
    commitment: bytes
    sealed: Mapping[int, bytes] = field(repr=False)


@dataclass(frozen=True)
class DeliveredShares(Checked):
    """Server to one client: the shares sealed for it.

    Args:
        round_id: The round.
        sealed: By sender: every client that sent shares, but for the receiver.
    """

    round_id: str
    sealed: Mapping[int, bytes] = field(repr=False)


@dataclass(frozen=True)
class MaskedInput(Checked):
    """Client to server: its masked integers.

    Args:
        sender: The client's identity.
        round_id: The round.
        packed: Of `packing.pack`.
    """

    sender: int
    round_id: str
    packed: bytes = field(repr=False)


@dataclass(frozen=True)
class Survivors(Checked):
    """Server to all: the clients whose inputs are in the sum.

    Args:
        round_id: The round.
        clients: Their identities.
    """

    round_id: str
    clients: tuple[int, ...]


@dataclass(frozen=True)
class SurvivorSignature(Checked):
    """Client to server: that it was shown these survivors, and will support no others.

    Args:
        sender: The client's identity.
        round_id: The round.
        signature: Of the keys, the clients that sent shares and the survivors.
    """

    sender: int
    round_id: str
    signature: bytes


@dataclass(frozen=True)
class SignatureList(Checked):
    """Server to all: the signatures of survivors.

    Args:
        round_id: The round.
        signatures: By client.
    """

    round_id: str
    signatures: Mapping[int, bytes]


@dataclass(frozen=True)
class OpenedShares(Checked):
    """Client to server: for each peer its share of exactly one of two secrets.

    Args:
        sender: The client's identity.
        round_id: The round.
        seeds: Shares of the seeds of self masks, by survivor.
        mask_keys: Shares of the private mask keys, by client that dropped out.
    """

    sender: int
    round_id: str
    seeds: Mapping[int, bytes] = field(repr=False)
    mask_keys: Mapping[int, bytes] = field(repr=False)
