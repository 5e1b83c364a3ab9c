"""Secret sharing: any k shares give the secret, k - 1 are exactly uniform."""

from __future__ import annotations

import secrets
from collections import Counter
from itertools import combinations, product

import pytest
import sympy

from fedprivacy.secure_sum import secret_sharing
from fedprivacy.secure_sum.secret_sharing import PRIME, combine, split, values


def test_the_field_is_the_least_that_holds_every_secret() -> None:
    assert sympy.nextprime(2**256) == PRIME


@pytest.mark.parametrize(("holders", "threshold"), [(1, 1), (4, 1), (4, 3), (5, 5), (9, 6)])
def test_any_threshold_of_shares_give_the_secret(holders: int, threshold: int) -> None:
    for secret in (0, 2**256 - 1, PRIME - 1, secrets.randbelow(PRIME)):
        shares = dict(enumerate(split(secret, holders, threshold), 1))
        for chosen in combinations(shares, threshold):
            assert combine({holder: shares[holder] for holder in chosen}) == secret


@pytest.mark.parametrize("threshold", [2, 3])
def test_fewer_shares_are_exactly_uniform_whatever_the_secret_is(threshold: int) -> None:
    prime, holders = 7, 4
    for secret in range(prime):
        polynomials = list(product(range(prime), repeat=threshold - 1))
        shares = [values([secret, *drawn], range(1, holders + 1), prime) for drawn in polynomials]
        for known in combinations(range(holders), threshold - 1):
            counts = Counter(tuple(each[holder] for holder in known) for each in shares)
            assert len(counts) == prime ** (threshold - 1)
            assert set(counts.values()) == {1}


def test_coefficients_are_uniform_from_the_systems_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr(secret_sharing.secrets, "randbelow", lambda limit: limits.append(limit) or limit - 1)
    assert split(5, 3, 3, prime=11) == values([5, 10, 10], [1, 2, 3], 11)
    assert limits == [11, 11]


def test_a_changed_share_changes_the_secret() -> None:
    shares = dict(enumerate(split(12, 5, 3), 1))
    changed = {1: shares[1] ^ 1, 2: shares[2], 4: shares[4]}
    assert combine(changed) != 12
