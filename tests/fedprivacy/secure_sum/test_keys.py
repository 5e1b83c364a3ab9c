"""Keys: both sides derive the same, every purpose another, and a changed bit is seen."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from phases import flipped, node_key

from fedprivacy.secure_sum.keys import LABEL, KeyPair, derive, encode, is_signed, seal, sign, unseal


def test_both_sides_agree_and_each_purpose_and_context_has_another_key() -> None:
    first, second = KeyPair(), KeyPair()
    key = first.agree(second.public, "masks", b"round 1")
    assert key == second.agree(first.public, "masks", b"round 1")
    others = [
        first.agree(second.public, "shares", b"round 1"),
        first.agree(second.public, "masks", b"round 2"),
        first.agree(second.public, "masks", b"round", b" 1"),
        first.agree(KeyPair().public, "masks", b"round 1"),
    ]
    assert len({key, *others}) == 5


def test_a_pair_comes_back_from_its_secret_and_hides_it() -> None:
    pair = KeyPair()
    assert KeyPair(pair.secret()).public == pair.public
    assert pair.secret().hex() not in repr(pair) + str(vars(pair))
    assert str(pair.secret()) not in repr(pair) + str(vars(pair))


def test_a_public_key_of_small_order_is_refused() -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        KeyPair().agree(bytes(32), "masks")


def test_derivation_is_hkdf_of_rfc_5869() -> None:
    extracted = hmac.new(bytes(32), b"s" * 32, hashlib.sha256).digest()
    info = encode(LABEL, b"masks", b"round 1")
    expanded = hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()
    assert derive(b"s" * 32, "masks", b"round 1") == expanded


def test_lists_of_parts_never_have_the_same_bytes() -> None:
    lists = [(), (b"",), (b"", b""), (b"ab",), (b"a", b"b"), (b"", b"ab"), (encode(b"a"), b"b")]
    assert len({encode(*parts) for parts in lists}) == len(lists)


def test_a_signature_holds_for_its_parts_alone() -> None:
    key = node_key(1)
    signature = sign(key, "survivors", b"a", b"b")
    public = key.public_key()
    assert is_signed(public, signature, "survivors", b"a", b"b")
    assert not is_signed(public, signature, "keys", b"a", b"b")
    assert not is_signed(public, signature, "survivors", b"ab", b"")
    assert not is_signed(node_key(2).public_key(), signature, "survivors", b"a", b"b")
    assert not is_signed(public, b"", "survivors", b"a", b"b")
    for bit in range(0, 8 * len(signature), 5):
        assert not is_signed(public, flipped(signature, bit), "survivors", b"a", b"b")


def test_node_keys_of_a_deployment_sign() -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    assert is_signed(key.public_key(), sign(key, "keys", b"a"), "keys", b"a")


def test_a_sealed_message_opens_under_its_key_only_and_unchanged_only() -> None:
    key = KeyPair().secret()
    sealed = seal(key, b"two shares")
    assert unseal(key, sealed) == b"two shares"
    for changed in [flipped(sealed, bit) for bit in range(8 * len(sealed))] + [
        b"",
        sealed[:-1],
        sealed + b"0",
    ]:
        with pytest.raises(ValueError, match="not sealed"):
            unseal(key, changed)
    with pytest.raises(ValueError, match="not sealed"):
        unseal(KeyPair().secret(), sealed)
