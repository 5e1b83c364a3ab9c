"""Messages have values of their declared types, or are refused."""

from __future__ import annotations

import pytest

from fedprivacy.errors import InputError
from fedprivacy.secure_sum.messages import (
    AdvertisedKeys,
    Checked,
    DeliveredShares,
    KeyList,
    MaskedInput,
    OpenedShares,
    SealedShares,
    SignatureList,
    Survivors,
    SurvivorSignature,
)

INVALID: list[tuple[type[Checked], str, tuple[object, ...]]] = [
    (AdvertisedKeys, "sender", (True, "r", b"", b"", b"")),
    (AdvertisedKeys, "sender", (2**64, "r", b"", b"", b"")),
    (AdvertisedKeys, "round_id", (1, "\ud800", b"", b"", b"")),
    (AdvertisedKeys, "sealing_key", (1, "r", "", b"", b"")),
    (AdvertisedKeys, "mask_key", (1, "r", b"", bytearray(32), b"")),
    (AdvertisedKeys, "signature", (1, "r", b"", b"", None)),
    (KeyList, "round_id", (None, ())),
    (KeyList, "keys", ("r", (1,))),
    (KeyList, "keys", ("r", [])),
    (SealedShares, "commitment", (1, "r", "", {})),
    (SealedShares, "sealed", (1, "r", b"", {1: "x"})),
    (DeliveredShares, "sealed", ("r", {-1: b""})),
    (DeliveredShares, "sealed", ("r", None)),
    (MaskedInput, "packed", (1, "r", [1])),
    (Survivors, "clients", ("r", (1, 2.0))),
    (Survivors, "clients", ("r", 1)),
    (SurvivorSignature, "signature", (1, "r", 7)),
    (SignatureList, "signatures", ("r", {1: None})),
    (OpenedShares, "seeds", (1, "r", {"1": b""}, {})),
    (OpenedShares, "mask_keys", (1, "r", {}, {True: b""})),
]


@pytest.mark.parametrize(("message", "name", "values"), INVALID)
def test_a_value_of_another_type_is_refused_and_not_shown(
    message: type[Checked], name: str, values: tuple[object, ...]
) -> None:
    with pytest.raises(InputError, match=f"^message {message.__name__}: {name}: must be a valid "):
        message(*values)
