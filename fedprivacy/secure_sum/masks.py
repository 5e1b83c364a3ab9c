"""Masks: keystreams that hide each message and cancel in the sum.

Client u sends

    y_u = x_u + p_u + sum over v > u of p_uv - sum over v < u of p_uv      modulo 2^b

with its self mask p_u and a mask p_uv shared with each peer. Each mask is the AES-256-CTR keystream of a key
that is used for nothing else, as words of 32 bits of which the lower b count. Since 2^b divides 2^32, words
add up modulo 2^32 and are reduced once; b uniform bits are exactly uniform modulo 2^b.

*Proof that only the sum is visible.* Let H be honest clients in the sum, and let the server know their self
masks and every mask shared with others. What remains of y_u is r_u = x_u + sum of +-p_uv over v in H. If the
p_uv are uniform and independent, then r is uniform among all vectors with the sum of x over H: along a path
u_1, u_2, ... through H, r_(u_i) has the fresh mask of (u_i, u_(i+1)), so all r but the last are independent
and uniform, and the last one follows from the sum. The distribution of r depends on the sum of the x alone.
To distinguish keystreams from uniform masks is to break X25519, HKDF-SHA256 or AES. A client outside the sum,
whose shared masks are opened, is hidden by its self mask, which nobody opens.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fedprivacy.secure_sum.packing import Words


def keystream(key: bytes, dimension: int) -> Words:
    """The mask of a key, uniform words of 32 bits, shape (dimension,).

    Args:
        key: 32 bytes, of this mask alone.
        dimension: The number of coordinates.
    """
    # A key of its own for each mask: the counter may start from 0.
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(encryptor.update(bytes(4 * dimension)), dtype="<u4").astype(np.uint32, copy=False)


def add_shared(total: Words, client: int, peer: int, mask: Words) -> None:
    """Adds to a total, in place, the mask that a client shares with a peer, with the client's sign."""
    if client < peer:
        total += mask
    else:
        total -= mask


def reduce_words(words: Words, bits: int) -> Words:
    """The lower b bits of each word."""
    return words & np.uint32((1 << bits) - 1)
