"""One client's side of a secure sum, with the checks against an active server.

    advertise   two public keys, signed by the node key
    share       of its seed and its private mask key k-of-n shares, sealed for each peer
    mask        where the shares of its peers pass: its integers, under masks shared with all that sent
                shares, and its self mask
    sign        the survivors that it was shown, once
    open        where k clients signed the same survivors: of each survivor the share of the seed, of each
                client that dropped out the share of the private mask key

The protocol is that of Bonawitz et al. 2017, figure 4. Each step happens at most once, and a refusal ends
the round for this client: a server that is refused cannot try again. Which share of a peer is opened follows
from the survivors that the client signed; no message can request both.

A transport must never run a step again, not even with the same message: the refusal ends the round. It caches
the bytes of each reply until the round ends, and sends them again if the server did not receive them. Threads
may share a client: its steps run in turn, so of two equal calls the second is refused. Between two steps a
client can be moved to disk and back (`stored_client`); moved means that the first object ends.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn, Self

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from fedprivacy.errors import InputError, Refusal
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.secure_sum.client_state import ClientState
from fedprivacy.secure_sum.keys import KEY_BYTES, KeyPair, is_public_key, is_signed, seal, sign, unseal
from fedprivacy.secure_sum.masks import add_shared, keystream
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
from fedprivacy.secure_sum.packing import pack
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.rounds import Rounds, refusal
from fedprivacy.secure_sum.secret_sharing import SHARE_BYTES, split
from fedprivacy.secure_sum.transcript import (
    KEYS_PURPOSE,
    SURVIVORS_PURPOSE,
    Phase,
    Roster,
    check_round,
    commitment,
    holder_points,
    sealing_key,
    self_mask_key,
    shared_mask_key,
    signed_keys,
    signed_survivors,
    view_of,
)

_UNTIL_INPUT = "_sealing", "_masking", "_seed"  # secrets that no step after the input needs


class Client:
    """One client in one round.

    Args:
        identity: Of this client, in [0, 2^64).
        signing_key: Its node key.
        roster: The node keys of all clients that may take part, from a source that is not the server.
        parameters: Of the sum, as the client's own plan has them.
        round_id: Names the round; no two rounds of any run may have the same.
        rounds: The rounds that this client has entered.

    Raises:
        InputError: The roster has another key for this client, or an identity or `round_id` is invalid.
    """

    def __init__(
        self,
        identity: int,
        signing_key: ec.EllipticCurvePrivateKey,
        roster: Roster,
        parameters: Parameters,
        round_id: str,
        rounds: Rounds,
    ) -> None:
        check_round(roster, round_id)
        if roster.get(identity) != signing_key.public_key():
            raise InputError(f"roster: it has another key for client {identity}, or none. Register its key.")
        self.identity = identity
        self._signing_key = signing_key
        self._roster = roster
        self._parameters = parameters
        self._round_id = round_id
        self._rounds = rounds
        self._lock = threading.Lock()  # held during a step
        self._phase = Phase.KEYS
        self._sealing = KeyPair()
        self._masking = KeyPair()
        self._seed = secrets.token_bytes(KEY_BYTES)
        self._keys: dict[int, AdvertisedKeys] = {}
        self._view = b""
        self._shares: dict[int, tuple[bytes, bytes]] = {}  # of seed and mask key, by sender
        self._survivors: frozenset[int] = frozenset()

    @classmethod
    def restored(
        cls,
        state: ClientState,
        identity: int,
        signing_key: ec.EllipticCurvePrivateKey,
        roster: Roster,
        parameters: Parameters,
        round_id: str,
    ) -> Self:
        """The client that handed over this state, before its next step; the caller uses each state once.

        Args:
            state: Of `hand_over`, after the client entered the round.
            identity: As before, like all that follow.
            signing_key: Its node key.
            roster: The node keys.
            parameters: Of the sum.
            round_id: The round.

        Raises:
            InputError: The state is that of a client which has not entered the round, or has ended.
        """
        if not Phase.KEYS < state.phase < Phase.ENDED:
            raise InputError(f"state of a client: phase {state.phase}: no further step. Start a new round.")
        client = cls(identity, signing_key, roster, parameters, round_id, Rounds())
        client._phase = Phase(state.phase)
        if client._phase > Phase.INPUTS:
            client._forget(*_UNTIL_INPUT)
        else:
            client._sealing, client._masking = KeyPair(state.sealing_secret), KeyPair(state.mask_secret)
            client._seed = state.seed
        client._keys = {entry.sender: entry for entry in state.keys}
        client._view = state.view
        client._shares = {peer: (share, state.key_shares[peer]) for peer, share in state.seed_shares.items()}
        client._survivors = frozenset(state.survivors)
        return client

    def hand_over(self) -> ClientState:
        """Moves the client into a state that `restored` continues; this object takes no further step."""
        with self._lock:
            phase, self._phase = self._phase, Phase.ENDED
            if phase is Phase.ENDED:
                return ClientState(phase)
            before_input = phase <= Phase.INPUTS
            state = ClientState(
                phase=phase,
                sealing_secret=self._sealing.secret() if before_input else b"",
                mask_secret=self._masking.secret() if before_input else b"",
                seed=self._seed if before_input else b"",
                keys=tuple(self._keys.values()),
                view=self._view,
                seed_shares={peer: pair[0] for peer, pair in self._shares.items()},
                key_shares={peer: pair[1] for peer, pair in self._shares.items()},
                survivors=tuple(sorted(self._survivors)),
            )
            self._forget(*_UNTIL_INPUT, "_shares")
            return state

    def advertise(self) -> AdvertisedKeys:
        """Enters the round with two fresh public keys.

        Raises:
            Refusal: The client entered this round before.
        """
        with self._step(Phase.KEYS, self._round_id):
            self._rounds.enter(self._round_id)
            unsigned = AdvertisedKeys(
                self.identity, self._round_id, self._sealing.public, self._masking.public, b""
            )
            signature = sign(self._signing_key, KEYS_PURPOSE, *signed_keys(unsigned, self._parameters))
            self._keys = {self.identity: replace(unsigned, signature=signature)}
            return self._keys[self.identity]

    def share(self, message: KeyList) -> SealedShares:
        """Shares its secrets among the clients of the round.

        Raises:
            Refusal: A key is unknown, unsigned, invalid or listed twice, or they are too few or too many.
        """
        with self._step(Phase.SHARES, message.round_id):
            self._keys = self._verified(message)
            self._view = view_of(self._round_id, self._parameters, self._keys)
            of_seed, of_key = (
                split(int.from_bytes(secret, "big"), len(self._keys), self._parameters.threshold)
                for secret in (self._seed, self._masking.secret())
            )
            sealed = {}
            for peer, point in holder_points(self._keys).items():
                pair = tuple(shares[point - 1].to_bytes(SHARE_BYTES, "big") for shares in (of_seed, of_key))
                if peer == self.identity:
                    self._shares[peer] = (pair[0], pair[1])
                else:
                    sealed[peer] = seal(self._sealing_key(self.identity, peer), b"".join(pair))
            return SealedShares(self.identity, self._round_id, commitment(self._seed, self._view), sealed)

    def mask(self, message: DeliveredShares, compute: Callable[[], Integers]) -> MaskedInput:
        """Masks its integers, where the shares of its peers let the sum be opened.

        Args:
            message: The shares that peers sealed for this client.
            compute: Returns the integers, in [0, 2^b), shape (dimension,). It is called once the shares have
                passed, so that a round that cannot be opened costs no training; it may last long.

        Raises:
            Refusal: Shares are too few, of unknown clients, or damaged.
            InputError: The integers have another shape, dtype or range.
        """
        with self._step(Phase.INPUTS, message.round_id):
            self._check_members([*message.sealed, self.identity], self._keys, "shares")
            for peer, ciphertext in message.sealed.items():
                self._shares[peer] = self._unsealed(peer, ciphertext)
            integers = compute()
            if integers.shape != (self._parameters.dimension,):
                raise InputError(f"integers: {integers.shape}: must be ({self._parameters.dimension},).")
            if integers.dtype.kind not in "iu":
                raise InputError(f"integers: {integers.dtype}: must have an integer dtype. Round them first.")
            if integers.min() < 0 or integers.max() >= 1 << self._parameters.bits:
                raise InputError(f"integers: must be from 0 to 2^{self._parameters.bits} - 1. Reduce them.")
            total = integers.astype(np.uint32)
            total += keystream(self_mask_key(self._seed, self._view), len(total))
            for peer in message.sealed:
                key = shared_mask_key(
                    self._masking, self._keys[peer].mask_key, self._view, self.identity, peer
                )
                add_shared(total, self.identity, peer, keystream(key, len(total)))
            return MaskedInput(self.identity, self._round_id, pack(total, self._parameters.bits))

    def sign(self, message: Survivors) -> SurvivorSignature:
        """Signs the survivors: the only ones whose sum this client will help to open.

        Raises:
            Refusal: They are too few, sent no shares, are listed twice, or this client is not among them.
        """
        with self._step(Phase.CONSISTENCY, message.round_id):
            self._check_members(message.clients, self._shares, "survivors")
            if self.identity not in message.clients:
                raise self._refused("its survivors leave out this client, which sent its input")
            self._survivors = frozenset(message.clients)
            signature = sign(
                self._signing_key,
                SURVIVORS_PURPOSE,
                *signed_survivors(self._view, self._shares, self._survivors),
            )
            return SurvivorSignature(self.identity, self._round_id, signature)

    def open(self, message: SignatureList) -> OpenedShares:
        """Opens a share of the seed of each survivor, and of the mask key of each other client.

        Raises:
            Refusal: Fewer than k clients signed the same survivors, or others than survivors signed.
        """
        with self._step(Phase.OPENING, message.round_id):
            if not self._survivors.issuperset(message.signatures):
                raise self._refused("clients that are no survivors signed the survivors")
            if len(message.signatures) < self._parameters.threshold:
                raise self._refused(
                    f"{len(message.signatures)} clients signed the survivors, fewer than "
                    f"threshold = {self._parameters.threshold}"
                )
            parts = signed_survivors(self._view, self._shares, self._survivors)
            for peer, signature in message.signatures.items():
                if not is_signed(self._roster[peer], signature, SURVIVORS_PURPOSE, *parts):
                    raise self._refused(f"client {peer} did not sign the survivors shown to this one")
            seeds = {peer: pair[0] for peer, pair in self._shares.items() if peer in self._survivors}
            mask_keys = {peer: pair[1] for peer, pair in self._shares.items() if peer not in self._survivors}
            return OpenedShares(self.identity, self._round_id, seeds, mask_keys)

    def _verified(self, message: KeyList) -> dict[int, AdvertisedKeys]:
        """The advertised keys by client, all signed."""
        if len(message.keys) > self._parameters.clients:
            raise self._refused(
                f"{len(message.keys)} clients, more than clients = {self._parameters.clients}"
            )
        self._check_members([entry.sender for entry in message.keys], self._roster, "keys")
        keys = {entry.sender: entry for entry in message.keys}
        if keys.get(self.identity) != self._keys[self.identity]:
            raise self._refused("the keys of this client are missing or changed")
        public = {key for entry in message.keys for key in (entry.sealing_key, entry.mask_key)}
        if len(public) < 2 * len(keys):
            raise self._refused("two of the keys are equal")
        for sender, entry in keys.items():
            if entry.round_id != self._round_id or not is_signed(
                self._roster[sender],
                entry.signature,
                KEYS_PURPOSE,
                *signed_keys(entry, self._parameters),
            ):
                raise self._refused(f"the keys of client {sender} are not signed for this round and plan")
            if not (is_public_key(entry.sealing_key) and is_public_key(entry.mask_key)):
                raise self._refused(f"a key of client {sender} is not a valid X25519 key")
        return keys

    def _check_members(self, clients: Collection[int], known: Iterable[int], noun: str) -> None:
        """Refuses a list of clients that are too few, unknown or listed twice."""
        if len(set(clients)) < len(clients):
            raise self._refused(f"{noun}: a client is listed twice")
        if not set(clients) <= set(known):
            raise self._refused(f"{noun}: a client is unknown")
        if len(clients) < self._parameters.survivors:
            raise self._refused(
                f"{noun}: {len(clients)} clients, fewer than survivors = {self._parameters.survivors}"
            )

    def _unsealed(self, peer: int, ciphertext: bytes) -> tuple[bytes, bytes]:
        """A peer's shares of its seed and of its mask key."""
        try:
            pair = unseal(self._sealing_key(peer, self.identity), ciphertext)
        except ValueError:
            raise self._refused(f"the shares of client {peer} are not for this client and round") from None
        if len(pair) != 2 * SHARE_BYTES:
            raise self._refused(f"the shares of client {peer} have another length")
        return pair[:SHARE_BYTES], pair[SHARE_BYTES:]

    def _sealing_key(self, sender: int, receiver: int) -> bytes:
        peer = receiver if sender == self.identity else sender
        return sealing_key(self._sealing, self._keys[peer].sealing_key, self._view, sender, receiver)

    @contextmanager
    def _step(self, phase: Phase, round_id: str) -> Iterator[None]:
        """Runs one step at a time; any error in it ends the round for this client."""
        with self._lock:
            expected, self._phase = self._phase, Phase.ENDED
            try:
                if expected is not phase:
                    raise self._refused("this step was taken before, or is not next")
                if round_id != self._round_id:
                    raise self._refused("the message is of another round")
                yield
                self._phase = Phase(phase + 1)
            finally:
                if self._phase > Phase.INPUTS:
                    self._forget(*_UNTIL_INPUT)
                if self._phase is Phase.ENDED:
                    self._forget("_shares")

    def _forget(self, *secrets_of_round: str) -> None:
        """Drops secrets of the round that no further step needs."""
        for name in secrets_of_round:
            self.__dict__.pop(name, None)

    def __reduce__(self) -> NoReturn:
        """Forbids copies and pickles: each copy could take a step that the client has taken."""
        raise TypeError("a client of a secure sum cannot be copied or pickled")

    def _refused(self, text: str) -> Refusal:
        return refusal(self._round_id, f"{text}. The server or a client is faulty; start a new round.")
