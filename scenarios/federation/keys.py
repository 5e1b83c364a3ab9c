"""Keys and certificates of a federation on loopback: authority, SuperLink's certificate, node keys."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fedprivacy.errors import InputError
from fedprivacy.io.regular_file import read_regular
from fedprivacy.secure_sum.roster import MOST_BYTES, roster_of, roster_text

ROSTER = "roster"
DAYS = 90  # a federation for trying; a real one brings its own certificates


def make_certificates(folder: Path) -> None:
    """Writes an authority's certificate, and the one that it issues to the SuperLink of this machine.

    `ca.crt` (public: clients check the SuperLink with it), `server.crt` and `server.key` (for 127.0.0.1,
    ::1 and localhost only). The authority's own key is never written: it signs nothing else.

    Args:
        folder: Where they go; it exists.
    """
    authority = trustme.CA(path_length=0, organization_name="fedprivacy federation, for trying")
    now = datetime.datetime.now(datetime.UTC)
    server = authority.issue_cert(
        "localhost",
        "127.0.0.1",
        "::1",
        common_name="localhost",
        not_before=now - datetime.timedelta(hours=1),
        not_after=now + datetime.timedelta(days=DAYS),
    )
    (folder / "ca.crt").write_bytes(authority.cert_pem.bytes())
    (folder / "server.crt").write_bytes(server.cert_chain_pems[0].bytes())
    _write_secret(folder / "server.key", server.private_key_pem.bytes())


def make_node_key(folder: Path, name: str) -> Path:
    """Writes a node's key pair (EC P-384, like `ssh-keygen -t ecdsa -b 384`); returns the public key.

    Args:
        folder: Where `name` and `name.pub` go; it exists.
        name: The node's name.
    """
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    _write_secret(folder / name, private)
    public = folder / f"{name}.pub"
    text = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    public.write_bytes(text + f" {name}\n".encode())
    return public


def make_roster(folder: Path, public_keys: Sequence[Path]) -> Path:
    """Writes the roster of clients 0, 1, ... with these public keys; returns its path.

    Args:
        folder: Where it goes; it exists.
        public_keys: Their .pub files, in order.
    """
    path = folder / ROSTER
    path.write_text(roster_of_files(public_keys), encoding="utf-8")
    return path


def roster_of_files(public_keys: Sequence[Path]) -> str:
    """The text of the roster of clients 0, 1, ... with these public keys.

    Raises:
        InputError: A file cannot be read, or holds no node key, or two hold the same one.
    """
    texts = []
    for path in public_keys:
        try:
            texts.append(read_regular(path, MOST_BYTES).decode("utf-8", "replace"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}. Name the .pub file of a node's key.") from error
        except ValueError as error:
            raise InputError(f"{path}: {error}. Name the .pub file of a node's key.") from error
    text = roster_text(texts)
    roster_of(text, "roster")  # refuses equal keys
    return text


def _write_secret(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(data)
