"""Keys and certificates of a federation on loopback: authority, SuperLink's certificate, node keys."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

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


def _write_secret(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(data)
