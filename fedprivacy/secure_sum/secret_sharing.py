"""Secret sharing over a prime field: any k of n shares give the secret, k - 1 nothing (Shamir 1979).

The secret is the value at 0 of a polynomial of degree k - 1 whose other coefficients are uniform; share i is
its value at i. Through k - 1 shares and any secret goes exactly one polynomial, so k - 1 shares are uniform
whatever the secret is.

`cryptography` has no secret sharing. PyCryptodome's, in Python over GF(2^128), would need two halves of each
secret and some hundred times as long for a hundred clients. Arithmetic of Python's integers takes a time that
depends slightly on their values: nothing here defends against someone who measures it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

PRIME = 2**256 + 297  # the least prime above every secret of 32 bytes
SECRET_BYTES, SHARE_BYTES = 32, 33


def split(secret: int, holders: int, threshold: int, prime: int = PRIME) -> list[int]:
    """Shares a secret among holders 1, 2, ...; any `threshold` of the shares determine it.

    Args:
        secret: In [0, prime).
        holders: n, below `prime`.
        threshold: k, from 1 to n.
        prime: The size of the field.
    """
    drawn = [secrets.randbelow(prime) for _ in range(threshold - 1)]
    return values([secret, *drawn], range(1, holders + 1), prime)


def values(coefficients: Sequence[int], points: Iterable[int], prime: int = PRIME) -> list[int]:
    """The values of a polynomial at points.

    Args:
        coefficients: From that of the constant up.
        points: The points.
        prime: The size of the field.
    """
    results = []
    for point in points:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * point + coefficient) % prime
        results.append(value)
    return results


def combine(shares: Mapping[int, int], prime: int = PRIME) -> int:
    """The secret of which these are `threshold` shares, by holder.

    Shares that do not belong together give some number: compare it with a public value of the secret.
    """
    weights = _weights(tuple(shares), prime)
    return sum(weight * share for weight, share in zip(weights, shares.values(), strict=True)) % prime


@lru_cache(maxsize=16)
def _weights(points: tuple[int, ...], prime: int) -> list[int]:
    """Lagrange's weights, by which values at points add up to that at 0."""
    weights = []
    for point in points:
        above, below = 1, 1
        for other in points:
            if other != point:
                above = above * other % prime
                below = below * (other - point) % prime
        weights.append(above * pow(below, -1, prime) % prime)
    return weights
