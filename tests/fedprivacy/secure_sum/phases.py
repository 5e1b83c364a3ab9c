"""A round of a secure sum, phase by phase, between clients of whom some drop out."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from functools import cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from numpy.typing import NDArray

from fedprivacy.secure_sum.client import Client
from fedprivacy.secure_sum.messages import (
    AdvertisedKeys,
    DeliveredShares,
    KeyList,
    MaskedInput,
    OpenedShares,
    SealedShares,
    SignatureList,
    Survivors,
)
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.rounds import Rounds
from fedprivacy.secure_sum.server import Server

Integers = NDArray[np.int64]


@cache
def node_key(identity: int) -> ec.EllipticCurvePrivateKey:
    """A node key; P-256 is quicker than the P-384 of deployments."""
    return ec.generate_private_key(ec.SECP256R1())


def flipped(data: bytes, bit: int) -> bytes:
    """The bytes with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def roster_of(identities: Collection[int]) -> dict[int, ec.EllipticCurvePublicKey]:
    return {identity: node_key(identity).public_key() for identity in identities}


def random_inputs(parameters: Parameters, identities: Collection[int]) -> dict[int, Integers]:
    """Uniform integers, from the operating system's entropy as every draw of this protocol."""
    size = 4 * parameters.dimension
    return {
        identity: np.frombuffer(secrets.token_bytes(size), "<u4").astype(np.int64) % 2**parameters.bits
        for identity in identities
    }


class Round:
    """A server with clients; each phase is run for the clients that still answer."""

    def __init__(
        self, parameters: Parameters, identities: Collection[int], round_id: str = "a run, round 1"
    ) -> None:
        roster = roster_of(identities)
        self.parameters = parameters
        self.server = Server(roster, parameters, round_id)
        self.clients = {
            identity: Client(identity, node_key(identity), roster, parameters, round_id, Rounds())
            for identity in identities
        }
        self.keys: dict[int, AdvertisedKeys] = {}
        self.sealed: dict[int, SealedShares] = {}
        self.inputs: dict[int, MaskedInput] = {}
        self.openings: dict[int, OpenedShares] = {}

    def advertise(self, alive: Collection[int]) -> KeyList:
        for client in alive:
            self.keys[client] = self.clients[client].advertise()
            self.server.add_keys(self.keys[client])
        return self.server.key_list()

    def share(self, message: KeyList, alive: Collection[int]) -> dict[int, DeliveredShares]:
        for client in alive:
            self.sealed[client] = self.clients[client].share(message)
            self.server.add_shares(self.sealed[client])
        return self.server.deliveries()

    def mask(
        self, messages: Mapping[int, DeliveredShares], inputs: Mapping[int, Integers], alive: Collection[int]
    ) -> Survivors:
        for client in alive:
            self.inputs[client] = self.clients[client].mask(
                messages[client], lambda client=client: inputs[client]
            )
            self.server.add_input(self.inputs[client])
        return self.server.survivors()

    def sign(self, message: Survivors, alive: Collection[int]) -> SignatureList:
        for client in alive:
            self.server.add_signature(self.clients[client].sign(message))
        return self.server.signatures()

    def open(self, message: SignatureList, alive: Collection[int]) -> Integers:
        for client in alive:
            self.openings[client] = self.clients[client].open(message)
            self.server.add_opening(self.openings[client])
        return self.server.total()

    def run(self, inputs: Mapping[int, Integers], completed: Mapping[int, int]) -> Integers:
        """The sum, where each client drops out after so many of the five phases."""
        alive = [[each for each in completed if completed[each] > phase] for phase in range(5)]
        deliveries = self.share(self.advertise(alive[0]), alive[1])
        return self.open(self.sign(self.mask(deliveries, inputs, alive[2]), alive[3]), alive[4])
