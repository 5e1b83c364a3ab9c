"""Values that clients and server derive alike from the messages of a round."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

from cryptography.hazmat.primitives.asymmetric import ec

from fedprivacy.errors import InputError
from fedprivacy.secure_sum.keys import KeyPair, derive, digest, encode, identity_bytes
from fedprivacy.secure_sum.messages import AdvertisedKeys, is_identity, is_round_id
from fedprivacy.secure_sum.parameters import Parameters

Roster = Mapping[int, ec.EllipticCurvePublicKey]  # the node keys of all clients, by identity
KEYS_PURPOSE, SURVIVORS_PURPOSE = "advertised keys", "survivors"  # of signatures


class Phase(IntEnum):
    """The phases of a round, in order."""

    KEYS = 0
    SHARES = 1
    INPUTS = 2
    CONSISTENCY = 3
    OPENING = 4
    ENDED = 5


def check_round(roster: Roster, round_id: str) -> None:
    """Refuses identities and a round id that cannot be written into messages.

    Raises:
        InputError: An identity is no integer in [0, 2^64), or the id is no text that UTF-8 can encode.
    """
    for identity in roster:
        if not is_identity(identity):
            raise InputError(
                f"roster: {identity!r}: must be an integer from 0 to 2^64 - 1. Number the clients."
            )
    if not is_round_id(round_id):
        raise InputError(f"round_id = {round_id!r}: must be text that UTF-8 can encode. Use another one.")


def signed_keys(message: AdvertisedKeys, parameters: Parameters) -> tuple[bytes, ...]:
    """The parts of the signature of advertised keys."""
    sender = identity_bytes(message.sender)
    return (
        message.round_id.encode(),
        parameters.encoded(),
        sender,
        message.sealing_key,
        message.mask_key,
    )


def view_of(round_id: str, parameters: Parameters, keys: Mapping[int, AdvertisedKeys]) -> bytes:
    """A digest of a round and of all its advertised keys.

    Every mask, sealed share and signature of survivors is bound to it: clients that were shown different keys
    can neither read each other's shares nor support each other's survivors.
    """
    entries = (
        encode(identity_bytes(client), keys[client].sealing_key, keys[client].mask_key)
        for client in sorted(keys)
    )
    return digest("view", round_id.encode(), parameters.encoded(), *entries)


def signed_survivors(view: bytes, sharers: Collection[int], survivors: Collection[int]) -> tuple[bytes, ...]:
    """The parts of a signature of survivors, among the clients that sent shares."""
    return view, identity_bytes(*sorted(sharers)), identity_bytes(*sorted(survivors))


def holder_points(clients: Collection[int]) -> dict[int, int]:
    """The holder number of each client in secret sharing, from 1."""
    return {client: point for point, client in enumerate(sorted(clients), 1)}


def sealing_key(pair: KeyPair, peer_key: bytes, view: bytes, sender: int, receiver: int) -> bytes:
    """The key under which a sender seals its shares for a receiver.

    Raises:
        ValueError: The peer's public key is not a valid X25519 key.
    """
    return pair.agree(peer_key, "sealed shares", view, identity_bytes(sender, receiver))


def shared_mask_key(pair: KeyPair, peer_key: bytes, view: bytes, client: int, peer: int) -> bytes:
    """The key of the mask of two clients.

    Raises:
        ValueError: The peer's public key is not a valid X25519 key.
    """
    return pair.agree(peer_key, "shared mask", view, identity_bytes(*sorted((client, peer))))


def self_mask_key(seed: bytes, view: bytes) -> bytes:
    """The key of a client's self mask."""
    return derive(seed, "self mask", view)


def commitment(seed: bytes, view: bytes) -> bytes:
    """A value that only this seed has, and that reveals nothing of its self mask."""
    return derive(seed, "commitment", view)
