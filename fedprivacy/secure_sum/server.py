"""The server's side of a secure sum: relays keys and shares, adds inputs, takes masks off.

    add_keys       -> key_list      U1, the clients with keys       n_min at least
    add_shares     -> deliveries    U2, those that sent shares      n_min at least
    add_input      -> survivors     U3, those in the sum            n_min at least
    add_signature  -> signatures    U4                              k at least
    add_opening    -> total         U5                              k at least

A client may drop out between any two phases. With fewer clients the round is void. A client that drops out
after its input stays in the sum, with its share of noise, so k clients suffice from there on. Every secret
that is put together is compared with a public value of it: a damaged share makes the round void, and never
the sum wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from fedprivacy.errors import FedPrivacyError
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.secure_sum.keys import KeyPair, is_public_key, is_signed
from fedprivacy.secure_sum.masks import add_shared, keystream, reduce_words
from fedprivacy.secure_sum.messages import (
    AdvertisedKeys,
    DeliveredShares,
    KeyList,
    MaskedInput,
    OpenedShares,
    SealedShares,
    SignatureList,
    Survivors,
    SurvivorSignature,
)
from fedprivacy.secure_sum.packing import unpack
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.secret_sharing import PRIME, SECRET_BYTES, SHARE_BYTES, combine
from fedprivacy.secure_sum.transcript import (
    KEYS_PURPOSE,
    SURVIVORS_PURPOSE,
    Phase,
    Roster,
    check_round,
    commitment,
    holder_points,
    self_mask_key,
    shared_mask_key,
    signed_keys,
    signed_survivors,
    view_of,
)

Message = AdvertisedKeys | SealedShares | MaskedInput | SurvivorSignature | OpenedShares


class VoidRound(FedPrivacyError):
    """A secure sum that cannot be opened: too few clients remained, or their shares do not fit.

    Args:
        round_id: The round.
        reason: Why it cannot be opened; it depends on who dropped out, and so perhaps on data.
    """

    def __init__(self, round_id: str, reason: str) -> None:
        super().__init__(f"secure sum of round {round_id}: {reason}. No sum is released; start a new round.")
        self.reason = reason


class RejectedMessage(FedPrivacyError):
    """A client's message that does not fit its round; the server treats it as if it had not come."""


