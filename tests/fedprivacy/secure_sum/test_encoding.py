"""A message has one form as bytes, and nothing else is read as one."""

from __future__ import annotations

import numpy as np
import pytest
from phases import Round, random_inputs

from fedprivacy.errors import InputError
from fedprivacy.secure_sum.client_state import ClientState
from fedprivacy.secure_sum.encoding import decoded, encoded
from fedprivacy.secure_sum.keys import encode
from fedprivacy.secure_sum.messages import AdvertisedKeys, Checked, DeliveredShares, KeyList, Survivors
from fedprivacy.secure_sum.parameters import Parameters

PARAMETERS = Parameters(dimension=8, bits=16, clients=5, survivors=3, colluders=0, threshold=3)


def messages() -> list[Checked]:
    """Each message of a round, in which client 4 drops out before its input."""
    run = Round(PARAMETERS, range(5))
    keys = run.advertise(range(5))
    shares = run.share(keys, range(5))
    survivors = run.mask(shares, random_inputs(PARAMETERS, range(5)), range(4))
    state = run.clients[3].hand_over()
    signatures = run.sign(survivors, range(3))
    run.open(signatures, range(3))
    of_client = [run.keys[0], run.sealed[0], run.inputs[0], run.openings[0]]
    return [keys, shares[0], survivors, signatures, state, *of_client]


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def test_each_message_is_read_as_it_was_written() -> None:
    for message in messages():
        assert decoded(type(message), encoded(message)) == message


def test_bytes_that_are_cut_or_longer_are_no_message() -> None:
    for message in messages():
        data = encoded(message)
        for wrong in (data[:-1], data + b"\0", data[1:], data + number(0), data[:7], data[: len(data) // 2]):
            with pytest.raises(InputError, match=type(message).__name__):
                decoded(type(message), wrong)


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (AdvertisedKeys, [b"\1", b"a", b"", b"", b""]),  # a number of another length
        (AdvertisedKeys, [number(1), b"\xff", b"", b"", b""]),  # no text
        (Survivors, [b"a", encode(number(1), b"\1")]),
        (DeliveredShares, [b"a", encode(number(1))]),  # a client without a value
        (DeliveredShares, [b"a", encode(number(2), b"x", number(1), b"y")]),  # not in order
        (DeliveredShares, [b"a", encode(number(1), b"x", number(1), b"y")]),  # twice
        (KeyList, [b"a", encode(encode(number(1)))]),  # keys without their fields
        (ClientState, [number(2)]),
    ],
)
def test_another_form_is_refused(kind: type[Checked], parts: list[bytes]) -> None:
    with pytest.raises(InputError, match="Leave it out"):
        decoded(kind, encode(*parts))


def test_changed_bytes_are_no_message_or_another_one_in_its_only_form() -> None:
    stream = np.random.default_rng(0)
    for message in messages():
        data = encoded(message)
        for _ in range(100):
            changed = bytearray(data)
            changed[stream.integers(len(data))] ^= 1 << int(stream.integers(8))
            try:
                other = decoded(type(message), bytes(changed))
            except InputError:
                continue
            assert encoded(other) == changed
            assert other != message


def test_a_state_shows_no_secret() -> None:
    state = ClientState(1, b"sealing", b"masking", b"seed", (), b"", {1: b"share"}, {1: b"other"})
    assert not any(secret in repr(state) for secret in ("sealing", "masking", "seed=", "share", "other"))
