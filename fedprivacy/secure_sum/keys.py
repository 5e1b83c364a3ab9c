"""Keys of a secure sum: agreed by X25519, derived by HKDF, used for AES-GCM; and signatures of nodes.

Every derivation and signature names its purpose and the round, and has the length of each part in front:
nothing that is signed or sealed for one place passes in another. Nodes sign by the ECDSA key with which they
are registered (`ssh-keygen -t ecdsa -b 384`).
"""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32
LABEL = b"fedprivacy secure sum 1"
SIGNATURE = ec.ECDSA(hashes.SHA384())


class KeyPair:
    """An X25519 key pair; its repr shows no secret.

    Args:
        secret: 32 bytes, or nothing for a new pair from the operating system's entropy.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._private = X25519PrivateKey.from_private_bytes(secret) if secret else X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def secret(self) -> bytes:
        """The private key, 32 bytes."""
        return self._private.private_bytes_raw()

    def agree(self, peer: bytes, purpose: str, *context: bytes) -> bytes:
        """The key that two parties derive, each from its private and the other's public key.

        Args:
            peer: The other's public key.
            purpose: Of the key.
            *context: What else the key is bound to.

        Raises:
            ValueError: The public key is not a valid X25519 key.
        """
        shared = self._private.exchange(X25519PublicKey.from_public_bytes(peer))
        return derive(shared, purpose, *context)


# No secret: clamped, it is a multiple of 8, so its exchange with a point of small order gives zeros.
TRIAL = X25519PrivateKey.from_private_bytes(bytes(KEY_BYTES))


def is_public_key(public: bytes) -> bool:
    """Whether bytes are an X25519 public key with which an exchange gives a secret."""
    try:
        TRIAL.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return False
    return True


def encode(*parts: bytes) -> bytes:
    """Parts as bytes, each after its length: two lists of parts never have the same."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def identity_bytes(*identities: int) -> bytes:
    """Identities of clients as bytes, 8 each."""
    return b"".join(identity.to_bytes(8, "big") for identity in identities)


def derive(secret: bytes, purpose: str, *context: bytes) -> bytes:
    """A key of 32 bytes for one purpose, by HKDF-SHA256.

    Args:
        secret: At least 32 bytes of secret, X25519's or uniform.
        purpose: Of the key.
        *context: What else the key is bound to.
    """
    info = encode(LABEL, purpose.encode(), *context)
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=info).derive(secret)


def digest(purpose: str, *parts: bytes) -> bytes:
    """SHA-256 of a purpose and parts."""
    return hashlib.sha256(encode(LABEL, purpose.encode(), *parts)).digest()


def sign(key: ec.EllipticCurvePrivateKey, purpose: str, *parts: bytes) -> bytes:
    """A node's signature of a purpose and parts."""
    return key.sign(encode(LABEL, purpose.encode(), *parts), SIGNATURE)


def is_signed(key: ec.EllipticCurvePublicKey, signature: bytes, purpose: str, *parts: bytes) -> bool:
    """Whether a node signed a purpose and parts."""
    try:
        key.verify(signature, encode(LABEL, purpose.encode(), *parts), SIGNATURE)
    except InvalidSignature:
        return False
    return True


# A key seals one message only, so that its nonce may be a constant.
NONCE = bytes(12)


def seal(key: bytes, plaintext: bytes) -> bytes:
    """Encrypts and authenticates the only message under a key, by AES-256-GCM."""
    return AESGCM(key).encrypt(NONCE, plaintext, None)


def unseal(key: bytes, ciphertext: bytes) -> bytes:
    """Decrypts what `seal` made.

    Raises:
        ValueError: It is not what was sealed under this key.
    """
    try:
        return AESGCM(key).decrypt(NONCE, ciphertext, None)
    except InvalidTag:
        raise ValueError("not sealed under this key") from None