class Server:
    """The server in one round.

    Args:
        roster: The node keys of all clients that may take part.
        parameters: Of the sum.
        round_id: Names the round; no two rounds of any run may have the same.

    Raises:
        InputError: An identity of the roster or `round_id` is invalid.
    """

    def __init__(self, roster: Roster, parameters: Parameters, round_id: str) -> None:
        check_round(roster, round_id)
        self._roster = roster
        self._parameters = parameters
        self._round_id = round_id
        self._phase = Phase.KEYS
        self._keys: dict[int, AdvertisedKeys] = {}
        self._view = b""
        self._shares: dict[int, SealedShares] = {}
        self._survivors: set[int] = set()
        self._sum = np.zeros(parameters.dimension, np.uint32)  # of masked inputs
        self._signatures: dict[int, bytes] = {}
        self._openings: dict[int, OpenedShares] = {}

    def add_keys(self, message: AdvertisedKeys) -> None:
        """Takes a client's keys.

        Raises:
            RejectedMessage: They do not fit the round.
        """
        self._check(message, Phase.KEYS, self._roster, self._keys)
        if len(self._keys) == self._parameters.clients:
            raise self._rejected(message, f"the round has clients = {self._parameters.clients} already")
        parts = signed_keys(message, self._parameters)
        if not is_signed(self._roster[message.sender], message.signature, KEYS_PURPOSE, *parts):
            raise self._rejected(message, "its keys are not signed")
        # Clients refuse a list with such keys, so that a single sender could make every round void.
        if not (is_public_key(message.sealing_key) and is_public_key(message.mask_key)):
            raise self._rejected(message, "a key of it is not a valid X25519 key")
        earlier = {key for entry in self._keys.values() for key in (entry.sealing_key, entry.mask_key)}
        if message.sealing_key == message.mask_key or not earlier.isdisjoint(
            (message.sealing_key, message.mask_key)
        ):
            raise self._rejected(message, "its keys are equal, or equal a key of another client")
        self._keys[message.sender] = message

    def key_list(self) -> KeyList:
        """Ends the phase of keys; the message is for every client with keys.

        Raises:
            VoidRound: Fewer than n_min clients sent keys.
        """
        self._end(Phase.KEYS, len(self._keys), self._parameters.survivors)
        self._view = view_of(self._round_id, self._parameters, self._keys)
        return KeyList(self._round_id, tuple(self._keys[client] for client in sorted(self._keys)))

    def add_shares(self, message: SealedShares) -> None:
        """Takes a client's sealed shares.

        Raises:
            RejectedMessage: They do not fit the round.
        """
        self._check(message, Phase.SHARES, self._keys, self._shares)
        if set(message.sealed) != set(self._keys) - {message.sender}:
            raise self._rejected(message, "its shares are not for each client")
        self._shares[message.sender] = message

    def deliveries(self) -> dict[int, DeliveredShares]:
        """Ends the phase of shares; returns the message for each client that sent shares.

        Raises:
            VoidRound: Fewer than n_min clients sent shares.
        """
        self._end(Phase.SHARES, len(self._shares), self._parameters.survivors)
        return {
            client: DeliveredShares(
                self._round_id,
                {sender: self._shares[sender].sealed[client] for sender in self._shares if sender != client},
            )
            for client in self._shares
        }

    def add_input(self, message: MaskedInput) -> None:
        """Adds a client's masked integers to the sum.

        Raises:
            RejectedMessage: They do not fit the round.
        """
        self._check(message, Phase.INPUTS, self._shares, self._survivors)
        try:
            self._sum += unpack(message.packed, self._parameters.dimension, self._parameters.bits)
        except ValueError as error:
            raise self._rejected(message, f"its input has {error}") from None
        self._survivors.add(message.sender)

    def survivors(self) -> Survivors:
        """Ends the phase of inputs; the message is for every client in the sum.

        Raises:
            VoidRound: Fewer than n_min clients sent inputs.
        """
        self._end(Phase.INPUTS, len(self._survivors), self._parameters.survivors)
        return Survivors(self._round_id, tuple(sorted(self._survivors)))

    def add_signature(self, message: SurvivorSignature) -> None:
        """Takes a client's signature of the survivors.

        Raises:
            RejectedMessage: It does not fit the round.
        """
        self._check(message, Phase.CONSISTENCY, self._survivors, self._signatures)
        parts = signed_survivors(self._view, self._shares, self._survivors)
        if not is_signed(self._roster[message.sender], message.signature, SURVIVORS_PURPOSE, *parts):
            raise self._rejected(message, "it did not sign these survivors")
        self._signatures[message.sender] = message.signature

    def signatures(self) -> SignatureList:
        """Ends the phase of consistency; the message is for every client that signed.

        Raises:
            VoidRound: Fewer than k clients signed.
        """
        self._end(Phase.CONSISTENCY, len(self._signatures), self._parameters.threshold)
        return SignatureList(self._round_id, dict(self._signatures))

    def add_opening(self, message: OpenedShares) -> None:
        """Takes a client's opened shares.

        Raises:
            RejectedMessage: They do not fit the round.
        """
        self._check(message, Phase.OPENING, self._signatures, self._openings)
        if set(message.seeds) != self._survivors or set(message.mask_keys) != self._dropped():
            raise self._rejected(message, "it opened shares of other clients")
        for share in (*message.seeds.values(), *message.mask_keys.values()):
            if len(share) != SHARE_BYTES or int.from_bytes(share, "big") >= PRIME:
                raise self._rejected(message, "a share is no number of the field")
        self._openings[message.sender] = message

    def total(self) -> Integers:
        """Ends the round: the sum of the survivors' integers modulo 2^b, int64, shape (dimension,).

        Raises:
            VoidRound: Fewer than k clients opened their shares, or the shares do not fit.
        """
        self._end(Phase.OPENING, len(self._openings), self._parameters.threshold)
        for client in sorted(self._survivors):
            self._sum -= keystream(self_mask_key(self._seed_of(client), self._view), len(self._sum))
        for client in sorted(self._dropped()):
            pair = self._mask_pair_of(client)
            # What it would have sent cancels the masks that survivors share with it.
            for peer in self._survivors:
                key = shared_mask_key(pair, self._keys[peer].mask_key, self._view, client, peer)
                add_shared(self._sum, client, peer, keystream(key, len(self._sum)))
        return reduce_words(self._sum, self._parameters.bits).astype(np.int64)

    def _dropped(self) -> set[int]:
        """The clients that sent shares and no input."""
        return set(self._shares) - self._survivors

    def _seed_of(self, client: int) -> bytes:
        """The seed of a survivor's self mask."""
        seed = self._combined({sender: opening.seeds[client] for sender, opening in self._openings.items()})
        if seed is None or commitment(seed, self._view) != self._shares[client].commitment:
            raise self._void(f"the shares of the seed of client {client} do not fit")
        return seed

    def _mask_pair_of(self, client: int) -> KeyPair:
        """The mask keys of a client that dropped out."""
        secret = self._combined(
            {sender: opening.mask_keys[client] for sender, opening in self._openings.items()}
        )
        pair = KeyPair(secret) if secret else None
        if pair is None or pair.public != self._keys[client].mask_key:
            raise self._void(f"the shares of the mask key of client {client} do not fit")
        return pair

    def _combined(self, shares: Mapping[int, bytes]) -> bytes | None:
        """A secret from the shares of k clients, or nothing if they give no secret."""
        points = holder_points(self._keys)
        chosen = sorted(shares)[: self._parameters.threshold]
        secret = combine({points[client]: int.from_bytes(shares[client], "big") for client in chosen})
        return secret.to_bytes(SECRET_BYTES, "big") if secret < 1 << 8 * SECRET_BYTES else None

    def _check(
        self, message: Message, phase: Phase, expected: Collection[int], present: Collection[int]
    ) -> None:
        """Rejects a message of another phase, round or client, or a second one."""
        if self._phase != phase:
            raise self._rejected(message, "it came in another phase")
        if message.round_id != self._round_id:
            raise self._rejected(message, "it is of another round")
        if message.sender not in expected:
            raise self._rejected(message, "the client is not in this phase")
        if message.sender in present:
            raise self._rejected(message, "it came before")

    def _end(self, phase: Phase, count: int, least: int) -> None:
        """Ends a phase, and the round if too few clients remain."""
        if self._phase != phase:
            raise self._void("this phase has ended, or is not next")
        if count < least:
            self._phase = Phase.ENDED
            raise self._void(f"{count} clients in the phase of {phase.name.lower()}, fewer than {least}")
        self._phase = Phase(phase + 1)

    def _void(self, text: str) -> VoidRound:
        return VoidRound(self._round_id, text)

    def _rejected(self, message: Message, text: str) -> RejectedMessage:
        return RejectedMessage(
            f"secure sum of round {self._round_id}: client {message.sender}: {text}. Its message is left out."
        )
