"""Messages of a secure sum, as plain values: integers, text and bytes.

Each goes between one client and the server. Clients reach each other through the server alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class AdvertisedKeys:
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
class KeyList:
    """Server to all: the keys of the clients in this round.

    Args:
        round_id: The round.
        keys: Of n clients at most.
    """

    round_id: str
    keys: tuple[AdvertisedKeys, ...]


@dataclass(frozen=True)
class SealedShares:
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
class DeliveredShares:
    """Server to one client: the shares sealed for it.

    Args:
        round_id: The round.
        sealed: By sender: every client that sent shares, but for the receiver.
    """

    round_id: str
    sealed: Mapping[int, bytes] = field(repr=False)


@dataclass(frozen=True)
class MaskedInput:
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
class Survivors:
    """Server to all: the clients whose inputs are in the sum.

    Args:
        round_id: The round.
        clients: Their identities.
    """

    round_id: str
    clients: tuple[int, ...]


@dataclass(frozen=True)
class SurvivorSignature:
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
class SignatureList:
    """Server to all: the signatures of survivors.

    Args:
        round_id: The round.
        signatures: By client.
    """

    round_id: str
    signatures: Mapping[int, bytes]


@dataclass(frozen=True)
class OpenedShares:
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
