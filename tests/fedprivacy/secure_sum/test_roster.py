"""Files with node keys that operators install."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519

from fedprivacy.errors import InputError
from fedprivacy.secure_sum.roster import read_node_key, read_roster, roster_of, roster_text


def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP384R1())


def public(private: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> str:
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return private.public_key().public_bytes(*form).decode() + " a comment\n"


def write(path: Path, private: object, form: serialization.PrivateFormat, word: bytes | None = None) -> Path:
    locked = serialization.BestAvailableEncryption(word) if word else serialization.NoEncryption()
    path.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, locked))  # type: ignore[attr-defined]
    return path


def test_a_roster_has_the_keys_of_its_clients(tmp_path: Path) -> None:
    keys = [key(), key()]
    path = tmp_path / "roster"
    path.write_text(roster_text([public(each) for each in keys]) + "\n# a note\n")
    assert path.read_text().startswith("0 ecdsa-sha2-nistp384 AAAA")
    assert read_roster(path) == {0: keys[0].public_key(), 1: keys[1].public_key()}


FIRST, SECOND = public(key()), public(key())


# The keys in them are new each time, so tests are not named after them.
WRONG = [
    ("", "has no client"),
    ("# 0 a note\n", "has no client"),
    (f"x {FIRST}", "line 1: must be a client's number"),
    (f"-1 {FIRST}", "line 1: must be a client's number"),
    (f"{'1' * 5000} {FIRST}", "line 1: must be a client's number"),
    (f"{2**64} {FIRST}", "line 1: must be a client's number"),
    ("0\n", "line 1: must be a client's number"),
    (f"0 {FIRST}0 {SECOND}", "line 2: client 0 is listed twice"),
    (f"0 {FIRST}7 {FIRST}", "line 2: clients 0 and 7 have one key"),
    ("0 ecdsa-sha2-nistp384 AAAA\n", "line 1: holds no public key"),
    (f"0 {public(ed25519.Ed25519PrivateKey.generate())}", "line 1: holds a key of another kind"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_roster_is_refused_by_its_line(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"roster.*{problem}"):
        roster_of(text, "roster")


def test_a_public_key_that_is_none_makes_no_roster() -> None:
    with pytest.raises(InputError, match="public key of client 1: holds no public key"):
        roster_text([FIRST, "no key"])


@pytest.mark.parametrize(
    "form",
    [
        serialization.PrivateFormat.OpenSSH,
        serialization.PrivateFormat.PKCS8,
        serialization.PrivateFormat.TraditionalOpenSSL,
    ],
)
def test_a_node_key_is_read_as_ssh_and_openssl_write_it(
    tmp_path: Path, form: serialization.PrivateFormat
) -> None:
    private = key()
    assert read_node_key(write(tmp_path / "key", private, form)).public_key() == private.public_key()


def test_a_node_key_that_is_none_is_refused(tmp_path: Path) -> None:
    pkcs8, path = serialization.PrivateFormat.PKCS8, tmp_path / "key"
    with pytest.raises(InputError, match="No such file"):
        read_node_key(path)
    with pytest.raises(InputError, match="a folder, not a file"):
        read_node_key(tmp_path)
    path.write_text("no key")
    with pytest.raises(InputError, match="no private key without a passphrase"):
        read_node_key(path)
    with pytest.raises(InputError, match="no private key without a passphrase"):
        read_node_key(write(path, key(), pkcs8, b"word"))
    with pytest.raises(InputError, match="another kind than ecdsa"):
        read_node_key(write(path, x25519.X25519PrivateKey.generate(), pkcs8))
