"""The sum is that of the survivors for every way to drop out, or the round is void."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import combinations_with_replacement, islice, product

import numpy as np
import pytest
from phases import Integers, Round, flipped, node_key, random_inputs

from fedprivacy.secure_sum.keys import sign
from fedprivacy.secure_sum.messages import Survivors
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.secret_sharing import PRIME
from fedprivacy.secure_sum.server import RejectedMessage, VoidRound
from fedprivacy.secure_sum.transcript import KEYS_PURPOSE, signed_keys

FOUR = Parameters(dimension=9, bits=12, clients=4, survivors=3, colluders=0, threshold=3)
FIVE = Parameters(dimension=9, bits=28, clients=5, survivors=4, colluders=1, threshold=4)


def outcome(parameters: Parameters, completed: dict[int, int]) -> Integers | None:
    """The sum, checked, or nothing of a void round."""
    inputs = random_inputs(parameters, completed)
    remain = [sum(each > phase for each in completed.values()) for phase in range(5)]
    fits = min(remain[:3]) >= parameters.survivors and min(remain[3:]) >= parameters.threshold
    try:
        total = Round(parameters, list(completed)).run(inputs, completed)
    except VoidRound:
        assert not fits, completed
        return None
    assert fits, completed
    expected = sum(inputs[client] for client, phases in completed.items() if phases >= 3)
    np.testing.assert_array_equal(total, expected % 2**parameters.bits)
    return total


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("every", [11, 1])
def test_every_way_of_four_clients_to_drop_out(every: int) -> None:
    ways = islice(product(range(6), repeat=4), 0, None, every)
    results = [outcome(FOUR, dict(zip((9, 2, 5, 7), each, strict=True))) for each in ways]
    assert sum(each is not None for each in results) > 10 // every


@pytest.mark.exhaustive
def test_every_way_of_five_clients_to_drop_out_up_to_their_order() -> None:
    parameters = replace(FIVE, survivors=4, colluders=0, threshold=3)
    order = sorted(range(5), key=lambda _: secrets.randbits(64))
    results = [
        outcome(parameters, dict(zip(order, each, strict=True)))
        for each in combinations_with_replacement(range(6), 5)
    ]
    assert sum(each is not None for each in results) > 10


HUNDRED = Parameters(dimension=40, bits=16, clients=100, survivors=70, colluders=5, threshold=53)


@pytest.mark.exhaustive
def test_seventy_of_a_hundred_clients_are_summed() -> None:
    completed = dict(enumerate([1] * 10 + [2] * 15 + [3] * 5 + [5] * 70))
    assert outcome(HUNDRED, completed) is not None


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("stopped", [[2] * 30, [3] * 15 + [4] * 15, [1] * 15 + [2] * 16])
def test_thirty_of_a_hundred_clients_stop_together_and_in_any_order(stopped: list[int]) -> None:
    order = sorted(range(100), key=lambda _: secrets.randbits(64))
    completed = dict(zip(order, [5] * (100 - len(stopped)) + stopped, strict=True))
    assert (outcome(HUNDRED, completed) is None) == (len(stopped) > 30)


def started(phase: int) -> Round:
    """A round of four clients, of whom client 3 drops out before its input, up to some phase."""
    run = Round(FOUR, range(4))
    inputs = random_inputs(FOUR, range(4))
    steps = [
        lambda _: run.advertise(range(4)),
        lambda message: run.share(message, range(4)),
        lambda message: run.mask(message, inputs, range(3)),
    ]
    message = None
    for step in steps[:phase]:
        message = step(message)
    return run


def test_keys_that_are_unsigned_late_unknown_or_of_another_round_are_rejected() -> None:
    run = Round(FOUR, range(5))
    keys = {client: run.clients[client].advertise() for client in range(5)}
    other = Round(FOUR, range(5), "a run, round 2").clients[0].advertise()
    for message, text in [
        (replace(keys[0], signature=flipped(keys[0].signature, 100)), "not signed"),
        (replace(keys[0], mask_key=keys[1].mask_key), "not signed"),
        (replace(keys[0], sender=1), "not signed"),
        (replace(keys[0], sender=9), "not in this phase"),
        (other, "another round"),
        (replace(other, round_id="a run, round 1"), "not signed"),
    ]:
        with pytest.raises(RejectedMessage, match=text):
            run.server.add_keys(message)
    for client in range(4):
        run.server.add_keys(keys[client])
    with pytest.raises(RejectedMessage, match="before"):
        run.server.add_keys(keys[0])
    with pytest.raises(RejectedMessage, match="clients = 4 already"):
        run.server.add_keys(keys[4])
    run.server.key_list()
    with pytest.raises(RejectedMessage, match="another phase"):
        run.server.add_keys(keys[4])


@pytest.mark.parametrize(
    ("sealing", "masking"),
    [
        (bytes(32), None),
        (None, bytes(32)),
        (bytes(31), None),
        (None, b""),
        ("own mask", None),
        ("other sealing", None),
        ("other mask", None),
        (None, "other sealing"),
        (None, "other mask"),
    ],
)
def test_signed_keys_that_are_invalid_or_equal_drop_their_sender_alone(
    sealing: bytes | str | None, masking: bytes | str | None
) -> None:
    run = Round(FOUR, range(4))
    keys = {client: run.clients[client].advertise() for client in range(4)}
    public = {
        "own mask": keys[3].mask_key,
        "other sealing": keys[0].sealing_key,
        "other mask": keys[0].mask_key,
    }
    changed = replace(
        keys[3],
        sealing_key=keys[3].sealing_key if sealing is None else public.get(sealing, sealing),
        mask_key=keys[3].mask_key if masking is None else public.get(masking, masking),
    )
    signature = sign(node_key(3), KEYS_PURPOSE, *signed_keys(changed, FOUR))
    for client in range(3):
        run.server.add_keys(keys[client])
    with pytest.raises(RejectedMessage, match=r"not a valid X25519 key|its keys are equal"):
        run.server.add_keys(replace(changed, signature=signature))
    inputs = random_inputs(FOUR, range(3))
    deliveries = run.share(run.server.key_list(), range(3))
    total = run.open(run.sign(run.mask(deliveries, inputs, range(3)), range(3)), range(3))
    np.testing.assert_array_equal(total, sum(inputs.values()) % 2**FOUR.bits)


def test_shares_and_inputs_that_do_not_fit_are_rejected() -> None:
    run = Round(FOUR, range(4))
    message = run.advertise(range(4))
    shares = {client: run.clients[client].share(message) for client in range(4)}
    sealed = dict(shares[0].sealed)
    sealed.pop(3)
    with pytest.raises(RejectedMessage, match="for each client"):
        run.server.add_shares(replace(shares[0], sealed=sealed))
    for client in range(4):
        run.server.add_shares(shares[client])
    delivered = run.server.deliveries()
    masked = run.clients[0].mask(delivered[0], lambda: random_inputs(FOUR, [0])[0])
    with pytest.raises(RejectedMessage, match="13 bytes, not 14"):
        run.server.add_input(replace(masked, packed=masked.packed[1:]))
    run.server.add_input(masked)
    with pytest.raises(RejectedMessage, match="before"):
        run.server.add_input(masked)


def test_a_late_input_is_in_no_sum() -> None:
    run = Round(FOUR, range(4))
    inputs = random_inputs(FOUR, range(4))
    delivered = run.share(run.advertise(range(4)), range(4))
    late = run.clients[3].mask(delivered[3], lambda: inputs[3])
    message = run.mask(delivered, inputs, range(3))
    with pytest.raises(RejectedMessage, match="another phase"):
        run.server.add_input(late)
    total = run.open(run.sign(message, range(3)), range(3))
    np.testing.assert_array_equal(total, (inputs[0] + inputs[1] + inputs[2]) % 2**FOUR.bits)


def test_a_signature_of_other_survivors_is_rejected() -> None:
    run = started(3)
    signed = run.clients[0].sign(Survivors("a run, round 1", (0, 1, 2, 3)))
    with pytest.raises(RejectedMessage, match="did not sign these survivors"):
        run.server.add_signature(signed)


@pytest.mark.parametrize(("opened", "client"), [("seeds", 1), ("mask_keys", 3)])
@pytest.mark.parametrize("bit", [90, 131, 260])
def test_a_changed_share_makes_the_round_void(opened: str, client: int, bit: int) -> None:
    run = started(3)
    message = run.sign(Survivors("a run, round 1", (0, 1, 2)), range(3))
    for sender in range(3):
        opening = run.clients[sender].open(message)
        if sender == 2:
            shares = dict(getattr(opening, opened))
            shares[client] = flipped(shares[client], bit)
            opening = replace(opening, **{opened: shares})
        run.server.add_opening(opening)
    with pytest.raises(VoidRound, match=f"key of client {client}|seed of client {client}"):
        run.server.total()
    with pytest.raises(VoidRound, match="ended"):
        run.server.total()


def test_a_share_outside_the_field_is_rejected() -> None:
    run = started(3)
    opening = run.clients[0].open(run.sign(Survivors("a run, round 1", (0, 1, 2)), range(3)))
    for share in (b"\xff" * 33, PRIME.to_bytes(33, "big"), bytes(32), bytes(34)):
        with pytest.raises(RejectedMessage, match="no number of the field"):
            run.server.add_opening(replace(opening, mask_keys={3: share}))


def test_openings_of_other_clients_are_rejected() -> None:
    run = started(3)
    opening = run.clients[0].open(run.sign(Survivors("a run, round 1", (0, 1, 2)), range(3)))
    for changed in (
        replace(opening, seeds={**opening.seeds, 3: opening.seeds[0]}),
        replace(opening, mask_keys={}),
        replace(opening, mask_keys={**opening.mask_keys, 0: opening.mask_keys[3]}),
    ):
        with pytest.raises(RejectedMessage, match="shares of other clients"):
            run.server.add_opening(changed)
    run.server.add_opening(opening)


def test_phases_end_once() -> None:
    run = started(2)
    with pytest.raises(VoidRound, match="has ended"):
        run.server.key_list()
    with pytest.raises(VoidRound, match="not next"):
        run.server.total()
