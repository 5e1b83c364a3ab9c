"""A server with its whole transcript and a colluder learns the sum of honest inputs and nothing else.

`masks` proves it for uniform masks, and `test_masks` counts it exactly in a small ring. Here the keystreams of
whole rounds are tested: everything that the server or its colluder can compute is taken off each masked input,
and the rest must be uniform given its sum. Chi-square tests with a false-alarm rate of 1e-6 each, 1.3e-5
together. The other messages can be simulated from that sum and from who answered in which phase, up to breaking
the ciphers; no statistic shows that. Tests of the key derivation stand in for it: secrets are fresh, keys differ
by purpose, pair and direction, private keys enter them, and no public value opens anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from phases import Round
from scipy import stats

from fedprivacy.secure_sum import client as client_module
from fedprivacy.secure_sum.keys import KeyPair, derive, identity_bytes, unseal
from fedprivacy.secure_sum.masks import add_shared, keystream, reduce_words
from fedprivacy.secure_sum.packing import unpack
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.secret_sharing import combine
from fedprivacy.secure_sum.transcript import (
    holder_points,
    sealing_key,
    self_mask_key,
    shared_mask_key,
    view_of,
)

# Clients 0, 1, 2 are honest, client 3 colludes with the server, client 4's input comes too late.
PARAMETERS = Parameters(dimension=2**14, bits=2, clients=5, survivors=4, colluders=1, threshold=4)
SAME_SUM = [(0, 0, 0), (1, 2, 1), (3, 3, 2)]
FALSE_ALARM = 1e-6

Words = NDArray[np.uint32]


@dataclass
class Residuals:
    """Masked inputs without the masks that the server or the colluder knows.

    Args:
        raw: The messages of honest survivors as they were sent.
        survivors: Of honest survivors, shape (3, dimension).
        late: Of the client that was too late.
        total: The released sum.
        colluding: The colluder's input.
    """

    raw: Words
    survivors: Words
    late: Words
    total: NDArray[np.int64]
    colluding: NDArray[np.int64]


def residuals(values: tuple[int, int, int]) -> Residuals:
    """What remains of the messages of honest clients with constant inputs."""
    run = Round(PARAMETERS, range(5))
    inputs = {client: np.full(PARAMETERS.dimension, value) for client, value in enumerate((*values, 1, 2))}
    deliveries = run.share(run.advertise(range(5)), range(5))
    colluder = run.clients[3]._masking
    listed = run.mask(deliveries, inputs, range(4))
    late = run.clients[4].mask(deliveries[4], lambda: inputs[4])
    total = run.open(run.sign(listed, range(4)), range(4))

    view = view_of("a run, round 1", PARAMETERS, run.keys)
    points = holder_points(run.keys)

    def opened(kind: str, client: int) -> bytes:
        shares = {points[each]: getattr(message, kind)[client] for each, message in run.openings.items()}
        secret = combine({point: int.from_bytes(share, "big") for point, share in shares.items()})
        return secret.to_bytes(32, "big")

    known = {3: colluder, 4: KeyPair(opened("mask_keys", 4))}

    def without_known(client: int, packed: bytes, seed: bytes | None, peers: list[int]) -> Words:
        words = unpack(packed, PARAMETERS.dimension, PARAMETERS.bits)
        if seed:
            words -= keystream(self_mask_key(seed, view), len(words))
        for peer in peers:
            pair, other = (known[peer], client) if peer in known else (known[client], peer)
            key = shared_mask_key(pair, run.keys[other].mask_key, view, client, peer)
            add_shared(words, peer, client, keystream(key, len(words)))  # the other's sign: takes it off
        return reduce_words(words, PARAMETERS.bits)

    honest = range(3)
    return Residuals(
        np.array([unpack(run.inputs[each].packed, PARAMETERS.dimension, 2) for each in honest]),
        np.array(
            [without_known(each, run.inputs[each].packed, opened("seeds", each), [3, 4]) for each in honest]
        ),
        without_known(4, late.packed, None, [0, 1, 2, 3]),
        total,
        inputs[3],
    )


def counts(rows: Words) -> NDArray[np.int64]:
    """How often each combination of residues modulo 4 comes up."""
    cells = np.zeros(rows.shape[1], np.int64)
    for row in rows:
        cells = 4 * cells + row
    return np.bincount(cells, minlength=4 ** len(rows))


def is_uniform(rows: Words) -> bool:
    return bool(stats.chisquare(counts(rows)).pvalue > FALSE_ALARM)


def test_the_transcript_is_uniform_given_the_sum_for_all_inputs_with_that_sum() -> None:
    joint = []
    for values in SAME_SUM:
        seen = residuals(values)
        assert is_uniform(seen.raw)
        assert is_uniform(seen.survivors[:2])
        assert is_uniform(seen.survivors[1:])
        assert is_uniform(seen.late[None])
        # The last one follows from the sum: all that is left to learn is in the total.
        honest = seen.survivors.sum(axis=0, dtype=np.int64) % 4
        np.testing.assert_array_equal(honest, (seen.total - seen.colluding) % 4)
        np.testing.assert_array_equal(honest, np.full(PARAMETERS.dimension, sum(values) % 4))
        joint.append(counts(seen.survivors[:2]))
    assert stats.chi2_contingency(joint).pvalue > FALSE_ALARM


@pytest.mark.parametrize("weakness", ["no mask of honest pairs", "one mask for honest pairs", "no self mask"])
def test_the_test_sees_missing_masks(weakness: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def weak_key(pair: KeyPair, peer_key: bytes, view: bytes, client: int, peer: int) -> bytes:
        key = b"1" * 32 if "one mask" in weakness else bytes(32)
        return key if max(client, peer) < 3 else shared_mask_key(pair, peer_key, view, client, peer)

    monkeypatch.setattr(client_module, "keystream", blank_of_zero_key)
    if weakness == "no self mask":
        monkeypatch.setattr(client_module, "self_mask_key", lambda *_: bytes(32))
        assert not is_uniform(residuals(SAME_SUM[1]).late[None])
    else:
        monkeypatch.setattr(client_module, "shared_mask_key", weak_key)
        assert not is_uniform(residuals(SAME_SUM[1]).survivors[:2])


def blank_of_zero_key(key: bytes, dimension: int) -> Words:
    """A keystream, but nothing for the key of zeros."""
    return keystream(key, dimension) if any(key) else np.zeros(dimension, np.uint32)


SMALL = replace(PARAMETERS, dimension=64)


def secrets_of(run: Round) -> list[bytes]:
    return [
        secret
        for client in run.clients.values()
        for secret in (client._seed, client._sealing.secret(), client._masking.secret())
    ]


def test_clients_and_rounds_have_different_secrets() -> None:
    runs = [Round(SMALL, range(5), name) for name in ("a run, round 1", "a run, round 2", "a run, round 1")]
    drawn = [secret for run in runs for secret in secrets_of(run)]
    assert len(set(drawn)) == len(drawn) == 45


def test_keys_of_a_round_differ_by_purpose_pair_and_direction() -> None:
    run = Round(SMALL, range(5))
    message = run.advertise(range(5))
    view = view_of("a run, round 1", SMALL, run.keys)
    seeds = {client: run.clients[client]._seed for client in range(5)}
    run.share(message, range(5))
    keys = [self_mask_key(seed, view) for seed in seeds.values()]
    keys += [run.sealed[client].commitment for client in range(5)]
    for client, peer in permutations(range(5), 2):
        pairs = run.clients[client]._sealing, run.clients[client]._masking
        keys.append(sealing_key(pairs[0], run.keys[peer].sealing_key, view, client, peer))
        if client < peer:
            keys.append(shared_mask_key(pairs[1], run.keys[peer].mask_key, view, client, peer))
    assert len(set(keys)) == len(keys) == 5 + 5 + 20 + 10


@pytest.mark.parametrize("derived", [sealing_key, shared_mask_key])
def test_a_shared_key_depends_on_the_private_key(derived: Callable[..., bytes]) -> None:
    first, second, peer, view = KeyPair(), KeyPair(), KeyPair(), bytes(32)
    second.public = first.public  # the public values stay the same
    key = derived(first, peer.public, view, 1, 2)
    assert key == derived(peer, first.public, view, 1, 2)
    assert key != derived(second, peer.public, view, 1, 2)


def without_self_mask(late: Words, view: bytes, value: bytes) -> list[Words]:
    """The late input without masks of a value, as the key and as the seed."""
    keys = (value, self_mask_key(value, view))
    return [reduce_words(late - keystream(key, len(late)), SMALL.bits) for key in keys]


@pytest.mark.parametrize("public_seed", [False, True])
def test_no_public_value_opens_shares_or_a_late_input(public_seed: bool) -> None:
    run = Round(SMALL, range(5))
    if public_seed:  # the test sees a seed that the server knows
        run.clients[4]._seed = run.clients[4]._sealing.public
    deliveries = run.share(run.advertise(range(5)), range(5))
    inputs = {client: np.full(SMALL.dimension, 2) for client in range(5)}
    pair = run.clients[4]._masking  # opened, since client 4 is too late
    listed = run.mask(deliveries, inputs, range(4))
    late = unpack(run.clients[4].mask(deliveries[4], lambda: inputs[4]).packed, SMALL.dimension, SMALL.bits)
    run.open(run.sign(listed, range(4)), range(4))
    view = view_of("a run, round 1", SMALL, run.keys)
    for peer in range(4):
        key = shared_mask_key(pair, run.keys[peer].mask_key, view, 4, peer)
        add_shared(late, peer, 4, keystream(key, len(late)))
    public = [view, *(message.commitment for message in run.sealed.values())]
    public += [key for message in run.keys.values() for key in (message.sealing_key, message.mask_key)]
    opened = [
        words for value in public for words in without_self_mask(late, view, value) if not np.ptp(words)
    ]
    assert len(opened) == public_seed
    for sender, receiver in permutations(range(5), 2):
        purpose = "sealed shares", view, identity_bytes(sender, receiver)
        for value in public:
            for key in (value, derive(value, *purpose)):
                with pytest.raises(ValueError, match="not sealed"):
                    unseal(key, run.sealed[sender].sealed[receiver])
