"""Rosters of node keys, and a node's private key, as files that operators install.

A roster has a line for each client: its number and its public node key as OpenSSH writes it (the form of
`ssh-keygen`'s allowed_signers). Operators exchange it themselves: a server that wrote it could take the part
of all clients but one.

    0 ecdsa-sha2-nistp384 AAAAE2VjZHNh... hospital-a
    1 ecdsa-sha2-nistp384 AAAAE2VjZHNh... hospital-b
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fedprivacy.errors import InputError
from fedprivacy.io.regular_file import read_regular
from fedprivacy.secure_sum.messages import is_identity
from fedprivacy.secure_sum.transcript import Roster

MOST_BYTES = 2**24  # some 70,000 keys
_NUMBER = re.compile("[0-9]{1,20}")
REMEDY = "Make a key with `ssh-keygen -t ecdsa -b 384`."


def read_roster(path: Path) -> Roster:
    """The node keys of a file, by client.

    Raises:
        InputError: The file cannot be read, or is no roster (`roster_of`).
    """
    return roster_of(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a roster's file.

    Raises:
        InputError: It cannot be read.
    """
    return _read(path, "roster").decode("utf-8", "replace")


def roster_of(text: str, where: str) -> Roster:
    """The node keys of a roster's text, by client.

    Args:
        text: A client's number and its key in each line; empty lines and those with # are left out.
        where: Names the text in errors.

    Raises:
        InputError: A line is no client with a key, or a client or a key is listed twice, or there is none.
    """
    roster: dict[int, ec.EllipticCurvePublicKey] = {}
    holders: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(maxsplit=1)
        if not words or words[0].startswith("#"):
            continue
        place = f"{where}, line {number}"
        if len(words) < 2 or not _NUMBER.fullmatch(words[0]) or not is_identity(int(words[0])):
            raise InputError(f"{place}: must be a client's number and its public key, as in a .pub file.")
        client, key = int(words[0]), public_key_of(words[1], place)
        if client in roster:
            raise InputError(f"{place}: client {client} is listed twice. Remove one of its lines.")
        # A party with two places would be two of the survivors, and its shares two of those that open.
        holder = holders.setdefault(_bytes_of(key), client)
        if holder != client:
            raise InputError(f"{place}: clients {holder} and {client} have one key. Each node needs its own.")
        roster[client] = key
    if not roster:
        raise InputError(f"{where}: has no client. Write a line for each: its number and its public key.")
    return roster


def roster_text(keys: Sequence[str]) -> str:
    """The text of a roster of clients 0, 1, ...

    Args:
        keys: The text of each client's .pub file.

    Raises:
        InputError: One is no public node key.
    """
    lines = []
    for client, key in enumerate(keys):
        public_key_of(key.strip(), f"public key of client {client}")
        lines.append(f"{client} {' '.join(key.split())}\n")
    return "".join(lines)


def public_key_of(text: str, where: str) -> ec.EllipticCurvePublicKey:
    """The node key in a line of a .pub file.

    Raises:
        InputError: It is no public key on an elliptic curve.
    """
    try:
        key = serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise InputError(f"{where}: holds no public key in OpenSSH's form. Copy the .pub file.") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise InputError(f"{where}: holds a key of another kind than ecdsa. {REMEDY}")
    return key


def read_node_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """A node's private key, in OpenSSH's or PEM form and without a passphrase.

    Raises:
        InputError: The file cannot be read, or holds no such key.
    """
    data = _read(path, "node-key")
    load = serialization.load_ssh_private_key if b"OPENSSH" in data else serialization.load_pem_private_key
    try:
        key = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(f"node-key {path}: holds no private key without a passphrase. {REMEDY}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"node-key {path}: holds a key of another kind than ecdsa. {REMEDY}")
    return key


def _read(path: Path, where: str) -> bytes:
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"{where} {path}: {error.strerror}. Correct the path.") from error
    except ValueError as error:
        raise InputError(f"{where} {path}: {error}. Name the right file.") from error


def _bytes_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
